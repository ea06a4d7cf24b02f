import { isList, isRecord, peek } from "./peek.ts"

/** What can be asked for its headers one by one: the web's `Headers`, and a `Map`. */
interface Iterates {
  readonly forEach: (each: (value: unknown, name: unknown) => void) => void
}

const iterates = (u: unknown): u is Iterates => typeof peek(u, "forEach") === "function" && !isList(u)

/**
 * Calls `each` with every header, its name in the case in which it is held: an object, `Headers`, a `Map`, or a list of
 * pairs, without a copy. What is no text has no say, and a carrier that throws ends the reading where it threw.
 */
export const eachHeader = (headers: unknown, each: (name: string, value: string) => void): void => {
  if (typeof headers !== "object" || headers === null) return
  const take = (name: unknown, value: unknown): void => {
    if (typeof name !== "string") return
    if (typeof value === "string") each(name, value)
    else if (typeof value === "number") each(name, String(value))
    else if (isList(value)) {
      for (const item of value) if (typeof item === "string") each(name, item)
    }
  }
  try {
    if (isList(headers)) {
      for (const pair of headers) take(peek(pair, "0"), peek(pair, "1"))
    } else if (iterates(headers)) headers.forEach((value, name) => take(name, value))
    else if (isRecord(headers)) {
      for (const name of Object.keys(headers)) take(name, peek(headers, name))
    }
  } catch {
    return
  }
}
