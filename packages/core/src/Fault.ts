/**
 * What a failed call means: one flat union of tagged errors for the error channel. The tag is the kind, and the kind
 * alone decides whether a retry is worth anything.
 *
 * Faults are made without a stack, print their readout wherever they are printed, and travel through `Fault.Schema`. They
 * have the prototype of `Error` and are not made by its constructor: `fault instanceof Error` holds, an engine's own
 * `Error.isError` does not.
 *
 * @since 0.1.0
 */
import * as Arbitrary from "effect/Arbitrary"
import { YieldableError } from "effect/Cause"
import * as DateTime from "effect/DateTime"
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Option from "effect/Option"
import * as S from "effect/Schema"
import * as Evidence from "./Evidence.ts"
import { chain } from "./internal/chain.ts"
import * as Readout from "./Readout.ts"
import * as Reset from "./Reset.ts"

/**
 * By which a fault is known, in whatever copy of the library it was made.
 *
 * @category symbols
 * @since 0.1.0
 */
export const TypeId: unique symbol = Symbol.for("@recourse/core/Fault")

/**
 * The type of that mark.
 *
 * @category symbols
 * @since 0.1.0
 */
export type TypeId = typeof TypeId

/**
 * What all faults carry.
 *
 * @category models
 * @since 0.1.0
 */
export interface Fields {
  readonly evidence: Evidence.Evidence
  /** What decided, first, then every reset that was read or refused. */
  readonly because: ReadonlyArray<Readout.Because>
  readonly received: DateTime.Utc
  /** Until when the provider said it refuses, if it said so. */
  readonly resetsAt?: Reset.Reset | undefined
  /** How many attempts were made; 0 for a call that a hold answered, more than 1 where somebody below has retried. */
  readonly attempts: number
}

/**
 * A throttle's own fields.
 *
 * @category models
 * @since 0.1.0
 */
export interface LimitFields extends Fields {
  /** A short throughput window, or a pool that a plan, a day, a week or a month grants. */
  readonly limit: "rate" | "allowance"
  /** Whom the refusal concerns: every model of the account, or this one. */
  readonly scope: "account" | "model"
}

// The constructor of `Error` captures a stack, for which a provider's refusal has no use. Even one that is told to capture
// none costs more than all else that a fault is made of.
// What the interface promises, the prototype has:
// oxlint-disable-next-line no-unsafe-declaration-merging
class WithoutStack {
  static {
    Object.setPrototypeOf(this.prototype, YieldableError.prototype)
  }
}
interface WithoutStack extends YieldableError {}

abstract class Base<Tag extends Readout.Kind, F extends Fields = Fields> extends WithoutStack {
  abstract readonly _tag: Tag
  // not spread into own properties: a diagnosis computes most of them only when somebody looks
  readonly #fields: F

  constructor(fields: F) {
    super()
    this.#fields = fields
  }

  get [TypeId](): TypeId {
    return TypeId
  }

  protected get fields(): F {
    return this.#fields
  }

  get evidence(): Evidence.Evidence {
    return this.#fields.evidence
  }

  /** What decided, first, then every reset that was read or refused. */
  get because(): ReadonlyArray<Readout.Because> {
    return this.#fields.because
  }

  get received(): DateTime.Utc {
    return this.#fields.received
  }

  /** Until when the provider said it refuses, if it said so. */
  get resetsAt(): Reset.Reset | undefined {
    return this.#fields.resetsAt
  }

  /** How many attempts were made. */
  get attempts(): number {
    return this.#fields.attempts
  }

  /** The summary: one sentence, the same wherever the fault is printed. */
  override get message(): string {
    return Readout.summary(this)
  }

  /** The name and the summary: no stack was captured. */
  override get stack(): string {
    return `${this.name}: ${this.message}`
  }

  /** What tools know an error by that look at no prototype. */
  get [Symbol.toStringTag](): "Error" {
    return "Error"
  }

  /** The readout, which is redacted. */
  override toJSON(): object {
    const { fields, headline } = Readout.fromFault(this)
    return { _tag: this._tag, headline, ...Object.fromEntries(fields.map(({ label, value }) => [label, value])) }
  }

  override [NodeInspectSymbol](): string {
    const { fields, headline } = Readout.fromFault(this)
    return [
      `${this._tag}: ${headline}`,
      ...fields.map(({ label, value }) =>
        `  ${label}: ${typeof value === "string" ? value : DateTime.formatIso(value)}`
      )
    ].join("\n")
  }
}

/**
 * A 429 or a throttle under another name.
 *
 * @category errors
 * @since 0.1.0
 */
export class RateLimited extends Base<"RateLimited", LimitFields> {
  readonly _tag = "RateLimited"
  static {
    this.prototype.name = "RateLimited"
  }

  /** A short throughput window, or a pool that a plan, a day, a week or a month grants. */
  get limit(): "rate" | "allowance" {
    return this.fields.limit
  }

  /** Whom the refusal concerns: every model of the account, or this one. */
  get scope(): "account" | "model" {
    return this.fields.scope
  }
}

/**
 * 529, an engine that is busy, a capacity code: the provider has no room for anybody.
 *
 * @category errors
 * @since 0.1.0
 */
export class Overloaded extends Base<"Overloaded"> {
  readonly _tag = "Overloaded"
  static {
    this.prototype.name = "Overloaded"
  }
}

/**
 * 500, 502 to 504, 520 to 524, 530 and any unknown 5xx: something behind the provider's door is broken.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unavailable extends Base<"Unavailable"> {
  readonly _tag = "Unavailable"
  static {
    this.prototype.name = "Unavailable"
  }
}

/**
 * No answer came: connect (its timeout too), reset, a body that dropped.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unreachable extends Base<"Unreachable"> {
  readonly _tag = "Unreachable"
  static {
    this.prototype.name = "Unreachable"
  }
}

/**
 * 408, or a clock for headers, body or the whole call that ran out, whoever's it was.
 *
 * @category errors
 * @since 0.1.0
 */
export class TimedOut extends Base<"TimedOut"> {
  readonly _tag = "TimedOut"
  static {
    this.prototype.name = "TimedOut"
  }
}

/**
 * The bytes ended in order and the protocol did not: a stream without its terminal event.
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamCut extends Base<"StreamCut"> {
  readonly _tag = "StreamCut"
  static {
    this.prototype.name = "StreamCut"
  }
}

/**
 * The provider could not parse what the model wrote; another sample can.
 *
 * @category errors
 * @since 0.1.0
 */
export class GenerationMalformed extends Base<"GenerationMalformed"> {
  readonly _tag = "GenerationMalformed"
  static {
    this.prototype.name = "GenerationMalformed"
  }
}

/**
 * 401, 403, a bad key or an expired one.
 *
 * @category errors
 * @since 0.1.0
 */
export class CredentialRejected extends Base<"CredentialRejected"> {
  readonly _tag = "CredentialRejected"
  static {
    this.prototype.name = "CredentialRejected"
  }
}

/**
 * A purse is empty: 402, billing, credit, a spending limit. No wait refills it.
 *
 * @category errors
 * @since 0.1.0
 */
export class QuotaExhausted extends Base<"QuotaExhausted"> {
  readonly _tag = "QuotaExhausted"
  static {
    this.prototype.name = "QuotaExhausted"
  }
}

/**
 * The input exceeds the model's window. Compact it; waiting changes nothing.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContextOverflowed extends Base<"ContextOverflowed"> {
  readonly _tag = "ContextOverflowed"
  static {
    this.prototype.name = "ContextOverflowed"
  }
}

/**
 * A content policy said no to the request or to what the model wrote.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContentRefused extends Base<"ContentRefused"> {
  readonly _tag = "ContentRefused"
  static {
    this.prototype.name = "ContentRefused"
  }
}

/**
 * Every other 4xx, 501, 505, 511, and a throttle whose own numbers say that the request can never fit.
 *
 * @category errors
 * @since 0.1.0
 */
export class RequestRejected extends Base<"RequestRejected"> {
  readonly _tag = "RequestRejected"
  static {
    this.prototype.name = "RequestRejected"
  }
}

/**
 * Somebody else's AbortSignal. Our own cancellation is interruption and never a fault.
 *
 * @category errors
 * @since 0.1.0
 */
export class Aborted extends Base<"Aborted"> {
  readonly _tag = "Aborted"
  static {
    this.prototype.name = "Aborted"
  }
}

/**
 * None of the above. Surfaced with its evidence, never retried on a guess.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unrecognized extends Base<"Unrecognized"> {
  readonly _tag = "Unrecognized"
  static {
    this.prototype.name = "Unrecognized"
  }
}

/**
 * Every fault. A program catches one by its tag: `Effect.catchTag(call, "ContextOverflowed", compact)`.
 *
 * @category models
 * @since 0.1.0
 */
export type Fault =
  | RateLimited
  | Overloaded
  | Unavailable
  | Unreachable
  | TimedOut
  | StreamCut
  | GenerationMalformed
  | CredentialRejected
  | QuotaExhausted
  | ContextOverflowed
  | ContentRefused
  | RequestRejected
  | Aborted
  | Unrecognized

/**
 * Whether asking again can help, for every kind of fault there is. The only place that says so: a new kind without a
 * row does not compile.
 *
 * @category models
 * @since 0.1.0
 */
export const worth = {
  RateLimited: "retry",
  Overloaded: "retry",
  Unavailable: "retry",
  Unreachable: "retry",
  TimedOut: "retry",
  StreamCut: "retry",
  GenerationMalformed: "retry",
  CredentialRejected: "surface",
  QuotaExhausted: "surface",
  ContextOverflowed: "surface",
  ContentRefused: "surface",
  RequestRejected: "surface",
  Aborted: "surface",
  Unrecognized: "surface"
} as const satisfies { readonly [Tag in Fault["_tag"]]: "retry" | "surface" }

/**
 * The tags that a retry can help.
 *
 * @category models
 * @since 0.1.0
 */
export type Retryable = { [Tag in keyof typeof worth]: (typeof worth)[Tag] extends "retry" ? Tag : never }[
  keyof typeof worth
]

/**
 * Whether asking again can help.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRetryable = (tag: string): tag is Retryable => retryable.has(tag)

const retryable: ReadonlySet<string> = new Set(
  Object.entries(worth).flatMap(([tag, worth]) => worth === "retry" ? [tag] : [])
)

/**
 * The class of every tag but `RateLimited`, which has fields of its own.
 *
 * @category constructors
 * @since 0.1.0
 */
export const plain = {
  Overloaded,
  Unavailable,
  Unreachable,
  TimedOut,
  StreamCut,
  GenerationMalformed,
  CredentialRejected,
  QuotaExhausted,
  ContextOverflowed,
  ContentRefused,
  RequestRejected,
  Aborted,
  Unrecognized
} satisfies { readonly [Tag in Exclude<Readout.Kind, "RateLimited">]: new(fields: Fields) => Base<Tag> }

/**
 * Whether a value is one of our faults, whatever realm or copy of the library made it. A foreign `_tag` that looks like
 * ours does not count.
 *
 * @category guards
 * @since 0.1.0
 */
export const isFault = (u: unknown): u is Fault => {
  try {
    return typeof u === "object" && u !== null && TypeId in u
  } catch {
    return false
  }
}

/**
 * The fault that an error wraps: an `AiError` of `@effect/ai` that `RecoveredLanguageModel` of `@recourse/ai` made, or anything else
 * that has a fault among its causes. It makes none: that is for `Diagnosis.fromUnknown`.
 *
 * @example
 * ```ts
 * import { Diagnosis, Fault } from "@recourse/core"
 *
 * const fault = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
 *
 * Fault.fromAiError(new Error("the turn failed", { cause: fault })) // Option.some(fault)
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromAiError = (error: unknown): Option.Option<Fault> => Option.fromNullable(chain(error).find(isFault))

/**
 * The same fault with another count of attempts. It keeps its type.
 *
 * @category combinators
 * @since 0.1.0
 */
export function withAttempts<F extends Fault>(fault: F, attempts: number): F
export function withAttempts(fault: Fault, attempts: number): Fault {
  return fault._tag === "RateLimited"
    ? new RateLimited({ ...fieldsOf(fault), limit: fault.limit, scope: fault.scope, attempts })
    : new plain[fault._tag]({ ...fieldsOf(fault), attempts })
}

/**
 * The same fault with another reset.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withReset = (fault: Fault, resetsAt: Reset.Reset): Fault =>
  fault._tag === "RateLimited"
    ? new RateLimited({ ...fieldsOf(fault), limit: fault.limit, scope: fault.scope, resetsAt })
    : new plain[fault._tag]({ ...fieldsOf(fault), resetsAt })

const fieldsOf = (fault: Fault): Fields => ({
  evidence: fault.evidence,
  because: fault.because,
  received: fault.received,
  resetsAt: fault.resetsAt,
  attempts: fault.attempts
})

const common = {
  evidence: Evidence.Wire,
  because: S.Array(S.Struct({ field: S.String, value: S.String, rule: S.String })),
  received: S.DateTimeUtc,
  resetsAt: S.optionalWith(
    S.Struct({
      waitMillis: S.Int.pipe(S.between(1, 32 * 86_400_000)),
      named: S.Literal("delta", "instant"),
      by: S.String
    }),
    { exact: true }
  ),
  attempts: S.NonNegativeInt
}

const Wire = S.Union(
  S.TaggedStruct("RateLimited", {
    ...common,
    limit: S.Literal("rate", "allowance"),
    scope: S.Literal("account", "model")
  }),
  S.TaggedStruct("Overloaded", common),
  S.TaggedStruct("Unavailable", common),
  S.TaggedStruct("Unreachable", common),
  S.TaggedStruct("TimedOut", common),
  S.TaggedStruct("StreamCut", common),
  S.TaggedStruct("GenerationMalformed", common),
  S.TaggedStruct("CredentialRejected", common),
  S.TaggedStruct("QuotaExhausted", common),
  S.TaggedStruct("ContextOverflowed", common),
  S.TaggedStruct("ContentRefused", common),
  S.TaggedStruct("RequestRejected", common),
  S.TaggedStruct("Aborted", common),
  S.TaggedStruct("Unrecognized", common)
)

type Wire = typeof Wire.Type

const fromWire = (wire: Wire): Fault => {
  const { received, resetsAt } = wire
  const fields = {
    ...wire,
    evidence: Evidence.fromWire(wire.evidence),
    resetsAt: resetsAt === undefined ? undefined : Reset.make({ ...resetsAt, received: received.epochMillis })
  }
  return fields._tag === "RateLimited" ? new RateLimited(fields) : new plain[fields._tag](fields)
}

const toWire = (fault: Fault): Wire => {
  const { resetsAt } = fault
  const fields = {
    evidence: Evidence.toWire(fault.evidence),
    because: fault.because,
    received: fault.received,
    attempts: fault.attempts,
    ...(resetsAt === undefined
      ? {}
      : { resetsAt: { waitMillis: resetsAt.waitMillis, named: resetsAt.named, by: resetsAt.by } })
  }
  return fault._tag === "RateLimited"
    ? { _tag: fault._tag, ...fields, limit: fault.limit, scope: fault.scope }
    : { _tag: fault._tag, ...fields }
}

const FaultSchema: S.Schema<Fault, typeof Wire.Encoded> = S.transform(
  Wire,
  S.declare(isFault, {
    identifier: "@recourse/core/Fault",
    arbitrary: () => () => Arbitrary.make(Wire).map(fromWire)
  }),
  { strict: true, decode: fromWire, encode: toWire }
)

export {
  /**
   * How a fault is written to a log and read back: the redacted evidence and what was made of it, with instants as ISO
   * text. A fault that is read back has the same encoded form, the same remedy under every policy and the same readout.
   *
   * @example
   * ```ts
   * import { Diagnosis, Fault } from "@recourse/core"
   * import { Schema } from "effect"
   *
   * const fault = Diagnosis.fromResponse({ status: 429 }, { received: 0 })
   * const line = Schema.encodeSync(Schema.parseJson(Fault.Schema))(fault)
   * Schema.decodeSync(Schema.parseJson(Fault.Schema))(line)._tag // "RateLimited"
   * ```
   *
   * @category schemas
   * @since 0.1.0
   */
  FaultSchema as Schema
}
