/**
 * One exchange with a model: a prompt, and everything that the model says to it, also when its answer is cut.
 *
 * What was shown of an answer that was cut is taken up into the transcript, and the model is asked to go on from there, as often in a
 * row as a `RepairBudget` has it. Retries happen beneath, in `RecoveredLanguageModel`; a repair is a message that the model reads.
 *
 * @since 0.1.0
 */
import * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import * as RepairBudget from "@recourse/core/RepairBudget"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"

/**
 * What an exchange is made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<Part, E, R> {
  /** The transcript: `history` of a `Chat`, or a `Ref` of your own. */
  readonly history: Ref.Ref<Prompt.Prompt>
  readonly prompt: Prompt.RawInput
  /** Asks the model to go on from a transcript; `RecoveredLanguageModel.streamText`, with whatever else it is to be told. */
  readonly turn: (
    prompt: Prompt.Prompt
  ) => Stream.Stream<Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E, R>
  /** Whether a model that has reached its output cap is asked to go on, within the same budget; by default the cut is the end. */
  readonly repairOutputCap?: boolean
  /** The sentence that asks for it. */
  readonly nudge?: (cut: StreamRecovery.CutShort) => string
}

/**
 * The sentence that asks a model to go on, by default.
 *
 * @category conversions
 * @since 0.1.0
 */
export const nudge = (cut: StreamRecovery.CutShort): string =>
  `Your last message was cut off ${
    cut._tag === "Stalled" ? "by a failing connection" : "at the limit on its length"
  }. Go on exactly where it ends: repeat nothing of it, and say nothing about the cut.`

/** What a transcript takes up of a turn, however it ended: what its reader saw. */
const shown = (parts: ReadonlyArray<Response.AnyPart>): Prompt.Prompt => {
  const open = new Set<string>()
  for (const part of parts) {
    if (part.type === "text-start") open.add(part.id)
    else if (part.type === "text-end") open.delete(part.id)
  }
  const texts = parts.filter((part) => part.type === "text-delta")
  const rest = Array.from(open, (id) => texts.filter((part) => part.id === id).map(({ delta }) => delta).join(""))
    .filter((text) => text !== "")
  return Prompt.merge(
    Prompt.fromResponseParts(parts),
    rest.map((text) => ({ role: "assistant" as const, content: [{ type: "text" as const, text }] }))
  )
}

/**
 * Streams an exchange. Its parts are those of its turns; a `CutShort` that more follows was repaired, one that is the last part was
 * not. However it ends, by its end, by a failure or by an interruption, the transcript holds what was shown: the prompt, the answers,
 * and the beginning of the one that was cut.
 *
 * The budget begins anew with the exchange and with each round of tools that is complete.
 *
 * @example
 * ```ts
 * import * as Chat from "@effect/ai/Chat"
 * import * as Exchange from "@recourse/ai/Exchange"
 * import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
 * import { Effect, Stream } from "effect"
 *
 * const said = Effect.gen(function*() {
 *   const { history } = yield* Chat.empty
 *   return yield* Exchange.streamText({
 *     history,
 *     prompt: "Tell me a story.",
 *     turn: (prompt) => RecoveredLanguageModel.streamText({ prompt })
 *   }).pipe(
 *     Stream.runFold("", (text, part) => "type" in part && part.type === "text-delta" ? text + part.delta : text)
 *   )
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const streamText = <Part extends Response.AnyPart, E, R>(
  { history, nudge: sentence = nudge, prompt, repairOutputCap = false, turn }: Options<Part, E, R>
): Stream.Stream<Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E, R | RepairBudget.RepairBudget> => {
  type Out = Part | StreamRecovery.Boundary | StreamRecovery.CutShort
  const from = (
    budget: Effect.Effect.Success<typeof RepairBudget.RepairBudget>,
    transcript: Prompt.Prompt
  ): Stream.Stream<Out, E, R> =>
    Stream.suspend(() => {
      const parts: Array<Part> = []
      let cut: StreamRecovery.CutShort | undefined
      const taken = Effect.suspend(() => Ref.set(history, Prompt.merge(transcript, shown(parts))))
      const next = Effect.gen(function*() {
        if (cut === undefined) {
          if (parts.some(({ type }) => type === "tool-result")) yield* budget.clear
          return Stream.empty
        }
        if (cut.text === "" || (cut._tag === "OutputCap" && !repairOutputCap) || !(yield* budget.take)) {
          return Stream.empty
        }
        const more = Prompt.merge(yield* Ref.get(history), sentence(cut))
        return from(budget, more)
      })
      return turn(transcript).pipe(
        Stream.mapChunks((chunk) => {
          for (const part of chunk) {
            if (StreamRecovery.isCutShort(part)) cut = part
            else if (!StreamRecovery.isBoundary(part)) parts.push(part)
          }
          return chunk
        }),
        Stream.ensuring(taken),
        Stream.concat(Stream.unwrap(next))
      )
    })
  return Stream.unwrap(Effect.gen(function*() {
    const budget = yield* RepairBudget.RepairBudget
    yield* budget.clear
    return from(budget, Prompt.merge(yield* Ref.get(history), prompt))
  }))
}
