/** What a good answer looks like in one dialect. */
interface Dialect {
  readonly plain: (text: string, model: string) => unknown
  /** The frames of a streamed answer, each with the name of its event if the dialect names events. */
  readonly frames: (text: string, model: string) => ReadonlyArray<{ readonly event?: string; readonly data: unknown }>
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

const chat: Dialect = {
  plain: (text, model) => ({
    id: "chatcmpl-scripted",
    object: "chat.completion",
    created: CREATED,
    model,
    choices: [{
      index: 0,
      message: { role: "assistant", content: text, refusal: null },
      logprobs: null,
      finish_reason: "stop"
    }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  }),
  frames: (text, model) => [
    chunk(model, { role: "assistant", content: "" }, null),
    ...words(text).map((content) => chunk(model, { content }, null)),
    chunk(model, {}, "stop"),
    { data: "[DONE]" }
  ]
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

const messages: Dialect = {
  plain: (text, model) => ({
    ...message(model),
    content: [{ type: "text", text, citations: null }],
    stop_reason: "end_turn"
  }),
  frames: (text, model) => [
    event({ type: "message_start", message: { ...message(model), content: [], stop_reason: null } }),
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } }),
    ...words(text).map((word) =>
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: word } })
    ),
    event({ type: "content_block_stop", index: 0 }),
    event({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
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

const responses: Dialect = {
  plain: (text, model) => response(model, "completed", [item("completed", [part(text)])]),
  frames: (text, model) => {
    const at = { item_id: "msg_scripted", output_index: 0, content_index: 0 }
    return [
      event({ type: "response.created", response: response(model, "in_progress", []) }),
      event({ type: "response.output_item.added", output_index: 0, item: item("in_progress", []) }),
      event({ type: "response.content_part.added", ...at, part: part("") }),
      ...words(text).map((delta) => event({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      event({ type: "response.output_text.done", ...at, text, logprobs: [] }),
      event({ type: "response.content_part.done", ...at, part: part(text) }),
      event({ type: "response.output_item.done", output_index: 0, item: item("completed", [part(text)]) }),
      event({
        type: "response.completed",
        response: response(model, "completed", [item("completed", [part(text)])])
      })
    ].map((frame, i) => ({ event: frame.event, data: { ...frame.data, sequence_number: i } }))
  }
}

const dialectOf = (path: string): Dialect =>
  path.endsWith("/messages") ? messages : path.endsWith("/responses") ? responses : chat

/** What a request says about the answer that it wants. */
const wanted = (body: string): { readonly stream: boolean; readonly model: string } => {
  try {
    const { model, stream }: { readonly model?: unknown; readonly stream?: unknown } = JSON.parse(body)
    return { stream: stream === true, model: typeof model === "string" ? model : "scripted" }
  } catch {
    return { stream: false, model: "scripted" }
  }
}

/** A good answer in the dialect of the path, whole or as the pieces of a stream. */
export const answerTo = (
  path: string,
  body: string,
  text: string
): { readonly contentType: string; readonly pieces: ReadonlyArray<string> } => {
  const { model, stream } = wanted(body)
  const dialect = dialectOf(path)
  return stream
    ? {
      contentType: "text/event-stream",
      pieces: dialect.frames(text, model).map(({ data, event }) =>
        `${event === undefined ? "" : `event: ${event}\n`}data: ${
          typeof data === "string" ? data : JSON.stringify(data)
        }\n\n`
      )
    }
    : { contentType: "application/json", pieces: [JSON.stringify(dialect.plain(text, model))] }
}
