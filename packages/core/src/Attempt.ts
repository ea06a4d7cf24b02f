/**
 * Which attempt of a call is being made, for the attempt itself to ask: to rebuild a request, or to draw a boundary where
 * another begins.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fault } from "./Fault.ts"

/**
 * The first attempt is number 1 and replaces nothing; so is any call that no recovery makes.
 *
 * @example
 * ```ts
 * import { Attempt, Recovery } from "@recourse/core"
 * import { Effect, Option } from "effect"
 *
 * const call = Effect.gen(function*() {
 *   const { number, replaces } = yield* Attempt.Attempt
 *   return Option.isNone(replaces) ? "asked as it is" : `attempt ${number}, after ${replaces.value._tag}`
 * })
 * const recovered = Recovery.recover(call)
 * ```
 *
 * @category references
 * @since 0.1.0
 */
export class Attempt extends Context.Reference<Attempt>()("@recourse/core/Attempt", {
  defaultValue: (): {
    readonly number: number
    readonly replaces: Option.Option<Fault>
    /** Tells a hold that the provider has let this attempt in, as soon as that is known; the end of an attempt tells it too. */
    readonly admitted: Effect.Effect<void>
  } => first
}) {}

/**
 * The first attempt.
 *
 * @category models
 * @since 0.1.0
 */
export const first: Context.Tag.Service<Attempt> = {
  number: 1,
  replaces: Option.none(),
  admitted: Effect.void
}
