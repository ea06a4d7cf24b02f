import { assert, describe, it } from "@effect/vitest"
import * as StreamEnd from "@recourse/core/StreamEnd"

describe("StreamEnd", () => {
  const frames: ReadonlyArray<readonly [tag: string | undefined, frame: unknown]> = [
    ["Complete", "[DONE]"],
    ["Complete", { type: "message_stop" }],
    ["Complete", { type: "response.completed", response: {} }],
    ["Complete", { choices: [{ finish_reason: "stop" }] }],
    ["Complete", { type: "message_delta", delta: { stop_reason: "end_turn" } }],
    ["Complete", { candidates: [{ finishReason: "STOP" }] }],
    ["Complete", { messageStop: { stopReason: "end_turn" } }],
    ["Complete", { done: true }],
    ["Complete", { choices: [{ finish_reason: "a_word_of_tomorrow" }] }],
    ["OutputCap", { choices: [{ finish_reason: "length" }] }],
    ["OutputCap", { type: "message_delta", delta: { stop_reason: "max_tokens" } }],
    ["OutputCap", { candidates: [{ finishReason: "MAX_TOKENS" }] }],
    ["OutputCap", { type: "response.incomplete", response: { incomplete_details: { reason: "max_output_tokens" } } }],
    ["OutputCap", { type: "response.incomplete" }],
    ["Refused", { type: "response.incomplete", response: { incomplete_details: { reason: "content_filter" } } }],
    ["Refused", { choices: [{ finish_reason: "content_filter" }] }],
    ["Refused", { promptFeedback: { blockReason: "SAFETY" } }],
    ["Refused", { promptFeedback: { blockReason: "OTHER" } }],
    ["Refused", { finishReason: "content-filter" }],
    ["Complete", { type: "message-end", delta: { finish_reason: "COMPLETE" } }],
    ["Refused", { type: "message_delta", delta: { stop_reason: "refusal" } }],
    ["Malformed", { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] }],
    ["Malformed", { candidates: [{ finishReason: "TOO_MANY_TOOL_CALLS" }] }],
    ["Failed", { type: "response.failed" }],
    ["Failed", { choices: [{ finish_reason: "error" }] }],
    ["Overloaded", { choices: [{ finish_reason: "insufficient_system_resource" }] }],
    [undefined, { choices: [{ finish_reason: null, delta: { content: "a" } }] }],
    [undefined, { type: "content_block_delta" }],
    [undefined, { done: false }],
    [undefined, "DONE"],
    [undefined, null],
    [undefined, [{ finish_reason: "stop" }]]
  ]
  it.each(frames)("%s: %j", (tag, frame) => {
    assert.strictEqual(StreamEnd.fromFrame(frame)?._tag, tag)
  })
})
