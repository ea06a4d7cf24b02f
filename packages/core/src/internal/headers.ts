import { isList, isRecord } from "./peek.ts"

/** One header, its name in the case in which it is held. */
export interface Header {
  readonly name: string
  readonly value: string
}

/** A list of pairs, a `Map`, or the web's `Headers`: whatever gives its headers one by one. */
const isIterable = (u: object): u is Iterable<unknown> => Symbol.iterator in u

const take = (found: Array<Header>, name: unknown, value: unknown): void => {
  if (typeof name !== "string") return
  if (typeof value === "string") found.push({ name, value })
  else if (typeof value === "number") found.push({ name, value: String(value) })
  else if (isList(value)) {
    for (const item of value) if (typeof item === "string") found.push({ name, value: item })
  }
}

// two loops in two functions: an engine compiles each for the one kind of carrier that it meets
const fromPairs = (found: Array<Header>, pairs: Iterable<unknown>): void => {
  for (const pair of pairs) if (isList(pair)) take(found, pair[0], pair[1])
}

const fromRecord = (found: Array<Header>, headers: Readonly<Record<string, unknown>>): void => {
  for (const name of Object.keys(headers)) take(found, name, headers[name])
}

/**
 * The headers of an object, of `Headers`, of a `Map` or of a list of pairs. What is no text has no say, and a carrier that
 * throws ends the reading where it threw.
 */
export const headersOf = (headers: unknown): ReadonlyArray<Header> => {
  const found: Array<Header> = []
  if (typeof headers !== "object" || headers === null) return found
  try {
    if (isIterable(headers)) fromPairs(found, headers)
    else if (isRecord(headers)) fromRecord(found, headers)
  } catch {
    return found
  }
  return found
}
