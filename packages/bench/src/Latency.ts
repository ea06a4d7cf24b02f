import { createOpenAI } from "@ai-sdk/openai"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as OpenAiChat from "@recourse/platform/OpenAiChat"
import * as Protocol from "@recourse/platform/Protocol"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import { streamText } from "ai"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import OpenAI from "openai"
import type { Row } from "./Bench.ts"
import { chunk } from "./Streaming.ts"

const CHUNKS = 150
const ROUNDS = 9
const EVERY = 2

const sent: Array<number> = []
let seen: Array<number> = []

/** An answer whose chunks come one by one, and when each was sent. */
const answer = (): Response => {
  sent.length = 0
  let at = 0
  return new Response(
    new ReadableStream<Uint8Array>({
      start: (controller) => {
        const next = (): void => {
          if (at === CHUNKS) {
            controller.enqueue(chunk({}, "stop"))
            return controller.close()
          }
          sent[at] = performance.now()
          controller.enqueue(chunk({ content: `${at++} ` }, null))
          setTimeout(next, EVERY)
        }
        setTimeout(next, EVERY)
      }
    }),
    { headers: { "content-type": "text/event-stream" } }
  )
}

/** What has come of the answer, of which each chunk is a number. */
const saw = (text: string): void => {
  if (text !== "") seen[Number(text)] = performance.now()
}

const baseURL = "http://127.0.0.1/v1"
const request = HttpClientRequest.post(`${baseURL}/chat/completions`).pipe(
  HttpClientRequest.bodyUnsafeJson({ model: "m", stream: true })
)
const client = HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, answer())))
const messages = [{ role: "user" as const, content: "Count." }]
const fetch: RecourseFetch.Fetch = () => Promise.resolve(answer())
const model = createOpenAI({ apiKey: "none", baseURL, fetch }).chat("m")

const reading = <A>(parts: Stream.Stream<A, unknown>): Promise<void> =>
  Effect.runPromise(
    Stream.runForEach(parts, (part) =>
      Effect.sync(() => {
        const text = Protocol.text(part)
        if (text._tag === "Some") saw(text.value)
      }))
  )

const openai = (fetch: RecourseFetch.Fetch) => async () => {
  const sdk = new OpenAI({ apiKey: "none", baseURL, fetch })
  for await (const part of await sdk.chat.completions.create({ model: "m", messages, stream: true })) {
    saw(part.choices[0]?.delta.content ?? "")
  }
}

const readers: ReadonlyArray<readonly [name: string, read: () => Promise<void>, goal?: number]> = [
  ["ai, streamText", async () => {
    for await (const text of streamText({ model, messages }).textStream) saw(text)
  }],
  [
    "the client's own stream, decoded",
    () =>
      reading(
        Stream.unwrap(Effect.map(client.execute(request), ({ stream }) => Protocol.decode(OpenAiChat.protocol)(stream)))
      )
  ],
  ["recovered and watched", () => reading(RecourseClient.stream(client, request)), 0.6],
  ["openai", openai(fetch)],
  ["openai, through RecourseFetch", openai(RecourseFetch.make({ fetch }))]
]

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const BOUND = 200

/** An answer that begins, and whose source never settles anything again. */
const hung = (): Response =>
  new Response(
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(chunk({ content: "So" }, null)),
      pull: () => new Promise(() => undefined),
      cancel: () => new Promise(() => undefined)
    }, { highWaterMark: 0 }),
    { headers: { "content-type": "text/event-stream" } }
  )

const hanging = HttpClient.make((request) => Effect.sync(() => HttpClientResponse.fromWeb(request, hung())))

/** How much later than its bound a silence is told. */
const stall = async (): Promise<Row> => {
  const late: Array<number> = []
  for (let round = 0; round < ROUNDS; round++) {
    let shown = 0
    let told = 0
    await Effect.runPromise(
      Stream.runForEach(
        RecourseClient.stream(hanging, request, { liveness: { chunk: BOUND } }),
        (part) =>
          Effect.sync(() => {
            if (part._tag === "Text") shown = performance.now()
            if (part._tag === "Stalled") told = performance.now()
          })
      )
    )
    late.push(told - shown - BOUND)
  }
  const millis = median(late)
  return {
    group: "a source that never settles anything again, watched for 200 ms, beside 20 ms",
    name: "from the bound to the cut",
    nanos: millis * 1e6,
    ratio: millis / 20,
    goal: 1
  }
}

/** From the sending of a chunk to its text, where a chunk comes every two milliseconds. */
const paced = async (): Promise<ReadonlyArray<Row>> => {
  const waits = readers.map((): Array<number> => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, [name, read]] of readers.entries()) {
      seen = []
      await read()
      if (seen.length !== CHUNKS) throw new Error(`${name} saw ${seen.length} of ${CHUNKS} chunks`)
      // the first ones find nothing compiled
      waits[i]?.push(...seen.map((at, chunk) => at - (sent[chunk] ?? at)).slice(10))
    }
  }
  const base = median(waits[0] ?? [])
  return readers.map(([name, , goal], i) => {
    const millis = median(waits[i] ?? [])
    return {
      group: "from the sending of a chunk to its text, one every 2 ms, the median",
      name,
      nanos: millis * 1e6,
      ratio: millis / base,
      goal
    }
  })
}

/** What a reader waits for. */
export const rows = async (): Promise<ReadonlyArray<Row>> => [...await paced(), await stall()]
