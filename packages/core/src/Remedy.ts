/**
 * What a fault is worth under a policy's terms: a retry in a tier, a deferral to the reset, or nothing but to surface it.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { type Fault, isRetryable, type Retryable } from "./Fault.ts"
import type { Reset } from "./Reset.ts"

/**
 * What a remedy needs of a policy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Terms {
  /** The longest named wait that is waited in place. */
  readonly patience: Duration.Duration
  /** A longer one: `defer` to its reset, `clamp` it to the patience, or `ignore` that it was named. */
  readonly beyond: "defer" | "clamp" | "ignore"
  /** The tier of each tag; a tag without one is surfaced. */
  readonly tierOf: { readonly [Tag in Retryable]?: string }
}

/**
 * A wait that a provider named and a policy's patience covers. None longer than the patience can be made.
 *
 * @category models
 * @since 0.1.0
 */
export class Wait {
  /** Milliseconds from receipt: whole, at most the patience. */
  readonly millis: number
  /** The reset that it waits for; when it was clamped, the wait ends before it. */
  readonly reset: Reset

  private constructor(millis: number, reset: Reset) {
    this.millis = millis
    this.reset = reset
  }

  /**
   * The wait for a reset, if the patience covers it.
   *
   * @since 0.1.0
   */
  static within(patience: Duration.Duration, reset: Reset): Option.Option<Wait> {
    return reset.waitMillis <= Duration.toMillis(patience)
      ? Option.some(new Wait(reset.waitMillis, reset))
      : Option.none()
  }

  /**
   * The wait for a reset, cut to the patience.
   *
   * @since 0.1.0
   */
  static clamped(patience: Duration.Duration, reset: Reset): Wait {
    return new Wait(Math.min(reset.waitMillis, Math.floor(Duration.toMillis(patience))), reset)
  }
}

/**
 * Ask again, in a tier of the policy: after the named wait, or paced by the tier's curve where none was named.
 *
 * @category models
 * @since 0.1.0
 */
export interface Retry {
  readonly _tag: "Retry"
  readonly tier: string
  readonly wait: Option.Option<Wait>
}

/**
 * Nothing can be done before an instant that lies past the policy's patience: end honestly, and say until when.
 *
 * @category models
 * @since 0.1.0
 */
export interface Defer {
  readonly _tag: "Defer"
  readonly until: Reset
}

/**
 * Asking again cannot help, or the policy does not.
 *
 * @category models
 * @since 0.1.0
 */
export interface Surface {
  readonly _tag: "Surface"
}

/**
 * The three things that can be done about a fault; the prefix of an answer that was shown is a stream's business.
 *
 * @category models
 * @since 0.1.0
 */
export type Remedy = Retry | Defer | Surface

const surface: Surface = { _tag: "Surface" }

/**
 * What the terms make of a fault. It reads the kind and the reset, and never `attempts`: counting is the schedule's business.
 *
 * @example
 * ```ts
 * import { Diagnosis, Remedy, RetryPolicy } from "@recourse/core"
 *
 * const fault = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "20" } }, { received: Date.now() })
 * Remedy.fromFault(fault, RetryPolicy.standard)._tag // "Retry"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromFault = (fault: Fault, terms: Terms): Remedy => {
  const tier = isRetryable(fault._tag) ? terms.tierOf[fault._tag] : undefined
  if (tier === undefined) return surface
  const reset = fault.resetsAt
  if (reset === undefined) return { _tag: "Retry", tier, wait: Option.none() }
  const wait = Wait.within(terms.patience, reset)
  if (Option.isSome(wait)) return { _tag: "Retry", tier, wait }
  switch (terms.beyond) {
    case "defer":
      return { _tag: "Defer", until: reset }
    case "clamp":
      return { _tag: "Retry", tier, wait: Option.some(Wait.clamped(terms.patience, reset)) }
    case "ignore":
      return { _tag: "Retry", tier, wait: Option.none() }
  }
}
