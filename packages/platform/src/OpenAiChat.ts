/**
 * Chat completions, as OpenAI streams them, and everybody who is compatible: the first choice of each chunk.
 *
 * @since 0.1.0
 */
import { at, indexOf, listAt, namedBy, said, usageOf } from "./internal/frames.ts"
import type { Part, Protocol } from "./Protocol.ts"

const read = (frame: unknown): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  const choice = listAt(frame, "choices").find((choice) => indexOf(at(choice, "index")) === 0)
  const delta = at(choice, "delta")
  for (const key of ["reasoning_content", "reasoning"]) {
    const text = at(delta, key)
    if (said(text)) {
      parts.push({ _tag: "Reasoning", text })
      break
    }
  }
  for (const key of ["content", "refusal"]) {
    const text = at(delta, key)
    if (said(text)) parts.push({ _tag: "Text", text })
  }
  for (const call of listAt(delta, "tool_calls")) {
    const input = at(call, "function", "arguments")
    parts.push({
      _tag: "ToolCall",
      index: indexOf(at(call, "index")),
      ...namedBy(at(call, "id"), at(call, "function", "name")),
      input: said(input) ? input : ""
    })
  }
  const old = at(delta, "function_call")
  if (typeof old === "object" && old !== null) {
    const input = at(old, "arguments")
    parts.push({ _tag: "ToolCall", index: 0, ...namedBy(undefined, at(old, "name")), input: said(input) ? input : "" })
  }
  parts.push(...usageOf(at(frame, "usage"), "prompt_tokens", "completion_tokens"))
  return parts
}

/**
 * @category protocols
 * @since 0.1.0
 */
export const protocol: Protocol = { name: "openai-chat", reader: () => read }
