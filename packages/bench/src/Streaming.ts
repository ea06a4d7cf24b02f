import { createOpenAI } from "@ai-sdk/openai"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as OpenAiChat from "@recourse/platform/OpenAiChat"
import * as Protocol from "@recourse/platform/Protocol"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import { streamText } from "ai"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import OpenAI from "openai"
import type { Group } from "./Bench.ts"

const CHUNKS = 1_000

/** A chunk of an answer of OpenAI's chat completions. */
export const chunk = (delta: object, finish: string | null) =>
  new TextEncoder().encode(`data: ${
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: finish }]
    })
  }\n\n`)

const frames = [
  ...Array.from({ length: CHUNKS }, (_, i) => chunk({ content: `word ${i} ` }, null)),
  chunk({}, "stop"),
  new TextEncoder().encode("data: [DONE]\n\n")
]

/** An answer whose next chunk is always there: what is measured is the reading. */
const answer = (): Response => {
  let at = 0
  return new Response(
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const next = frames[at++]
        if (next === undefined) controller.close()
        else controller.enqueue(next)
      }
    }, { highWaterMark: 0 }),
    { headers: { "content-type": "text/event-stream" } }
  )
}

const url = "http://127.0.0.1/v1/chat/completions"
const request = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUnsafeJson({ model: "m", stream: true }))
const client = HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, answer())))
const messages = [{ role: "user" as const, content: "Say something." }]
const fetch: RecourseFetch.Fetch = () => Promise.resolve(answer())

const drained = async (stream: AsyncIterable<unknown>): Promise<void> => {
  for await (const part of stream) void part
}

const openai = (fetch: RecourseFetch.Fetch) => {
  const client = new OpenAI({ apiKey: "none", baseURL: "http://127.0.0.1/v1", fetch })
  return async () => drained(await client.chat.completions.create({ model: "m", messages, stream: true }))
}

const model = createOpenAI({ apiKey: "none", baseURL: "http://127.0.0.1/v1", fetch }).chat("m")

const decode = Protocol.decode(OpenAiChat.protocol)

/** What it costs to read a thousand chunks of one event each. */
export const groups: ReadonlyArray<Group> = [
  {
    name: "a thousand chunks, the parts of an answer",
    base: {
      name: "the client's own stream, decoded and recovered, without a watch",
      run: () =>
        Effect.runPromise(
          Effect.flatMap(client.execute(request), ({ stream }) =>
            Stream.runDrain(StreamRecovery.recover(decode(stream), { describe: Protocol.describe })))
        )
    },
    cases: [
      {
        name: "recovered and watched",
        run: () => Effect.runPromise(Stream.runDrain(RecourseClient.stream(client, request))),
        goal: 1.1
      },
      {
        name: "the client's own stream, decoded alone",
        run: () =>
          Effect.runPromise(
            Effect.flatMap(client.execute(request), ({ stream }) => Stream.runDrain(decode(stream)))
          )
      }
    ]
  },
  {
    name: "a thousand chunks, beside ai",
    base: { name: "ai, streamText", run: () => drained(streamText({ model, messages }).fullStream) },
    cases: [{
      name: "recovered and watched",
      run: () => Effect.runPromise(Stream.runDrain(RecourseClient.stream(client, request))),
      goal: 0.35
    }]
  },
  {
    name: "a thousand chunks, the stream of openai",
    base: { name: "openai", run: openai(fetch) },
    cases: [{ name: "openai, through RecourseFetch", run: openai(RecourseFetch.make({ fetch })) }]
  }
]
