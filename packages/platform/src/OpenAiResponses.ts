/**
 * OpenAI's responses.
 *
 * @since 0.1.0
 */
import { at, indexOf, namedBy, said, usageOf } from "./internal/frames.ts"
import type { Part, Protocol } from "./Protocol.ts"

const read = (frame: unknown): ReadonlyArray<Part> => {
  const delta = at(frame, "delta")
  const index = indexOf(at(frame, "output_index"))
  switch (at(frame, "type")) {
    case "response.output_text.delta":
    case "response.refusal.delta":
      return said(delta) ? [{ _tag: "Text", text: delta }] : []
    case "response.reasoning_text.delta":
    case "response.reasoning_summary_text.delta":
      return said(delta) ? [{ _tag: "Reasoning", text: delta }] : []
    case "response.output_item.added": {
      const item = at(frame, "item")
      const type = at(item, "type")
      return type === "function_call" || type === "custom_tool_call"
        ? [{ _tag: "ToolCall", index, ...namedBy(at(item, "call_id"), at(item, "name")), input: "" }]
        : []
    }
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      return said(delta) ? [{ _tag: "ToolCall", index, input: delta }] : []
    default:
      return usageOf(at(frame, "response", "usage"), "input_tokens", "output_tokens")
  }
}

/**
 * @category protocols
 * @since 0.1.0
 */
export const protocol: Protocol = { name: "openai-responses", reader: () => read }
