/**
 * How a call is retried, as data: which tags share which tier, how each tier paces itself, and how long a named wait may
 * be. A policy decides nothing by itself; `Remedy` reads its terms.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Terms } from "./Remedy.ts"

/**
 * How a computed wait is spread: a factor drawn evenly between `low` and `high` multiplies it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Jitter {
  readonly low: number
  readonly high: number
}

/**
 * The computed wait itself. Callers that failed together ask again together.
 *
 * @category jitter
 * @since 0.1.0
 */
export const none: Jitter = { low: 1, high: 1 }

/**
 * Anything from nothing to the computed wait.
 *
 * @category jitter
 * @since 0.1.0
 */
export const full: Jitter = { low: 0, high: 1 }

/**
 * At least half of the computed wait.
 *
 * @category jitter
 * @since 0.1.0
 */
export const equal: Jitter = { low: 0.5, high: 1 }

/**
 * The computed wait and up to `most` of it on top.
 *
 * @category jitter
 * @since 0.1.0
 */
export const additive = (most: number): Jitter => ({ low: 1, high: 1 + most })

/**
 * A counter and a curve, shared by every tag that is mapped to it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tier {
  /** How often a call is made in all, the first time included, if only this tier's faults meet it. */
  readonly attempts: number
  readonly base: Duration.Duration
  readonly factor: number
  readonly ceiling: Duration.Duration
  readonly jitter: Jitter
  /** Whether a named wait `replaces` the curve or is waited `atLeast` as long as the curve says. */
  readonly wait: "replaces" | "atLeast"
}

/**
 * A whole policy: the terms that a remedy needs, and the tiers and the total time that a schedule needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryPolicy extends Terms {
  /** No attempt begins and no wait is entered that would pass this. */
  readonly within: Option.Option<Duration.Duration>
  readonly tiers: { readonly [tier: string]: Tier }
}

const tier = (
  attempts: number,
  base: Duration.DurationInput,
  ceiling: Duration.DurationInput,
  jitter: Jitter
): Tier => ({
  attempts,
  base: Duration.decode(base),
  factor: 2,
  ceiling: Duration.decode(ceiling),
  jitter,
  wait: "replaces"
})

const atOnce = (attempts: number): Tier => ({ ...tier(attempts, 0, 0, none), factor: 1 })

const tierOf = {
  RateLimited: "refused",
  Overloaded: "transient",
  Unavailable: "transient",
  Unreachable: "transient",
  TimedOut: "transient",
  StreamCut: "transient",
  GenerationMalformed: "malformed"
}

/**
 * The default of every door. Waits out a minute's window in place, defers anything longer, and gives up after five
 * minutes.
 *
 * @category policies
 * @since 0.1.0
 */
export const standard: RetryPolicy = {
  patience: Duration.seconds(75),
  beyond: "defer",
  within: Option.some(Duration.minutes(5)),
  tierOf,
  tiers: {
    transient: tier(4, "1 second", "15 seconds", equal),
    refused: tier(6, "2 seconds", "30 seconds", equal),
    malformed: atOnce(3)
  }
}

/**
 * For a person who waits: short curves, and nothing longer than 30 s is waited in place. The numbers are exarch's; its
 * classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const brisk: RetryPolicy = {
  patience: Duration.seconds(30),
  beyond: "defer",
  within: Option.none(),
  tierOf,
  tiers: {
    transient: tier(3, "750 millis", "8 seconds", full),
    refused: tier(6, "750 millis", "30 seconds", full),
    malformed: atOnce(3)
  }
}

const only = tier(10, "1 second", "32 seconds", additive(0.25))

/**
 * For work that nobody waits for: ten attempts over 159 s of curve, and any named wait that a timer can reach. A longer
 * one counts as not named. The numbers are apache/maka's; its classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const persistent: RetryPolicy = {
  patience: Duration.millis(2 ** 31 - 1),
  beyond: "ignore",
  within: Option.none(),
  tierOf: {
    RateLimited: "transient",
    Overloaded: "transient",
    Unavailable: "transient",
    Unreachable: "transient",
    TimedOut: "transient",
    StreamCut: "transient"
  },
  tiers: { transient: only }
}

/**
 * For a provider that punishes haste: the curve is a floor under every named wait, a wait of over a minute is cut to
 * one, and a timeout is surfaced, since it may be a request that is too large. Seven requests at most. The numbers are
 * kaibo's; its classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const cautious: RetryPolicy = {
  patience: Duration.seconds(60),
  beyond: "clamp",
  within: Option.none(),
  tierOf: {
    RateLimited: "transient",
    Overloaded: "transient",
    Unavailable: "transient",
    Unreachable: "transient",
    StreamCut: "transient",
    GenerationMalformed: "malformed"
  },
  tiers: {
    transient: { ...tier(5, "1 second", "60 seconds", full), wait: "atLeast" },
    malformed: atOnce(3)
  }
}
