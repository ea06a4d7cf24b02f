/**
 * A bound on retries over all calls of a scope, so that a provider's bad minute does not become a storm of ours: a token
 * bucket in which each retry costs, and each success refunds.
 *
 * Nothing is bounded unless a layer of this module is provided.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Fault } from "./Fault.ts"

/**
 * How large the bucket is, and what goes in and out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Tokens in a full bucket; it begins full. */
  readonly capacity?: number
  /** What a retry takes. */
  readonly cost?: number
  /** What a retry after a timeout takes; a call that timed out has already cost the provider most. */
  readonly timeoutCost?: number
  /** What a call that succeeds at its first attempt gives back. */
  readonly refund?: number
}

/**
 * Where the tokens are kept. A budget of many processes is another implementation of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget {
  /** Takes what the retry of this fault costs: how much was taken, or 0 if the bucket has too little and none was. */
  readonly take: (fault: Fault) => Effect.Effect<number>
  /** Gives back what the retry took that led to a success; after a success at the first attempt, 0. */
  readonly give: (taken: number) => Effect.Effect<void>
}

/**
 * The budget that a recovery asks; inert by default.
 *
 * @category references
 * @since 0.1.0
 */
export class RetryBudget extends Context.Reference<RetryBudget>()("@recourse/core/RetryBudget", {
  defaultValue: (): Budget | undefined => undefined
}) {}

/**
 * A budget in memory. Its numbers are those of the standard mode of the AWS SDKs: 500 tokens, 5 for a retry and 10 after a
 * timeout, 1 back for a success at the first attempt, and what a retry took when it succeeds. A burst of a hundred retries
 * passes; in the long run there is at most one failed retry for every five calls that succeed at once. gRPC's retry throttling follows the same idea
 * with a bucket of 10 that stops at half.
 *
 * @example
 * ```ts
 * import { RetryBudget } from "@recourse/core"
 *
 * const budget = RetryBudget.make({ capacity: 100 })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = ({ capacity = 500, cost = 5, refund = 1, timeoutCost = 10 }: Options = {}): Budget => {
  let tokens = capacity
  return {
    take: (fault) =>
      Effect.sync(() => {
        const price = fault._tag === "TimedOut" ? timeoutCost : cost
        if (tokens < price) return 0
        tokens -= price
        return price
      }),
    give: (taken) =>
      Effect.sync(() => {
        tokens = Math.min(capacity, tokens + (taken === 0 ? refund : taken))
      })
  }
}

/**
 * One budget for every call in the scope of the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RetryBudget> => Layer.sync(RetryBudget, () => make(options))
