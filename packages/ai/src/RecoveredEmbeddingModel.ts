/**
 * An `EmbeddingModel` of `@effect/ai` over another one, whose faults are retried, held or surfaced beneath it.
 *
 * Behind the tag every error is an `AiError`, of which a fault is the cause; `embed` and `embedMany` of this module fail with faults.
 *
 * A retry asks for all of its inputs again, also for those of batches that were answered. The model beneath must not have a `cache`: it
 * keeps failures too, and would answer each retry with the last one. One that loads on a runtime of its own (`layerDataLoader`) is heard
 * by no `RecourseClient.Witness`; its errors are read as they are.
 *
 * @since 0.1.0
 */
import type * as AiError from "@effect/ai/AiError"
import * as EmbeddingModel from "@effect/ai/EmbeddingModel"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { faultOf, fold, type Free, type Held, read, recovered } from "./internal/faults.ts"

/**
 * How a model is recovered, as `RecoveredLanguageModel` has it.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = Free | Held

const make = (
  { codes, ...recovery }: Options,
  hold: Context.Tag.Service<Hold.Hold> | undefined
): Effect.Effect<EmbeddingModel.Service, never, EmbeddingModel.EmbeddingModel> =>
  Effect.map(EmbeddingModel.EmbeddingModel, (inner) => {
    const under = <A>(
      method: string,
      call: Effect.Effect<A, AiError.AiError>
    ): Effect.Effect<A, AiError.AiError> => {
      const attempt = Effect.suspend(() => {
        // of several batches the first fault is the one that the call fails with
        let first: Fault.Fault | undefined
        const witness = {
          get fault() {
            return first
          },
          set fault(fault) {
            first ??= fault
          }
        }
        return Effect.catchAll(
          Effect.provideService(call, RecourseClient.Witness, witness),
          (error) => Effect.flatMap(read(error, first, codes), Effect.fail)
        )
      })
      return Effect.mapError(
        recovered(attempt, recovery, hold),
        fold("RecoveredEmbeddingModel", method)
      )
    }
    return {
      embed: (input) => under("embed", inner.embed(input)),
      embedMany: (input, options) => under("embedMany", inner.embedMany(input, options))
    }
  })

/**
 * The `EmbeddingModel` that is provided to it, recovered.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer(
  options: Held
): Layer.Layer<EmbeddingModel.EmbeddingModel, never, EmbeddingModel.EmbeddingModel | Hold.Hold>
export function layer(
  options?: Free
): Layer.Layer<EmbeddingModel.EmbeddingModel, never, EmbeddingModel.EmbeddingModel>
export function layer(
  options: Options = {}
): Layer.Layer<EmbeddingModel.EmbeddingModel, never, EmbeddingModel.EmbeddingModel | Hold.Hold> {
  return Layer.effect(
    EmbeddingModel.EmbeddingModel,
    options.target === undefined
      ? make(options, undefined)
      : Effect.flatMap(Hold.Hold, (hold) => make(options, hold))
  )
}

/**
 * `embed` of the model, with faults as named tags.
 *
 * @category combinators
 * @since 0.1.0
 */
export const embed = (input: string): Effect.Effect<Array<number>, Fault.Fault, EmbeddingModel.EmbeddingModel> =>
  Effect.flatMap(EmbeddingModel.EmbeddingModel, (model) => Effect.catchAll(model.embed(input), faultOf))

/**
 * `embedMany` of the model, with faults as named tags.
 *
 * @category combinators
 * @since 0.1.0
 */
export const embedMany = (
  ...[input, options]: Parameters<EmbeddingModel.Service["embedMany"]>
): Effect.Effect<Array<Array<number>>, Fault.Fault, EmbeddingModel.EmbeddingModel> =>
  Effect.flatMap(EmbeddingModel.EmbeddingModel, (model) => Effect.catchAll(model.embedMany(input, options), faultOf))
