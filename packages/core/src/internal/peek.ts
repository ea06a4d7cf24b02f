type Looked = { readonly [key: string]: unknown }

const holds = (u: unknown): u is Looked => (typeof u === "object" || typeof u === "function") && u !== null

/** Anything with keys: an object or a list, and no function. */
export const isObject = (u: unknown): u is Looked => typeof u === "object" && u !== null

/** A list; a revoked proxy is none. */
export const isList = (u: unknown): u is ReadonlyArray<unknown> => {
  try {
    return Array.isArray(u)
  } catch {
    return false
  }
}

/** An object with keys of its own: no list, no function. */
export const isRecord = (u: unknown): u is Looked => isObject(u) && !isList(u)

/** A property of anything, or nothing: a getter or a proxy that throws has no say. */
export const peek = (u: unknown, key: string): unknown => {
  if (!holds(u)) return undefined
  try {
    return u[key]
  } catch {
    return undefined
  }
}

/** An object's own enumerable properties as plain data; a getter or a proxy that throws has no say. */
export const copyOf = (u: object): Looked => {
  const copy: Record<string, unknown> = Object.create(null)
  try {
    for (const key of Object.keys(u)) copy[key] = peek(u, key)
  } catch {
    return copy
  }
  return copy
}

/** A number, or a text that is one; NaN for anything else. */
export const numberOf = (u: unknown): number =>
  typeof u === "number" ? u : typeof u === "string" ? Number(u) : Number.NaN

/** A value as text, or nothing if it has none. */
export const textOf = (u: unknown): string | undefined => {
  if (typeof u === "string") return u
  if (u === undefined || u === null) return undefined
  try {
    return JSON.stringify(u)
  } catch {
    return undefined
  }
}
