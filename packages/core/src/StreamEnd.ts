/**
 * How a streamed or whole answer says that it has ended: one table of terminal frames and stop reasons, shared by
 * everything that reads a stream.
 *
 * @since 0.1.0
 */
import { isList, isRecord, peek } from "./internal/peek.ts"

/**
 * What the end of an answer means. `Complete`: the protocol was kept to its end. `OutputCap`: the answer reached the
 * output limit; its text is good as far as it goes. `Failed`, `Overloaded`, `Malformed` and `Refused` are faults.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamEnd {
  readonly _tag: "Complete" | "OutputCap" | "Failed" | "Overloaded" | "Malformed" | "Refused"
  /** The provider's own word: `[DONE]`, `message_stop`, `max_tokens`, `MALFORMED_FUNCTION_CALL`. */
  readonly reason: string
}

const words: Readonly<Record<StreamEnd["_tag"], ReadonlyArray<string>>> = {
  Complete: [
    "stop",
    "end_turn",
    "tool_use",
    "tool_calls",
    "function_call",
    "stop_sequence",
    "pause_turn",
    "complete",
    "completed",
    "eos",
    "eos_token",
    "done",
    "tool_call",
    "COMPLETE",
    "STOP",
    "STOP_SEQUENCE"
  ],
  OutputCap: [
    "length",
    "max_tokens",
    "max_output_tokens",
    "MAX_TOKENS",
    "model_length",
    "model_context_window_exceeded"
  ],
  // OpenRouter and Cohere (error), z.ai (network_error)
  Failed: ["error", "ERROR", "TIMEOUT", "network_error", "failed"],
  // DeepSeek
  Overloaded: ["insufficient_system_resource"],
  // Gemini's FinishReason, Bedrock's StopReason, Groq
  Malformed: [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "malformed_function_call",
    "malformed_model_output",
    "malformed_tool_use",
    "tool_use_failed"
  ],
  // OpenAI, the AI SDK, Anthropic, Gemini's FinishReason, Bedrock, z.ai, Cohere
  Refused: [
    "content_filter",
    "content-filter",
    "refusal",
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "JAILBREAK",
    "guardrail_intervened",
    "content_filtered",
    "sensitive",
    "ERROR_TOXIC"
  ]
}

const table: ReadonlyMap<string, StreamEnd> = new Map(
  (["Complete", "OutputCap", "Failed", "Overloaded", "Malformed", "Refused"] as const).flatMap((_tag) =>
    words[_tag].map((reason) => [reason, { _tag, reason }] as const)
  )
)

/**
 * What a stop reason means, whichever dialect it is from; nothing for a word that no dialect uses.
 *
 * @example
 * ```ts
 * import * as StreamEnd from "@recourse/core/StreamEnd"
 *
 * StreamEnd.fromStopReason("max_tokens")?._tag // "OutputCap"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromStopReason = (reason: string): StreamEnd | undefined => table.get(reason)

const stopKeys = ["finish_reason", "finishReason", "stop_reason", "stopReason"] as const

const reasonOf = (node: unknown): string | undefined => {
  for (const key of stopKeys) {
    const reason = peek(node, key)
    if (typeof reason === "string" && reason !== "" && reason !== "null") return reason
  }
  return undefined
}

/** The stop reason of a parsed frame or whole answer. */
const stopOf = (frame: unknown): string | undefined => {
  for (const key of ["choices", "candidates"]) {
    const list = peek(frame, key)
    const reason = isList(list) ? reasonOf(peek(list, "0")) : undefined
    if (reason !== undefined) return reason
  }
  return reasonOf(peek(frame, "delta")) ?? reasonOf(frame) ?? reasonOf(peek(frame, "messageStop"))
}

const complete = (reason: string): StreamEnd => ({ _tag: "Complete", reason })

/** @internal The frames that end their stream by their type alone. */
export const byType: ReadonlyMap<string, (type: string, frame: unknown) => StreamEnd> = new Map([
  ["message_stop", complete],
  ["response.completed", complete],
  ["response.done", complete],
  ["response.failed", (type: string): StreamEnd => ({ _tag: "Failed", reason: type })],
  ["response.incomplete", (type: string, frame: unknown): StreamEnd => {
    const reason = peek(peek(peek(frame, "response"), "incomplete_details"), "reason")
    return (typeof reason === "string" ? fromStopReason(reason) : undefined) ?? { _tag: "OutputCap", reason: type }
  }]
])

/**
 * Whether a frame ends its stream, and how: `[DONE]`, Anthropic's `message_stop` and `message_delta`, OpenAI's
 * `response.completed`, `response.incomplete` and `response.failed`, Ollama's `done`, Gemini's
 * `promptFeedback.blockReason`, and a stop reason of any dialect. A frame that ends nothing gives nothing. It reads an
 * already split frame: the payload text or its parsed JSON, never raw SSE.
 *
 * @example
 * ```ts
 * import * as StreamEnd from "@recourse/core/StreamEnd"
 *
 * StreamEnd.fromFrame("[DONE]")?._tag // "Complete"
 * StreamEnd.fromFrame({ type: "content_block_delta" }) // undefined
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromFrame = (frame: unknown): StreamEnd | undefined => {
  if (typeof frame === "string") return frame.trim() === "[DONE]" ? complete("[DONE]") : undefined
  if (!isRecord(frame)) return undefined
  const type = peek(frame, "type")
  const ended = typeof type === "string" ? byType.get(type) : undefined
  if (typeof type === "string" && ended !== undefined) return ended(type, frame)
  const stop = stopOf(frame)
  if (stop !== undefined) return fromStopReason(stop) ?? complete(stop)
  // what is blocked is refused, whatever for
  const blocked = peek(peek(frame, "promptFeedback"), "blockReason")
  if (typeof blocked === "string") return { _tag: "Refused", reason: blocked }
  return peek(frame, "done") === true ? complete("done") : undefined
}
