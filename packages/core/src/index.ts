/**
 * Reads what went wrong with a language-model call, and says what it is worth. Each module can be imported by itself.
 *
 * @since 0.1.0
 */

/**
 * Which attempt of a call is being made.
 *
 * @since 0.1.0
 */
export * as Attempt from "./Attempt.ts"

/**
 * From what reached us to what it means.
 *
 * @since 0.1.0
 */
export * as Diagnosis from "./Diagnosis.ts"

/**
 * What reached us: an answer, a broken transport, or something that can only be surfaced.
 *
 * @since 0.1.0
 */
export * as Evidence from "./Evidence.ts"

/**
 * What it means: one flat union of tagged errors.
 *
 * @since 0.1.0
 */
export * as Fault from "./Fault.ts"

/**
 * One refusal, known to every caller.
 *
 * @since 0.1.0
 */
export * as Hold from "./Hold.ts"

/**
 * Where refusals are remembered.
 *
 * @since 0.1.0
 */
export * as HoldStore from "./HoldStore.ts"

/**
 * How a fault reads.
 *
 * @since 0.1.0
 */
export * as Readout from "./Readout.ts"

/**
 * Does what a fault's remedy says.
 *
 * @since 0.1.0
 */
export * as Recovery from "./Recovery.ts"

/**
 * What a fault is worth under a policy's terms.
 *
 * @since 0.1.0
 */
export * as Remedy from "./Remedy.ts"

/**
 * A bound on repairs that a model sees.
 *
 * @since 0.1.0
 */
export * as RepairBudget from "./RepairBudget.ts"

/**
 * Until when a provider refuses.
 *
 * @since 0.1.0
 */
export * as Reset from "./Reset.ts"

/**
 * Waking at the reset.
 *
 * @since 0.1.0
 */
export * as Resume from "./Resume.ts"

/**
 * Where wake-ups are remembered.
 *
 * @since 0.1.0
 */
export * as ResumeStore from "./ResumeStore.ts"

/**
 * A bound on retries over all calls of a scope.
 *
 * @since 0.1.0
 */
export * as RetryBudget from "./RetryBudget.ts"

/**
 * How a call is retried: data, schedules, timelines.
 *
 * @since 0.1.0
 */
export * as RetryPolicy from "./RetryPolicy.ts"

/**
 * How an answer says that it has ended.
 *
 * @since 0.1.0
 */
export * as StreamEnd from "./StreamEnd.ts"

/**
 * Recovery of a streamed answer.
 *
 * @since 0.1.0
 */
export * as StreamRecovery from "./StreamRecovery.ts"
