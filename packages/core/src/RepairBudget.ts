/**
 * A bound on repairs: how often in a row a model is asked to go on with an answer that was cut short. Unlike retries, which a
 * model never learns of, a repair is a message that it reads.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * The repairs of one conversation.
 *
 * @category tags
 * @since 0.1.0
 */
export class RepairBudget extends Context.Tag("@recourse/core/RepairBudget")<RepairBudget, {
  /** Takes one repair; tells whether there was one left. */
  readonly take: Effect.Effect<boolean>
  /** How many are left. */
  readonly left: Effect.Effect<number>
  /** Begins to count anew: at a new exchange, and when a round of tools is complete. */
  readonly clear: Effect.Effect<void>
}>() {}

/**
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Repairs in a row; 3 by default. */
  readonly consecutive?: number
}

/**
 * @example
 * ```ts
 * import { RepairBudget } from "@recourse/core"
 * import { Effect } from "effect"
 *
 * const goesOn = Effect.gen(function*() {
 *   const budget = RepairBudget.make({ consecutive: 1 })
 *   return [yield* budget.take, yield* budget.take] // true, false
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = ({ consecutive = 3 }: Options = {}): Context.Tag.Service<RepairBudget> => {
  let left = consecutive
  return {
    take: Effect.sync(() => {
      if (left <= 0) return false
      left--
      return true
    }),
    left: Effect.sync(() => left),
    clear: Effect.sync(() => {
      left = consecutive
    })
  }
}

/**
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RepairBudget> => Layer.sync(RepairBudget, () => make(options))
