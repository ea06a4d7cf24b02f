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
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
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
  /** How often in a row it is asked to; `RepairBudget.make()` by default, three times. One conversation's, if it is shared. */
  readonly budget?: Context.Tag.Service<RepairBudget.RepairBudget>
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

/**
 * What a transcript takes up of a turn: what its reader saw. Of one that did not end in order, a call whose tool has not answered is left
 * out: providers refuse a transcript with an open one.
 */
const shown = (all: ReadonlyArray<Response.AnyPart>, inOrder: boolean): Prompt.Prompt => {
  const answered = new Set(all.map((part) => part.type === "tool-result" ? part.id : undefined))
  const parts = inOrder ? all : all.filter((part) => part.type !== "tool-call" || answered.has(part.id))
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
 * and the beginning of the one that was cut. A call whose tool has not answered by then is left out.
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
export const streamText = <Part extends Response.AnyPart, E, R>({
  budget = RepairBudget.make(),
  history,
  nudge: sentence = nudge,
  prompt,
  repairOutputCap = false,
  turn
}: Options<Part, E, R>): Stream.Stream<Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E, R> => {
  type Out = Part | StreamRecovery.Boundary | StreamRecovery.CutShort
  const from = (asked: Prompt.RawInput): Stream.Stream<Out, E, R> =>
    Stream.unwrap(Effect.map(Ref.get(history), (before) => {
      const parts: Array<Part> = []
      let cut: StreamRecovery.CutShort | undefined
      // a tool may have added to it meanwhile
      const taken = (exit: Exit.Exit<unknown, E>) =>
        Ref.update(
          history,
          (now) => Prompt.merge(now, Prompt.merge(Prompt.make(asked), shown(parts, Exit.isSuccess(exit))))
        )
      const next = Effect.gen(function*() {
        if (cut === undefined) {
          if (parts.some(({ type }) => type === "tool-result")) yield* budget.clear
          return Stream.empty
        }
        return cut.text === "" || (cut._tag === "OutputCap" && !repairOutputCap) || !(yield* budget.take)
          ? Stream.empty
          : from(sentence(cut))
      })
      return turn(Prompt.merge(before, asked)).pipe(
        Stream.mapChunks((chunk) => {
          for (const part of chunk) {
            if (StreamRecovery.isCutShort(part)) cut = part
            else if (!StreamRecovery.isBoundary(part)) parts.push(part)
          }
          return chunk
        }),
        Stream.ensuringWith(taken),
        Stream.concat(Stream.unwrap(next))
      )
    }))
  return Stream.unwrap(Effect.as(budget.clear, from(prompt)))
}
