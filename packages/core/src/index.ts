/**
 * @since 0.1.0
 */
export * as Diagnosis from "./Diagnosis.ts"

/**
 * @since 0.1.0
 */
export * as Evidence from "./Evidence.ts"

/**
 * @since 0.1.0
 */
export * as Fault from "./Fault.ts"

/**
 * @since 0.1.0
 */
export * as Readout from "./Readout.ts"

/**
 * @since 0.1.0
 */
export * as Remedy from "./Remedy.ts"

/**
 * @since 0.1.0
 */
export * as Reset from "./Reset.ts"

/**
 * @since 0.1.0
 */
export * as RetryPolicy from "./RetryPolicy.ts"

/**
 * @since 0.1.0
 */
export * as StreamEnd from "./StreamEnd.ts"
