/**
 * Anthropic's messages.
 *
 * @since 0.1.0
 */
import { at, indexOf, namedBy, said, usageOf } from "./internal/frames.ts"
import type { Part, Protocol } from "./Protocol.ts"

const usage = (value: unknown): ReadonlyArray<Part> => usageOf(value, "input_tokens", "output_tokens")

const read = (frame: unknown): ReadonlyArray<Part> => {
  const index = indexOf(at(frame, "index"))
  switch (at(frame, "type")) {
    case "message_start":
      return usage(at(frame, "message", "usage"))
    case "content_block_start": {
      const block = at(frame, "content_block")
      const text = at(block, "text")
      return at(block, "type") === "tool_use"
        ? [{ _tag: "ToolCall", index, ...namedBy(at(block, "id"), at(block, "name")), input: "" }]
        : said(text)
        ? [{ _tag: "Text", text }]
        : []
    }
    case "content_block_delta": {
      const text = at(frame, "delta", "text")
      const thinking = at(frame, "delta", "thinking")
      const input = at(frame, "delta", "partial_json")
      return said(text)
        ? [{ _tag: "Text", text }]
        : said(thinking)
        ? [{ _tag: "Reasoning", text: thinking }]
        : said(input)
        ? [{ _tag: "ToolCall", index, input }]
        : []
    }
    case "message_delta":
      return usage(at(frame, "usage"))
    default:
      return []
  }
}

/**
 * @category protocols
 * @since 0.1.0
 */
export const protocol: Protocol = { name: "anthropic-messages", reader: () => read }
