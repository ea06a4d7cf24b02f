/**
 * What a streamed answer says, in whichever dialect: text, reasoning, pieces of tool calls, usage, and how it ended.
 *
 * A dialect is a module of its own: `OpenAiChat`, `OpenAiResponses`, `AnthropicMessages`, `Gemini`. `decode` takes the bytes of a
 * `text/event-stream` apart, however they were split. It does not build whole messages: it tells what each frame adds.
 *
 * @since 0.1.0
 */
import type * as Diagnosis from "@recourse/core/Diagnosis"
import * as Evidence from "@recourse/core/Evidence"
import type * as Fault from "@recourse/core/Fault"
import type { StreamEnd } from "@recourse/core/StreamEnd"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { decoded, Decoder } from "./internal/decoder.ts"
import { at } from "./internal/frames.ts"

/**
 * What a frame adds to an answer.
 *
 * - `ToolCall` is a piece of one: pieces with the same `index` make a call, whose `input` is JSON when they are joined. `id` and
 *   `name` come with one of the pieces.
 * - `Usage` is counted in tokens, as far as the provider has told.
 * - `Other` is a frame that adds nothing of these.
 *
 * @category models
 * @since 0.1.0
 */
export type Part =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly text: string }
  | {
    readonly _tag: "ToolCall"
    readonly index: number
    readonly id?: string
    readonly name?: string
    readonly input: string
  }
  | { readonly _tag: "Usage"; readonly input: number | undefined; readonly output: number | undefined }
  | { readonly _tag: "End"; readonly end: StreamEnd }
  | { readonly _tag: "Other"; readonly frame: unknown }

/**
 * A dialect.
 *
 * @category models
 * @since 0.1.0
 */
export interface Protocol {
  readonly name: string
  /** What reads the frames of one answer, in order; a frame is parsed JSON. Errors and ends are not its business. */
  readonly reader: () => (frame: unknown) => ReadonlyArray<Part>
}

/**
 * How bytes are taken apart.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The longest frame, in characters; 4 Mi by default. A longer one is a fault. */
  readonly frame?: number
  /** Codes of a private gateway and what they mean. */
  readonly codes?: Diagnosis.Options["codes"]
}

export {
  /**
   * A frame was longer than it may be.
   *
   * @category errors
   * @since 0.1.0
   */
  FrameTooLong
} from "./internal/decoder.ts"

/**
 * The evidence of a frame: its payload as text or parsed JSON, or the raw tail of a stream. For raw use; `decode` does it for the
 * frames that are faults.
 *
 * @example
 * ```ts
 * import * as Protocol from "@recourse/platform/Protocol"
 *
 * Protocol.evidence({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }).message // "Overloaded"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const evidence: (frame: unknown) => Evidence.Response = Evidence.fromFrame

/**
 * What a part is to `StreamRecovery`.
 *
 * @category conversions
 * @since 0.1.0
 */
export const describe = (part: Part): StreamRecovery.Description => {
  switch (part._tag) {
    case "Text":
      return part
    case "End":
      return part
    case "Reasoning":
      return { _tag: "Reasoning" }
    case "ToolCall":
      return { _tag: "Tool" }
    case "Usage":
    case "Other":
      return { _tag: "Other" }
  }
}

/**
 * The text of a part of the answer; nothing for any other part.
 *
 * @category conversions
 * @since 0.1.0
 */
export const text = (part: unknown): Option.Option<string> => {
  const own = at(part, "text")
  return at(part, "_tag") === "Text" && typeof own === "string" ? Option.some(own) : Option.none()
}

/**
 * The bytes of an event stream as the parts of an answer. It fails with the fault of an error frame, of a terminal event that
 * reports a failure, of bytes that are no UTF-8, of a frame that is too long, and with `StreamCut` where the bytes end without a
 * terminal event. Nothing that breaks after that event is a fault.
 *
 * One chunk of bytes gives at most one chunk of parts.
 *
 * @example
 * ```ts
 * import * as AnthropicMessages from "@recourse/platform/AnthropicMessages"
 * import * as Protocol from "@recourse/platform/Protocol"
 * import { Stream } from "effect"
 *
 * const bytes = Stream.make(new TextEncoder().encode("data: {\"type\":\"message_stop\"}\n\n"))
 *
 * const text = bytes.pipe(
 *   Protocol.decode(AnthropicMessages.protocol),
 *   Stream.filterMap(Protocol.text)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const decode =
  (protocol: Protocol, options: Options = {}) =>
  <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Part, E | Fault.Fault, R> =>
    StreamRecovery.fromPull(
      Effect.map(Stream.toPull(bytes), (pull) => decoded(new Decoder(protocol, options), pull))
    )
