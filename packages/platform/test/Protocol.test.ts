import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { assert, describe, it } from "@effect/vitest"
import * as AnthropicMessages from "@recourse/platform/AnthropicMessages"
import * as Gemini from "@recourse/platform/Gemini"
import * as OpenAiChat from "@recourse/platform/OpenAiChat"
import * as OpenAiResponses from "@recourse/platform/OpenAiResponses"
import * as Protocol from "@recourse/platform/Protocol"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Stream from "effect/Stream"
import * as TestServices from "effect/TestServices"
import { quick } from "./quick.ts"

interface Sample {
  readonly protocol: Protocol.Protocol
  readonly frames: ReadonlyArray<unknown>
  readonly parts: ReadonlyArray<string>
}

const choice = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
  usage: null
})

/** A thought, two words, and a call in two pieces, as each of the dialects says it. */
const samples: ReadonlyArray<Sample> = [
  {
    protocol: OpenAiChat.protocol,
    frames: [
      choice({ role: "assistant", content: "" }),
      choice({ reasoning_content: "hm" }),
      { choices: [{ index: 1, delta: { content: "of another choice" } }] },
      choice({ content: "Grüße " }),
      choice({ content: "🎈" }),
      choice({ tool_calls: [{ index: 0, id: "c1", function: { name: "look", arguments: "" } }] }),
      choice({ tool_calls: [{ index: 0, function: { arguments: "{\"a\":1}" } }] }),
      choice({}, "tool_calls"),
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
      "[DONE]"
    ],
    parts: [
      "Other",
      "Reasoning hm",
      "Other",
      "Text Grüße ",
      "Text 🎈",
      "ToolCall 0 c1 look ",
      "ToolCall 0 - - {\"a\":1}",
      "End Complete tool_calls",
      "Usage 3 4",
      "End Complete [DONE]"
    ]
  },
  {
    protocol: OpenAiResponses.protocol,
    frames: [
      { type: "response.created", response: { status: "in_progress", usage: null } },
      { type: "response.reasoning_summary_text.delta", output_index: 0, delta: "hm" },
      { type: "response.output_item.added", output_index: 1, item: { type: "message" } },
      { type: "response.output_text.delta", output_index: 1, delta: "Grüße " },
      { type: "response.output_text.delta", output_index: 1, delta: "🎈" },
      {
        type: "response.output_item.added",
        output_index: 2,
        item: { type: "function_call", call_id: "c1", name: "look" }
      },
      { type: "response.function_call_arguments.delta", output_index: 2, delta: "{\"a\":1}" },
      { type: "response.completed", response: { status: "completed", usage: { input_tokens: 3, output_tokens: 4 } } }
    ],
    parts: [
      "Other",
      "Reasoning hm",
      "Other",
      "Text Grüße ",
      "Text 🎈",
      "ToolCall 2 c1 look ",
      "ToolCall 2 - - {\"a\":1}",
      "Usage 3 4",
      "End Complete response.completed"
    ]
  },
  {
    protocol: AnthropicMessages.protocol,
    frames: [
      { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "xyz" } },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "ping" },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Grüße " } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "🎈" } },
      { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "c1", name: "look", input: {} } },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: "{\"a\":1}" } },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 4 } },
      { type: "message_stop" }
    ],
    parts: [
      "Usage 3 1",
      "Other",
      "Reasoning hm",
      "Other",
      "Other",
      "Other",
      "Text Grüße ",
      "Text 🎈",
      "ToolCall 2 c1 look ",
      "ToolCall 2 - - {\"a\":1}",
      "Usage undefined 4",
      "End Complete tool_use",
      "End Complete message_stop"
    ]
  },
  {
    protocol: Gemini.protocol,
    frames: [
      { candidates: [{ content: { parts: [{ text: "hm", thought: true }] } }] },
      { candidates: [{ content: { parts: [{ text: "Grüße " }, { text: "🎈" }] } }] },
      { candidates: [{ content: { parts: [{ functionCall: { name: "look", args: { a: 1 } } }] } }] },
      {
        candidates: [{
          content: { parts: [{ functionCall: { id: "c2", name: "see" } }] },
          finishReason: "STOP"
        }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4 }
      }
    ],
    parts: [
      "Reasoning hm",
      "Text Grüße ",
      "Text 🎈",
      "ToolCall 0 - look {\"a\":1}",
      "ToolCall 1 c2 see {}",
      "Usage 3 4",
      "End Complete STOP"
    ]
  }
]

const shown = (part: Protocol.Part): string => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return `${part._tag} ${part.text}`
    case "ToolCall":
      return `ToolCall ${part.index} ${part.id ?? "-"} ${part.name ?? "-"} ${part.input}`
    case "Usage":
      return `Usage ${part.input} ${part.output}`
    case "End":
      return `End ${part.end._tag} ${part.end.reason}`
    case "Other":
      return "Other"
  }
}

const sse = (frames: ReadonlyArray<unknown>, end = "\n\n"): string =>
  frames.map((frame) => `data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}${end}`).join("")

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What comes of some bytes: the parts, and the tag of the fault. */
const decoded = (
  protocol: Protocol.Protocol,
  bytes: Stream.Stream<Uint8Array, unknown>,
  options?: Protocol.Options
): Effect.Effect<readonly [parts: ReadonlyArray<string>, ended: unknown]> =>
  Effect.gen(function*() {
    const parts: Array<string> = []
    const ended = yield* Effect.either(Stream.runForEach(
      Protocol.decode(protocol, options)(bytes),
      (part) => Effect.sync(() => parts.push(shown(part)))
    ))
    const error = ended._tag === "Left" ? ended.left : undefined
    return [parts, typeof error === "object" && error !== null && "_tag" in error ? error._tag : error]
  })

const whole = (text: string) => Stream.make(bytesOf(text))

const [chat, responses, messages, gemini] = samples

describe("Protocol, what each dialect says", () => {
  for (const { frames, parts, protocol } of samples) {
    it.effect(protocol.name, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* decoded(protocol, whole(sse(frames))), [parts, undefined])
      }))

    it.effect.prop(
      `${protocol.name}: the same, however its bytes are split, and whatever its lines end with`,
      [
        FastCheck.array(FastCheck.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 }),
        FastCheck.constantFrom("\n", "\r\n", "\r"),
        FastCheck.boolean(),
        FastCheck.boolean()
      ],
      ([sizes, line, bom, comments]) =>
        Effect.gen(function*() {
          const events = frames.map((frame) =>
            `${comments ? `: still here${line}${line}` : ""}event: x${line}data: ${
              typeof frame === "string" ? frame : JSON.stringify(frame, undefined, 1).replaceAll("\n", `${line}data: `)
            }${line}${line}`
          ).join("")
          const bytes = bytesOf(`${bom ? "\uFEFF" : ""}${events}`)
          const pieces: Array<Uint8Array> = []
          let at = 0
          for (let i = 0; at < bytes.length; i++) {
            const size = sizes[i % sizes.length] ?? 1
            pieces.push(bytes.subarray(at, at + size))
            at += size
          }
          assert.deepStrictEqual(yield* decoded(protocol, Stream.fromIterable(pieces)), [parts, undefined])
        }),
      { fastCheck: { numRuns: 40 } }
    )

    it.effect(`${protocol.name}: cut at any byte it is a StreamCut, until it has ended`, () =>
      Effect.gen(function*() {
        const bytes = bytesOf(sse(frames))
        const ends = parts.findIndex((part) => part.startsWith("End"))
        for (let at = 0; at < bytes.length; at += 7) {
          const [some, ended] = yield* decoded(protocol, Stream.make(bytes.subarray(0, at)))
          assert.deepStrictEqual(some, parts.slice(0, some.length))
          assert.strictEqual(ended, some.length > ends ? undefined : "StreamCut")
        }
      }))
  }

  it.effect("one chunk of bytes gives one chunk of parts", () =>
    Effect.gen(function*() {
      const chunks = yield* Stream.runCollect(
        Stream.chunks(Protocol.decode(OpenAiChat.protocol)(whole(sse(chat?.frames ?? []))))
      )
      assert.lengthOf(Chunk.toReadonlyArray(chunks), 1)
    }))
})

describe("Protocol, what ends a stream", () => {
  const cases: ReadonlyArray<readonly [Sample | undefined, ReadonlyArray<unknown>, string | undefined]> = [
    [chat, [{ error: { message: "Overloaded", code: 529 } }], "Overloaded"],
    [chat, [{ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }], undefined],
    [chat, [{ choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] }], "ContentRefused"],
    [chat, ["upstream connect error or disconnect/reset before headers"], "Unavailable"],
    [responses, [{ type: "error", code: "server_error", message: "oops" }], "Unavailable"],
    [
      responses,
      [{ type: "response.failed", response: { error: { code: "rate_limit_exceeded", message: "slow down" } } }],
      "RateLimited"
    ],
    [
      responses,
      [{ type: "response.incomplete", response: { incomplete_details: { reason: "max_output_tokens" } } }],
      undefined
    ],
    [messages, [{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }], "Overloaded"],
    [messages, [{ type: "message_delta", delta: { stop_reason: "max_tokens" } }], undefined],
    [gemini, [{ candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] }], "GenerationMalformed"],
    [gemini, [{ promptFeedback: { blockReason: "SAFETY" } }], "ContentRefused"],
    [gemini, [{ error: { code: 503, status: "UNAVAILABLE", message: "The model is overloaded." } }], "Overloaded"]
  ]
  for (const [sample, frames, tag] of cases) {
    it.effect(`${sample?.protocol.name}: ${JSON.stringify(frames[0])}`, () =>
      Effect.gen(function*() {
        if (sample === undefined) return assert.fail("no sample")
        const before = sample.frames.slice(0, 2)
        const [, ended] = yield* decoded(sample.protocol, whole(sse([...before, ...frames, ...before])))
        assert.strictEqual(ended, tag)
      }))
  }

  it.effect("bytes that are no UTF-8, after what came before them", () =>
    Effect.gen(function*() {
      const bytes = Stream.make(bytesOf(sse([choice({ content: "a" })])), Uint8Array.of(0xff, 0xfe, 0xff))
      const [parts, ended] = yield* decoded(OpenAiChat.protocol, bytes)
      assert.deepStrictEqual(parts, ["Text a"])
      assert.strictEqual(ended, "Unrecognized")
    }))

  it.effect("a frame that is too long, and none that is not", () =>
    Effect.gen(function*() {
      const half = JSON.stringify(choice({ content: "x".repeat(600) }))
      const bytes = Stream.fromIterable(Array.from(`data: ${half}\n\n${sse(["[DONE]"])}`, bytesOf))
      assert.deepStrictEqual((yield* decoded(OpenAiChat.protocol, bytes, { frame: 500 }))[1], "Unrecognized")
      assert.deepStrictEqual((yield* decoded(OpenAiChat.protocol, bytes, { frame: 2_000 }))[1], undefined)
    }))

  it.effect("an error of the bytes is given back as it is before the end, and is none after it", () =>
    Effect.gen(function*() {
      const broken = (frames: ReadonlyArray<unknown>) => Stream.concat(whole(sse(frames)), Stream.fail("reset"))
      assert.strictEqual((yield* decoded(OpenAiChat.protocol, broken([choice({ content: "a" })])))[1], "reset")
      assert.strictEqual((yield* decoded(OpenAiChat.protocol, broken([choice({}, "stop")])))[1], undefined)
    }))

  it.effect("a last frame that lacks but its empty line counts, and half a frame does not", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* decoded(OpenAiChat.protocol, whole("data: [DONE]")), [
        ["End Complete [DONE]"],
        undefined
      ])
      assert.deepStrictEqual(yield* decoded(OpenAiChat.protocol, whole("data: {\"choices\":")), [[], "StreamCut"])
    }))
})

describe("Protocol, recovered", () => {
  /** What happens to a request: it is refused, or its answer is cut at a share of its bytes, in order or by an error. */
  type Step = { readonly status: 429 | 529 } | { readonly share: number; readonly by: "end" | "error" }

  const step: FastCheck.Arbitrary<Step> = FastCheck.oneof(
    FastCheck.record({ status: FastCheck.constantFrom<429 | 529>(429, 529) }),
    FastCheck.record({
      share: FastCheck.oneof(FastCheck.constant(1), FastCheck.double({ min: 0, max: 1, noNaN: true })),
      by: FastCheck.constantFrom<"end" | "error">("end", "error")
    })
  )

  const piecesOf = (bytes: Uint8Array, size: number): ReadonlyArray<Uint8Array> =>
    Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, i) => bytes.subarray(i * size, (i + 1) * size)
    )

  const textOf = (parts: ReadonlyArray<string>): string =>
    parts.map((part) => part.startsWith("Text ") ? part.slice(5) : "").join("")

  it.effect.prop(
    "whatever is cut where: the beginning of one answer, tool calls once and of a whole one, no request too many",
    [
      FastCheck.constantFrom(...samples),
      FastCheck.array(step, { maxLength: 8 }),
      FastCheck.integer({ min: 1, max: 400 })
    ],
    ([{ frames, parts, protocol }, script, size]) =>
      Effect.gen(function*() {
        const good = bytesOf(sse(frames))
        const kept = (share: number): Uint8Array => good.subarray(0, Math.round(good.length * share))

        // what should come of it, told from what comes of each answer by itself
        const left = { transient: 2, refused: 2 }
        let requests = 0
        let expected: ReadonlyArray<string> = []
        let ends: "whole" | "cut" | "failed" | undefined
        while (ends === undefined) {
          const now = script[requests++] ?? { share: 1, by: "end" }
          const tier = "status" in now && now.status === 429 ? "refused" : "transient"
          if ("share" in now) {
            const bytes = Stream.make(kept(now.share))
            const [some, ended] = yield* decoded(
              protocol,
              now.by === "end" ? bytes : Stream.concat(bytes, Stream.fail("reset"))
            )
            expected = some
            if (ended === undefined) ends = "whole"
            else if (textOf(some) !== "") ends = left[tier] > 0 ? "cut" : "failed"
          }
          if (ends === undefined && left[tier]-- === 0) ends = "failed"
        }

        let sent = 0
        const client = HttpClient.make((request) =>
          Effect.sync(() => {
            const now = script[sent++] ?? { share: 1, by: "end" }
            if ("status" in now) return HttpClientResponse.fromWeb(request, new Response("{}", { status: now.status }))
            const pieces = [...piecesOf(kept(now.share), size)]
            const body = new ReadableStream<Uint8Array>({
              pull: (controller) => {
                const next = pieces.shift()
                if (next !== undefined) controller.enqueue(next)
                else if (now.by === "end") controller.close()
                else controller.error(new TypeError("terminated", { cause: { code: "ECONNRESET" } }))
              }
            })
            return HttpClientResponse.fromWeb(
              request,
              new Response(body, { headers: { "content-type": "text/event-stream" } })
            )
          })
        )
        const seen: Array<string> = []
        let cut = false
        const ended = yield* Effect.either(Stream.runForEach(
          RecourseClient.stream(client, HttpClientRequest.post("http://provider/v1/any"), { protocol, policy: quick }),
          (part) =>
            Effect.sync(() => {
              if (part._tag === "Stalled") cut = true
              else if (part._tag !== "Boundary" && part._tag !== "OutputCap") seen.push(shown(part))
            })
        ))
        const tools = (all: ReadonlyArray<string>) => all.filter((part) => part.startsWith("ToolCall"))
        assert.strictEqual(ended._tag === "Left" ? "failed" : cut ? "cut" : "whole", ends)
        assert.strictEqual(sent, requests)
        assert.strictEqual(textOf(seen), ends === "failed" && textOf(expected) === "" ? "" : textOf(expected))
        assert.isTrue(textOf(parts).startsWith(textOf(seen)))
        assert.deepStrictEqual(tools(seen), ends === "whole" ? tools(parts) : [])
      }).pipe(TestServices.provideLive),
    { fastCheck: { numRuns: 200 } }
  )
})
