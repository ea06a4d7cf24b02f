/** What a model answers. */
export interface Said {
  readonly text: string
  readonly reasoning?: string | undefined
  readonly tool?: { readonly name: string; readonly input: unknown } | undefined
  /** Whether it reached its output cap. */
  readonly capped?: boolean | undefined
}

interface Frame {
  /** The name of its event, if the dialect names events. */
  readonly event?: string
  readonly data: unknown
}

/** What an answer looks like in one dialect. */
interface Dialect {
  readonly plain: (said: Said, model: string) => unknown
  /** The frames of a streamed answer: those of its content, and those that end it. */
  readonly frames: (said: Said, model: string, usage: boolean) => {
    readonly content: ReadonlyArray<Frame>
    readonly end: ReadonlyArray<Frame>
  }
  /** A frame that reports an error. */
  readonly error: Frame
  /** The frames that end a stream by failing. */
  readonly failure: (model: string) => ReadonlyArray<Frame>
}

const OVERLOADED = "The model is overloaded, try again later."

const inputOf = (tool: NonNullable<Said["tool"]>): string => JSON.stringify(tool.input)

/** A text in two pieces. */
const halves = (text: string): ReadonlyArray<string> => {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}

const CREATED = 1_767_225_600

const words = (text: string): ReadonlyArray<string> => text.match(/\S+\s*/g) ?? []

const chunk = (model: string, delta: object, finish: string | null) => ({
  data: {
    id: "chatcmpl-scripted",
    object: "chat.completion.chunk",
    created: CREATED,
    model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  }
})

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

const chatStop = ({ capped, tool }: Said): string =>
  capped === true ? "length" : tool === undefined ? "stop" : "tool_calls"

const chatCall = ({ name }: NonNullable<Said["tool"]>, input: string) => ({
  id: "call_scripted",
  type: "function",
  function: { name, arguments: input }
})

const chat: Dialect = {
  plain: (said, model) => ({
    id: "chatcmpl-scripted",
    object: "chat.completion",
    created: CREATED,
    model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: said.text,
        refusal: null,
        ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
        ...(said.tool === undefined ? {} : { tool_calls: [chatCall(said.tool, inputOf(said.tool))] })
      },
      logprobs: null,
      finish_reason: chatStop(said)
    }],
    usage: USAGE
  }),
  frames: (said, model, usage) => ({
    content: [
      chunk(model, { role: "assistant", content: "" }, null),
      ...words(said.reasoning ?? "").map((text) => chunk(model, { reasoning_content: text }, null)),
      ...words(said.text).map((content) => chunk(model, { content }, null)),
      ...(said.tool === undefined ? [] : [
        chunk(model, { tool_calls: [{ index: 0, ...chatCall(said.tool, "") }] }, null),
        ...halves(inputOf(said.tool)).map((input) =>
          chunk(model, { tool_calls: [{ index: 0, function: { arguments: input } }] }, null)
        )
      ])
    ],
    end: [
      chunk(model, {}, chatStop(said)),
      ...usage ? [{ data: { ...chunk(model, {}, null).data, choices: [], usage: USAGE } }] : [],
      { data: "[DONE]" }
    ]
  }),
  error: { data: { error: { message: OVERLOADED, type: "overloaded_error", code: "server_overloaded" } } },
  failure: (model) => [chunk(model, {}, "error"), { data: "[DONE]" }]
}

const event = <T extends { readonly type: string }>(data: T) => ({ event: data.type, data })

const message = (model: string) => ({
  id: "msg_scripted",
  type: "message",
  role: "assistant",
  model,
  stop_sequence: null,
  usage: {
    input_tokens: 1,
    output_tokens: 1,
    cache_creation: null,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    server_tool_use: null,
    service_tier: null
  }
})

const messagesStop = ({ capped, tool }: Said): string =>
  capped === true ? "max_tokens" : tool === undefined ? "end_turn" : "tool_use"

const block = (index: number, start: object, deltas: ReadonlyArray<object>): ReadonlyArray<Frame> => [
  event({ type: "content_block_start", index, content_block: start }),
  ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
  event({ type: "content_block_stop", index })
]

const messages: Dialect = {
  plain: (said, model) => ({
    ...message(model),
    content: [
      ...(said.reasoning === undefined ? [] : [{ type: "thinking", thinking: said.reasoning, signature: "scripted" }]),
      { type: "text", text: said.text, citations: null },
      ...(said.tool === undefined
        ? []
        : [{ type: "tool_use", id: "toolu_scripted", name: said.tool.name, input: said.tool.input }])
    ],
    stop_reason: messagesStop(said)
  }),
  frames: (said, model) => {
    const { reasoning, text, tool } = said
    const first = reasoning === undefined ? 0 : 1
    return {
      content: [
        event({ type: "message_start", message: { ...message(model), content: [], stop_reason: null } }),
        ...(reasoning === undefined ? [] : block(0, { type: "thinking", thinking: "", signature: "" }, [
          ...words(reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: "scripted" }
        ])),
        ...block(
          first,
          { type: "text", text: "", citations: null },
          words(text).map((word) => ({ type: "text_delta", text: word }))
        ),
        ...(tool === undefined ? [] : block(
          first + 1,
          { type: "tool_use", id: "toolu_scripted", name: tool.name, input: {} },
          halves(inputOf(tool)).map((partial_json) => ({ type: "input_json_delta", partial_json }))
        ))
      ],
      end: [
        event({
          type: "message_delta",
          delta: { stop_reason: messagesStop(said), stop_sequence: null },
          usage: {
            input_tokens: 1,
            output_tokens: 1,
            cache_creation_input_tokens: null,
            cache_read_input_tokens: null,
            server_tool_use: null
          }
        }),
        event({ type: "message_stop" })
      ]
    }
  },
  error: event({ type: "error", error: { type: "overloaded_error", message: OVERLOADED } }),
  failure: () => [event({ type: "error", error: { type: "api_error", message: "Internal server error" } })]
}

const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })

const item = (status: string, content: ReadonlyArray<unknown>) => ({
  id: "msg_scripted",
  type: "message",
  status,
  role: "assistant",
  content
})

const response = (model: string, status: string, output: ReadonlyArray<unknown>) => ({
  id: "resp_scripted",
  object: "response",
  created_at: CREATED,
  status,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model,
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
  usage: {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 2
  },
  user: null
})

const itemsOf = ({ reasoning, text, tool }: Said) => {
  const said = item("completed", [part(text)])
  return [
    ...(reasoning === undefined
      ? []
      : [{ id: "rs_scripted", type: "reasoning", summary: [{ type: "summary_text", text: reasoning }] }]),
    said,
    ...(tool === undefined ? [] : [{
      id: "fc_scripted",
      type: "function_call",
      status: "completed",
      call_id: "call_scripted",
      name: tool.name,
      arguments: inputOf(tool)
    }])
  ]
}

const ended = (said: Said, model: string) =>
  said.capped === true
    ? { ...response(model, "incomplete", itemsOf(said)), incomplete_details: { reason: "max_output_tokens" } }
    : response(model, "completed", itemsOf(said))

const numbered = (frames: ReadonlyArray<{ readonly event: string; readonly data: object }>, from: number) =>
  frames.map((frame, i) => ({ event: frame.event, data: { ...frame.data, sequence_number: from + i } }))

const responses: Dialect = {
  plain: ended,
  frames: (said, model) => {
    const { reasoning, text, tool } = said
    const first = reasoning === undefined ? 0 : 1
    const thought = { item_id: "rs_scripted", output_index: 0, summary_index: 0 }
    const at = { item_id: "msg_scripted", output_index: first, content_index: 0 }
    const call = { item_id: "fc_scripted", output_index: first + 1 }
    const items = itemsOf(said)
    const content = numbered([
      event({ type: "response.created", response: response(model, "in_progress", []) }),
      ...(reasoning === undefined ? [] : [
        event({
          type: "response.output_item.added",
          output_index: 0,
          item: { id: "rs_scripted", type: "reasoning", summary: [] }
        }),
        event({ type: "response.reasoning_summary_part.added", ...thought, part: { type: "summary_text", text: "" } }),
        ...words(reasoning).map((delta) => event({ type: "response.reasoning_summary_text.delta", ...thought, delta })),
        event({ type: "response.reasoning_summary_text.done", ...thought, text: reasoning }),
        event({
          type: "response.reasoning_summary_part.done",
          ...thought,
          part: { type: "summary_text", text: reasoning }
        }),
        event({ type: "response.output_item.done", output_index: 0, item: items[0] })
      ]),
      event({ type: "response.output_item.added", output_index: first, item: item("in_progress", []) }),
      event({ type: "response.content_part.added", ...at, part: part("") }),
      ...words(text).map((delta) => event({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      event({ type: "response.output_text.done", ...at, text, logprobs: [] }),
      event({ type: "response.content_part.done", ...at, part: part(text) }),
      event({ type: "response.output_item.done", output_index: first, item: items[first] }),
      ...(tool === undefined ? [] : [
        event({
          type: "response.output_item.added",
          output_index: first + 1,
          item: {
            id: "fc_scripted",
            type: "function_call",
            status: "in_progress",
            call_id: "call_scripted",
            name: tool.name,
            arguments: ""
          }
        }),
        ...halves(inputOf(tool)).map((delta) =>
          event({ type: "response.function_call_arguments.delta", ...call, delta })
        ),
        event({
          type: "response.function_call_arguments.done",
          ...call,
          name: tool.name,
          arguments: inputOf(tool)
        }),
        event({ type: "response.output_item.done", output_index: first + 1, item: items[first + 1] })
      ])
    ], 0)
    return {
      content,
      end: numbered([
        event({
          type: said.capped === true ? "response.incomplete" : "response.completed",
          response: ended(said, model)
        })
      ], content.length)
    }
  },
  error: event({ type: "error", code: "server_overloaded", message: OVERLOADED, param: null, sequence_number: 1 }),
  failure: (model) =>
    numbered([
      event({
        type: "response.failed",
        response: {
          ...response(model, "failed", []),
          error: { code: "server_error", message: "The server had an error while processing your request." }
        }
      })
    ], 1)
}

const candidate = (model: string, parts: ReadonlyArray<object>, finish?: string) => ({
  data: {
    candidates: [{
      content: { role: "model", parts },
      index: 0,
      ...(finish === undefined ? {} : { finishReason: finish })
    }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: model,
    responseId: "scripted"
  }
})

const geminiParts = ({ reasoning, text, tool }: Said): ReadonlyArray<object> => [
  ...words(reasoning ?? "").map((thought) => ({ text: thought, thought: true })),
  ...words(text).map((word) => ({ text: word })),
  ...(tool === undefined ? [] : [{ functionCall: { name: tool.name, args: tool.input } }])
]

const geminiStop = ({ capped }: Said): string => capped === true ? "MAX_TOKENS" : "STOP"

const gemini: Dialect = {
  plain: (said, model) => candidate(model, geminiParts(said), geminiStop(said)).data,
  frames: (said, model) => ({
    content: geminiParts(said).map((part) => candidate(model, [part])),
    end: [candidate(model, [{ text: "" }], geminiStop(said))]
  }),
  error: { data: { error: { code: 503, message: OVERLOADED, status: "UNAVAILABLE" } } },
  failure: (model) => [candidate(model, [], "MALFORMED_FUNCTION_CALL")]
}

const dialectOf = (path: string): Dialect =>
  path.endsWith("/messages")
    ? messages
    : path.endsWith("/responses")
    ? responses
    : /:(?:streamGenerateContent|generateContent)$/.test(path)
    ? gemini
    : chat

/** What a request says about the answer that it wants. */
const wanted = (
  path: string,
  body: string
): { readonly stream: boolean; readonly model: string; readonly usage: boolean } => {
  const streams = path.endsWith(":streamGenerateContent")
  const named = /\/models\/([^/:]+)/.exec(path)?.[1] ?? "scripted"
  try {
    const { model, stream, stream_options: options }: {
      readonly model?: unknown
      readonly stream?: unknown
      readonly stream_options?: { readonly include_usage?: unknown } | null
    } = JSON.parse(body)
    return {
      stream: streams || stream === true,
      model: typeof model === "string" ? model : named,
      usage: options?.include_usage === true
    }
  } catch {
    return { stream: streams, model: named, usage: false }
  }
}

/**
 * How a streamed answer ends: by its dialect's terminal event, by none at all, by an error frame, or by a terminal event that
 * reports a failure. All but the first after as many frames of its content as are kept.
 */
export type Ending = "terminal" | "nothing" | "error" | "failure"

/** An answer in the dialect of the path, whole or as the pieces of a stream. */
export const answerTo = (
  path: string,
  body: string,
  said: Said,
  ending: Ending = "terminal",
  kept?: number
): { readonly contentType: string; readonly pieces: ReadonlyArray<string> } => {
  const { model, stream, usage } = wanted(path, body)
  const dialect = dialectOf(path)
  if (!stream) return { contentType: "application/json", pieces: [JSON.stringify(dialect.plain(said, model))] }
  const { content, end } = dialect.frames(said, model, usage)
  const ends = { terminal: end, nothing: [], error: [dialect.error], failure: dialect.failure(model) }[ending]
  return {
    contentType: "text/event-stream",
    pieces: [...ending === "terminal" ? content : content.slice(0, kept), ...ends].map(({ data, event }) =>
      `${event === undefined ? "" : `event: ${event}\n`}data: ${
        typeof data === "string" ? data : JSON.stringify(data)
      }\n\n`
    )
  }
}
