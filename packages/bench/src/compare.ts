import { createOpenAI } from "@ai-sdk/openai"
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import * as Provider from "@recourse/testing/ScriptedProvider"
import { generateText } from "ai"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import OpenAI, { APIError } from "openai"

// What people use today and Recourse, through the same faults on real sockets, each at its default settings.

const apiKey = "none"
const prompt = "Say something."
const messages = [{ role: "user" as const, content: prompt }]
const said = "Here is the answer."

interface Contestant {
  readonly name: string
  readonly ask: (url: string) => Promise<unknown>
}

const openai = (url: string, fetch: RecourseFetch.Fetch): Promise<unknown> => {
  const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, fetch })
  return client.chat.completions.create({ model: "m", messages })
}

const post = (url: string) =>
  HttpClientRequest.post(`${url}/v1/chat/completions`).pipe(HttpClientRequest.bodyUnsafeJson({ model: "m", messages }))

const through = <E>(client: HttpClient.HttpClient.With<E>, url: string): Promise<string> =>
  Effect.runPromise(Effect.flatMap(client.execute(post(url)), (response) => response.text))

const platform = (change: (client: HttpClient.HttpClient) => HttpClient.HttpClient.With<unknown>, url: string) =>
  Effect.runPromise(Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)).then((client) =>
    through(change(client), url)
  )

const contestants: ReadonlyArray<Contestant> = [
  { name: "`openai`", ask: (url) => openai(url, globalThis.fetch) },
  {
    name: "`@anthropic-ai/sdk`",
    ask: (url) => new Anthropic({ apiKey, baseURL: url }).messages.create({ model: "m", max_tokens: 9, messages })
  },
  {
    name: "`ai`",
    ask: async (url) => {
      const { text } = await generateText({ model: createOpenAI({ apiKey, baseURL: `${url}/v1` }).chat("m"), prompt })
      return text
    }
  },
  {
    name: "`retryTransient`",
    ask: (url) =>
      platform((client) =>
        client.pipe(
          HttpClient.filterStatusOk,
          HttpClient.retryTransient({ times: 3, schedule: Schedule.exponential("500 millis") })
        ), url)
  },
  { name: "`RecourseFetch`, `openai`", ask: (url) => openai(url, fetch) },
  { name: "`RecourseClient`", ask: (url) => platform((client) => RecourseClient.recover(client), url) }
]

const fetch = RecourseFetch.make()

interface Row {
  readonly name: string
  readonly steps: ReadonlyArray<Provider.Step>
  /** The earliest instant at which a request is not refused, where the provider names it. */
  readonly until?: (refused: number) => number
}

const error = (type: string, message: string, code: string | null = null) => ({
  type: "error",
  error: { type, code, message }
})

const limited = (headers: Record<string, string>) =>
  Provider.answer(429, { headers, body: error("rate_limit_error", "Rate limit reached", "rate_limit_exceeded") })

const again = (step: Provider.Step): ReadonlyArray<Provider.Step> => Array.from({ length: 9 }, () => step)

const after = (millis: number) => (refused: number): number => refused + millis

const date = new Date(Date.now() + 6_000).toUTCString()

const rows: ReadonlyArray<Row> = [
  { name: "429, `retry-after: 2`", steps: [limited({ "retry-after": "2" })], until: after(2_000) },
  {
    name: "429, `retry-after` as an HTTP date",
    steps: [limited({ "retry-after": date })],
    until: () => Date.parse(date)
  },
  {
    name: "429, `x-ratelimit-reset-tokens: 3s`",
    steps: [limited({ "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "3s" })],
    until: after(3_000)
  },
  { name: "429, `retry-after: 61`", steps: again(limited({ "retry-after": "61" })), until: after(61_000) },
  { name: "429, `retry-after: 7200`", steps: again(limited({ "retry-after": "7200" })), until: after(7_200_000) },
  {
    name: "429, the purse is empty",
    steps: again(
      Provider.answer(429, {
        body: error("insufficient_quota", "You exceeded your current quota", "insufficient_quota")
      })
    )
  },
  { name: "529 once", steps: [Provider.answer(529, { body: error("overloaded_error", "Overloaded") })] },
  { name: "501", steps: again(Provider.answer(501, { body: error("not_implemented", "No such method") })) },
  { name: "200 that holds an error", steps: again(Provider.answer(200, { body: error("server_error", "It failed") })) },
  { name: "200, an HTML page", steps: again(Provider.page) },
  { name: "200, JSON that breaks off", steps: again(Provider.truncated) },
  { name: "reset before the headers", steps: [Provider.reset] },
  { name: "a body cut short", steps: [Provider.cut()] },
  { name: "a body cut short, always", steps: again(Provider.cut()) }
]

const PATIENCE = 20_000

const outcomeOf = (value: unknown): string =>
  (typeof value === "string" ? value : JSON.stringify(value)).includes(said) ? "answer" : "**handed on as an answer**"

const nameOf = (thrown: unknown): string => {
  const text = String(thrown)
  const tag = typeof thrown === "object" && thrown !== null && "name" in thrown ? String(thrown.name) : text
  const name = tag.replace(/^\(FiberFailure\) /, "")
  return thrown instanceof APIError || thrown instanceof AnthropicError ? thrown.constructor.name : name
}

const cell = (contestant: Contestant, { steps, until }: Row): Effect.Effect<string> =>
  Effect.gen(function*() {
    const provider = yield* Provider.make()
    yield* provider.play(...steps)
    const outcome = yield* Effect.tryPromise({ try: () => contestant.ask(provider.url), catch: (thrown) => thrown })
      .pipe(
        Effect.map(outcomeOf),
        Effect.catchAll((thrown) => Effect.succeed(nameOf(thrown))),
        Effect.timeoutTo({ duration: PATIENCE, onTimeout: () => "waits", onSuccess: (text) => text })
      )
    const [first, ...others] = (yield* provider.requests).map(({ at }) => at)
    const early = until !== undefined && others.some((at) => at < until(first ?? 0) - 20)
    const kept = until === undefined
      ? ""
      : early
      ? ", **wait broken**"
      : others.length > 0 || outcome === "waits"
      ? ", wait kept"
      : ""
    return `${others.length + 1}${kept}: ${outcome}`
  }).pipe(Effect.scoped)

const table = Effect.forEach(
  rows,
  (row) =>
    Effect.map(
      Effect.forEach(contestants, (contestant) => cell(contestant, row), { concurrency: "unbounded" }),
      (cells) => [row.name, ...cells]
    ),
  { concurrency: "unbounded" }
)

const lines = [
  ["", ...contestants.map(({ name }) => name)],
  ["---", ...contestants.map(() => "---")],
  ...await Effect.runPromise(table)
]
for (const line of lines) console.log(`| ${line.join(" | ")} |`)
// a client that sleeps for an hour would hold the process
process.exit(0)
