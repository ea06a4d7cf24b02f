import { isList, isRecord } from "./peek.ts"

/** Takes one header, its name in the case in which it is held. */
export type Take = (name: string, value: string) => void

/** A list of pairs, a `Map`, or the web's `Headers`: whatever gives its headers one by one. */
const isIterable = (u: object): u is Iterable<unknown> => Symbol.iterator in u

const give = (take: Take, name: unknown, value: unknown): void => {
  if (typeof name !== "string") return
  if (typeof value === "string") take(name, value)
  else if (typeof value === "number") take(name, String(value))
  else if (isList(value)) {
    for (const item of value) if (typeof item === "string") take(name, item)
  }
}

// two loops in two functions: an engine compiles each for the one kind of carrier that it meets
const fromPairs = (pairs: Iterable<unknown>, take: Take): void => {
  for (const pair of pairs) if (isList(pair)) give(take, pair[0], pair[1])
}

const fromRecord = (headers: Readonly<Record<string, unknown>>, take: Take): void => {
  // an engine reads what it enumerates far faster than what a list of names asks for
  for (const name in headers) give(take, name, headers[name])
}

/**
 * Gives the headers of an object, of `Headers`, of a `Map` or of a list of pairs, one by one: a list of them would cost
 * more than all else that is done with it. What is no text has no say, and a carrier that throws ends the reading where
 * it threw.
 */
export const eachHeader = (headers: unknown, take: Take): void => {
  if (typeof headers !== "object" || headers === null) return
  try {
    if (isIterable(headers)) fromPairs(headers, take)
    else if (isRecord(headers)) fromRecord(headers, take)
  } catch {
    // what was given until here stands
  }
}
