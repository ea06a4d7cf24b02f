import * as AiError from "@effect/ai/AiError"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import type * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"

interface Codes {
  /** Codes of a private gateway and what they mean. */
  readonly codes?: Diagnosis.Options["codes"]
}

/** How a model is recovered by itself. */
export interface Free extends Recovery.Free, Codes {}

/** How a model is recovered that shares what is known of refusals with every other caller of its target. */
export interface Held extends Recovery.Held, Codes {}

/** What the provider was heard to say to the requests of one attempt. */
export const witnessing = (): NonNullable<Context.Tag.Service<RecourseClient.Witness>> => ({ fault: undefined })

/** The fault of an error that an adapter made, or of what its provider was heard to say. */
export const read = (
  error: unknown,
  heard: Fault.Fault | undefined,
  codes: Diagnosis.Options["codes"]
): Effect.Effect<Fault.Fault> =>
  heard === undefined
    ? Effect.map(
      Clock.currentTimeMillis,
      (received) =>
        isMalformed(error)
          ? Diagnosis.fromFrame({ error: { code: "malformed_model_output", message: whyOf(error) } }, { received })
          : Diagnosis.fromUnknown(error, told(received, codes))
    )
    : Effect.succeed(heard)

/** Whether what a model wrote could not be read: a call's arguments, or an object; an answer that its client cannot read is none. */
const isMalformed = (error: unknown): error is AiError.MalformedOutput =>
  AiError.isAiError(error) && error._tag === "MalformedOutput" && error.module.endsWith("LanguageModel")

const whyOf = ({ cause, description }: AiError.MalformedOutput): string =>
  description ?? (cause instanceof Error ? cause.message : "It does not have the form that was asked for.")

export const told = (received: number, codes: Diagnosis.Options["codes"]): Diagnosis.Options =>
  codes === undefined ? { received } : { received, codes }

export const failedWith = (reason: string, codes: Diagnosis.Options["codes"]): Effect.Effect<Fault.Fault> =>
  Effect.map(
    Clock.currentTimeMillis,
    (received) => Diagnosis.fromFrame({ finish_reason: reason }, told(received, codes))
  )

/** A call that is recovered, beneath the hold where a target is named. */
export const recovered = <A>(
  attempt: Effect.Effect<A, Fault.Fault>,
  recovery: Recovery.Free | Recovery.Held,
  hold: Context.Tag.Service<Hold.Hold> | undefined
): Effect.Effect<A, Fault.Fault> =>
  recovery.target === undefined || hold === undefined
    ? Recovery.recover(attempt, { ...recovery, target: undefined, gate: undefined })
    : Effect.provideService(Recovery.recover(attempt, recovery), Hold.Hold, hold)

/** A fault behind a tag whose every error is an `AiError`. */
export const fold = (module: string, method: string) => (fault: Fault.Fault): AiError.AiError =>
  new AiError.UnknownError({ module, method, description: fault.message, cause: fault })

const isOther = <E>(error: E): error is Exclude<E, AiError.AiError> => !AiError.isAiError(error)

/** The fault of an error behind that tag; every other error as it is. */
export const faultOf = <E>(error: E | Fault.Fault): Effect.Effect<never, Exclude<E | Fault.Fault, AiError.AiError>> =>
  isOther(error)
    ? Effect.fail(error)
    : Effect.flatMap(read(error, undefined, undefined), (fault) => faultOf<E>(fault))
