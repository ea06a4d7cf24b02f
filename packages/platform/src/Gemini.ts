/**
 * Gemini's `streamGenerateContent` with `alt=sse`: the first candidate of each chunk. A function call comes whole.
 *
 * @since 0.1.0
 */
import { at, listAt, namedBy, said, usageOf } from "./internal/frames.ts"
import type { Part, Protocol } from "./Protocol.ts"

const reader = () => {
  let calls = 0
  return (frame: unknown): ReadonlyArray<Part> => {
    const parts: Array<Part> = []
    for (const part of listAt(frame, "candidates", 0, "content", "parts")) {
      const text = at(part, "text")
      const call = at(part, "functionCall")
      if (said(text)) parts.push({ _tag: at(part, "thought") === true ? "Reasoning" : "Text", text })
      if (typeof call === "object" && call !== null) {
        parts.push({
          _tag: "ToolCall",
          index: calls++,
          ...namedBy(at(call, "id"), at(call, "name")),
          input: JSON.stringify(at(call, "args") ?? {})
        })
      }
    }
    parts.push(...usageOf(at(frame, "usageMetadata"), "promptTokenCount", "candidatesTokenCount"))
    return parts
  }
}

/**
 * @category protocols
 * @since 0.1.0
 */
export const protocol: Protocol = { name: "gemini", reader }
