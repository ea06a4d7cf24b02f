/**
 * Arbitraries of failures and of policies, for properties over schedules.
 *
 * @since 0.1.0
 */
import * as Evidence from "@recourse/core/Evidence"
import * as Fault from "@recourse/core/Fault"
import type * as Readout from "@recourse/core/Readout"
import * as Reset from "@recourse/core/Reset"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"

/**
 * A failure before it has happened: what a fault will be once it is received.
 *
 * @category models
 * @since 0.1.0
 */
export interface Failure {
  readonly tag: Readout.Kind
  /** The wait that the provider names, in milliseconds. */
  readonly wait?: number
  /** How it is named; `delta` if it is left out. */
  readonly named?: "delta" | "instant"
  /** How many attempts it stands for; 1 if it is left out. */
  readonly attempts?: number
}

/**
 * The fault that a failure becomes when it is received, in epoch milliseconds.
 *
 * @example
 * ```ts
 * import * as Arbitraries from "@recourse/testing/Arbitraries"
 *
 * Arbitraries.fault({ tag: "RateLimited", wait: 20_000 }, 0).resetsAt?.waitMillis // 20000
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fault = ({ attempts = 1, named = "delta", tag, wait }: Failure, received: number): Fault.Fault => {
  const fields: Fault.Fields = {
    evidence: Evidence.fromFrame({ error: { type: tag } }),
    because: [],
    received: DateTime.unsafeMake(received),
    resetsAt: wait === undefined || wait <= 0
      ? undefined
      : Reset.make({ received, waitMillis: wait, named, by: "a test" }),
    attempts
  }
  return tag === "RateLimited"
    ? new Fault.RateLimited({ ...fields, limit: "rate", scope: "model" })
    : new Fault.plain[tag](fields)
}

const retryable = FastCheck.constantFrom<Readout.Kind>(
  "RateLimited",
  "Overloaded",
  "Unavailable",
  "Unreachable",
  "TimedOut",
  "StreamCut",
  "GenerationMalformed"
)

const surfaced = FastCheck.constantFrom<Readout.Kind>(
  "CredentialRejected",
  "QuotaExhausted",
  "ContextOverflowed",
  "ContentRefused",
  "RequestRejected",
  "Aborted",
  "Unrecognized"
)

/**
 * A failure, mostly one that a retry can help, sometimes with a wait that is named.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const failure: FastCheck.Arbitrary<Failure> = FastCheck.record({
  tag: FastCheck.oneof({ arbitrary: retryable, weight: 12 }, { arbitrary: surfaced, weight: 1 }),
  wait: FastCheck.oneof(
    { arbitrary: FastCheck.integer({ min: 1, max: 60_000 }), weight: 4 },
    { arbitrary: FastCheck.integer({ min: 60_001, max: 32 * 86_400_000 }), weight: 1 }
  ),
  named: FastCheck.constantFrom("delta" as const, "instant" as const)
}, { requiredKeys: ["tag"] })

/**
 * A run of failures, in the order in which a call meets them.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const failures: FastCheck.Arbitrary<ReadonlyArray<Failure>> = FastCheck.array(failure, { maxLength: 24 })

const tier: FastCheck.Arbitrary<RetryPolicy.Tier> = FastCheck.record({
  attempts: FastCheck.integer({ min: 1, max: 8 }),
  base: FastCheck.integer({ min: 0, max: 5_000 }),
  factor: FastCheck.constantFrom(1, 1.5, 2, 3),
  above: FastCheck.integer({ min: 0, max: 60_000 }),
  jitter: FastCheck.constantFrom(RetryPolicy.none, RetryPolicy.full, RetryPolicy.equal, RetryPolicy.additive(0.25)),
  wait: FastCheck.constantFrom("replaces" as const, "atLeast" as const)
}).map(({ above, base, ...rest }) => ({ ...rest, base: Duration.millis(base), ceiling: Duration.millis(base + above) }))

const tierName = FastCheck.constantFrom("transient", "refused", "malformed")

/**
 * A policy of three tiers, with any terms.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const policy: FastCheck.Arbitrary<RetryPolicy.RetryPolicy> = FastCheck.record({
  patience: FastCheck.integer({ min: 0, max: 120_000 }).map((millis) => Duration.millis(millis)),
  beyond: FastCheck.constantFrom("defer" as const, "clamp" as const, "ignore" as const),
  within: FastCheck.option(FastCheck.integer({ min: 1, max: 300_000 })).map((millis) =>
    millis === null ? Option.none() : Option.some(Duration.millis(millis))
  ),
  tiers: FastCheck.record({ transient: tier, refused: tier, malformed: tier }),
  tierOf: FastCheck.record({
    RateLimited: tierName,
    Overloaded: tierName,
    Unavailable: tierName,
    Unreachable: tierName,
    TimedOut: tierName,
    StreamCut: tierName,
    GenerationMalformed: tierName
  }, { requiredKeys: [] })
})
