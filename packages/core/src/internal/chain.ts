import { isCause, squash } from "effect/Cause"
import { FiberFailureCauseId, isFiberFailure } from "effect/Runtime"
import { isList, peek } from "./peek.ts"

const DEPTH = 32
const ITEMS = 16

const links = ["cause", "lastError", "originalError", "error", "reason"] as const

/** Whether a property of an error is itself an error, and no parsed body. */
export const isError = (u: unknown): boolean => {
  try {
    return u instanceof Error || typeof peek(u, "stack") === "string" || isCause(u)
  } catch {
    return false
  }
}

/** A thrown value and everything that it wraps, the outermost first: causes, aggregates, Effect's own failures. */
export const chain = (thrown: unknown): ReadonlyArray<unknown> => {
  const nodes: Array<unknown> = []
  const walk = (u: unknown): void => {
    if (u === undefined || u === null || nodes.length >= DEPTH || nodes.includes(u)) return
    if (isFiberFailure(u)) return walk(squash(u[FiberFailureCauseId]))
    if (isCause(u)) return walk(squash(u))
    nodes.push(u)
    if (typeof u !== "object") return
    for (const link of links) {
      const next = peek(u, link)
      // what an error of Effect 4 is stands in its reason
      const tagged = link === "reason" && typeof peek(next, "_tag") === "string"
      if (link === "cause" || link === "lastError" || tagged || isError(next)) walk(next)
    }
    const errors = peek(u, "errors")
    if (isList(errors) && peek(u, "lastError") === undefined) {
      for (let i = 0; i < ITEMS; i++) walk(peek(errors, String(i)))
    }
  }
  try {
    walk(thrown)
  } catch {
    // a proxy that throws from a trap which Effect's own guards meet ends the walk where it stands
  }
  return nodes
}
