import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import * as Provider from "@recourse/testing/ScriptedProvider"
import { APICallError, generateText, RetryError, streamText, type TextStreamPart, type ToolSet } from "ai"
import * as Effect from "effect/Effect"
import OpenAI, { APIError as OpenAIError } from "openai"
import { quick, thrownBy } from "./quick.ts"

interface Client {
  readonly name: string
  readonly ask: (url: string, fetch: RecourseFetch.Fetch, signal?: AbortSignal) => Promise<string>
  /** Prints a streamed answer as it comes. */
  readonly stream: (url: string, fetch: RecourseFetch.Fetch, print: (text: string) => void) => Promise<void>
  /** Whether the error is the SDK's own, for that status. */
  readonly isOwn: (error: unknown, status: number) => boolean
  /**
   * Requests of one call at the SDK's default settings, after faults that are answered, after a quota that is spent, and after
   * errors that are thrown: three attempts of ours, and then one for each time that the SDK asks again.
   */
  readonly sent: { readonly answer: number; readonly spent: number; readonly thrown: number }
}

const apiKey = "none"
const prompt = "Say something."
const messages = [{ role: "user" as const, content: prompt }]

const isCallError = (error: unknown, status: number): boolean => {
  const last = RetryError.isInstance(error) ? error.lastError : error
  return APICallError.isInstance(last) && last.statusCode === status
}

const openai = (url: string, fetch: RecourseFetch.Fetch): OpenAI => new OpenAI({ apiKey, baseURL: `${url}/v1`, fetch })

const anthropic = (url: string, fetch: RecourseFetch.Fetch): Anthropic => new Anthropic({ apiKey, baseURL: url, fetch })

/** By default it prints them. */
const onError = (): void => undefined

/** `ai` has its errors among its parts. */
const printed = async (
  { fullStream }: { readonly fullStream: AsyncIterable<TextStreamPart<ToolSet>> },
  print: (text: string) => void
): Promise<void> => {
  for await (const part of fullStream) {
    if (part.type === "text-delta") print(part.text)
    if (part.type === "error") throw part.error
  }
}

const genai = async (url: string, fetch: RecourseFetch.Fetch, print: (text: string) => void): Promise<void> => {
  const { models } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url, fetch } })
  for await (const chunk of await models.generateContentStream({ model: "m", contents: prompt })) {
    print(chunk.text ?? "")
  }
}

const clients: ReadonlyArray<Client> = [
  {
    name: "openai, chat completions",
    ask: async (url, fetch, signal) =>
      (await openai(url, fetch).chat.completions.create(
        { model: "m", messages },
        signal === undefined ? {} : { signal }
      ))
        .choices[0]?.message.content ?? "",
    stream: async (url, fetch, print) => {
      for await (
        const chunk of await openai(url, fetch).chat.completions.create({ model: "m", messages, stream: true })
      ) {
        print(chunk.choices[0]?.delta.content ?? "")
      }
    },
    isOwn: (error, status) => error instanceof OpenAIError && error.status === status,
    sent: { answer: 3, spent: 1, thrown: 5 }
  },
  {
    name: "openai, responses",
    ask: async (url, fetch, signal) =>
      (await openai(url, fetch).responses.create({ model: "m", input: prompt }, signal === undefined ? {} : { signal }))
        .output_text,
    stream: async (url, fetch, print) => {
      for await (
        const event of await openai(url, fetch).responses.create({ model: "m", input: prompt, stream: true })
      ) {
        if (event.type === "response.output_text.delta") print(event.delta)
      }
    },
    isOwn: (error, status) => error instanceof OpenAIError && error.status === status,
    sent: { answer: 3, spent: 1, thrown: 5 }
  },
  {
    name: "@anthropic-ai/sdk",
    ask: async (url, fetch, signal) => {
      const { content: [block] } = await anthropic(url, fetch).messages.create(
        { model: "m", max_tokens: 9, messages },
        signal === undefined ? {} : { signal }
      )
      return block?.type === "text" ? block.text : ""
    },
    stream: async (url, fetch, print) => {
      const stream = anthropic(url, fetch).messages.stream({ model: "m", max_tokens: 9, messages })
      stream.on("text", print)
      await stream.finalText()
    },
    isOwn: (error, status) => error instanceof AnthropicError && error.status === status,
    sent: { answer: 3, spent: 1, thrown: 5 }
  },
  {
    name: "ai over @ai-sdk/openai",
    ask: async (url, fetch, abortSignal) =>
      (await generateText({
        model: createOpenAI({ apiKey, baseURL: `${url}/v1`, fetch }).chat("m"),
        prompt,
        ...(abortSignal === undefined ? {} : { abortSignal })
      })).text,
    stream: (url, fetch, print) =>
      printed(
        streamText({ model: createOpenAI({ apiKey, baseURL: `${url}/v1`, fetch })("m"), prompt, onError }),
        print
      ),
    isOwn: isCallError,
    sent: { answer: 5, spent: 3, thrown: 5 }
  },
  {
    name: "ai over @ai-sdk/anthropic",
    ask: async (url, fetch, abortSignal) =>
      (await generateText({
        model: createAnthropic({ apiKey, baseURL: `${url}/v1`, fetch })("m"),
        maxOutputTokens: 9,
        prompt,
        ...(abortSignal === undefined ? {} : { abortSignal })
      })).text,
    stream: (url, fetch, print) =>
      printed(
        streamText({
          model: createAnthropic({ apiKey, baseURL: `${url}/v1`, fetch })("m"),
          prompt,
          maxOutputTokens: 9,
          onError
        }),
        print
      ),
    isOwn: isCallError,
    sent: { answer: 5, spent: 3, thrown: 5 }
  }
]

const said = "Here is the answer."
const overloaded = Provider.answer(529, {
  body: { type: "error", error: { type: "overloaded_error", message: "busy" } }
})
const limited = Provider.answer(429, {
  headers: { "retry-after-ms": "60" },
  body: { type: "error", error: { type: "rate_limit_error", message: "later" } }
})
const spent = Provider.answer(429, {
  headers: { "retry-after": "1" },
  body: { error: { code: "insufficient_quota", type: "insufficient_quota", message: "no credit" } }
})

it.scopedLive("ai asks but once for a spent quota if it is told to retry nothing", () =>
  Effect.gen(function*() {
    const provider = yield* Provider.make()
    const settings = { apiKey, baseURL: `${provider.url}/v1`, fetch: RecourseFetch.make({ policy: quick, memory: 0 }) }
    for (const model of [createOpenAI(settings)("m"), createAnthropic(settings)("m")]) {
      yield* provider.play(spent)
      const asking = () => generateText({ model, prompt, maxRetries: 0, maxOutputTokens: 9 })
      assert.isTrue(isCallError(yield* Effect.promise(() => thrownBy(asking)), 429))
      assert.lengthOf(yield* provider.requests, 1)
    }
  }))

for (const { ask, isOwn, name, sent, stream } of clients) {
  // an SDK's own waits are those of seconds; they may pass side by side
  describe.concurrent(name, () => {
    for (
      const [what, steps] of [
        ["a 429 with a wait", [limited]],
        ["a 529", [overloaded]],
        ["a connection that is reset", [Provider.reset]],
        ["a body that is cut short", [Provider.cut()]],
        ["all of them, one after another", [limited, overloaded, Provider.reset]]
      ] as const
    ) {
      it.scopedLive(`survives ${what}`, () =>
        Effect.gen(function*() {
          const provider = yield* Provider.make()
          yield* provider.play(...steps)
          const fetch = RecourseFetch.make({ policy: quick })
          assert.strictEqual(yield* Effect.promise(() => ask(provider.url, fetch)), said)
          const requests = yield* provider.requests
          assert.lengthOf(requests, steps.length + 1)
          if (steps[0] === limited) assert.isAtLeast((requests[1]?.at ?? 0) - (requests[0]?.at ?? 0), 59)
        }))
    }

    it.scopedLive("streams, and survives what comes before the head", () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(overloaded, Provider.reset)
        const fetch = RecourseFetch.make({ policy: quick })
        let text = ""
        yield* Effect.promise(() => stream(provider.url, fetch, (piece) => text += piece))
        assert.strictEqual(text, said)
        assert.lengthOf(yield* provider.requests, 3)
      }))

    it.scopedLive("an abort during a wait sends nothing more", () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(Provider.answer(429, { headers: { "retry-after": "30" }, body: {} }))
        const controller = new AbortController()
        const fetch = RecourseFetch.make({
          listener: ({ _tag }) => {
            if (_tag === "Retrying") controller.abort()
          }
        })
        yield* Effect.promise(() => thrownBy(() => ask(provider.url, fetch, controller.signal)))
        yield* Effect.sleep(50)
        assert.lengthOf(yield* provider.requests, 1)
      }))

    it.scopedLive(`raises its own error for an answer, after ${sent.answer} requests`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(...Array.from({ length: 9 }, () => overloaded))
        const fetch = RecourseFetch.make({ policy: quick })
        const error = yield* Effect.promise(() => thrownBy(() => ask(provider.url, fetch)))
        assert.isTrue(isOwn(error, 529))
        assert.lengthOf(yield* provider.requests, sent.answer)
      }), 20_000)

    it.scopedLive(`raises its own error for a spent quota, after ${sent.spent}`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(...Array.from({ length: 9 }, () => spent))
        const fetch = RecourseFetch.make({ policy: quick })
        const error = yield* Effect.promise(() => thrownBy(() => ask(provider.url, fetch)))
        assert.isTrue(isOwn(error, 429))
        assert.lengthOf(yield* provider.requests, sent.spent)
      }), 20_000)

    it.scopedLive(`raises an error for a dead port, after ${sent.thrown} connections`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.down
        let connections = 0
        const fetch = RecourseFetch.make({
          policy: quick,
          fetch: (input, init) => {
            connections++
            return globalThis.fetch(input, init)
          }
        })
        yield* Effect.promise(() => thrownBy(() => ask(provider.url, fetch)))
        assert.strictEqual(connections, sent.thrown)
        yield* provider.up
      }), 20_000)
  })
}

describe.concurrent("streams", () => {
  const streaming = [...clients.map(({ name, stream }) => ({ name, stream })), { name: "@google/genai", stream: genai }]
  const long = Provider.good(`${said} `.repeat(20))
  for (const { name, stream } of streaming) {
    it.scopedLive(`${name}: a fault before the first content is invisible`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        for (
          const step of [
            Provider.ends("nothing", { kept: 0 }),
            Provider.ends("nothing", { kept: 1, text: "" }),
            Provider.ends("error", { kept: 0 }),
            Provider.ends("failure", { kept: 0 }),
            Provider.cutAfter(4),
            Provider.cutAfter(4, Provider.good(), "reset")
          ]
        ) {
          yield* provider.play(step)
          let text = ""
          const fetch = RecourseFetch.make({ policy: quick })
          yield* Effect.promise(() => stream(provider.url, fetch, (piece) => text += piece))
          assert.strictEqual(text, said)
          assert.lengthOf(yield* provider.requests, 2)
        }
      }), 20_000)

    it.scopedLive(
      `${name}: one after it raises its own error, and nothing is printed twice`,
      () =>
        Effect.gen(function*() {
          const provider = yield* Provider.make()
          for (const step of [Provider.ends("nothing"), Provider.ends("error"), Provider.cut(long, 0.6)]) {
            yield* provider.play(step)
            let text = ""
            const fetch = RecourseFetch.make({ policy: quick })
            const error = yield* Effect.promise(() =>
              thrownBy(() => stream(provider.url, fetch, (piece) => text += piece))
            )
            assert.instanceOf(error, Error)
            assert.isTrue(text !== "" && `${said} `.repeat(20).startsWith(text), text)
            assert.lengthOf(yield* provider.requests, 1)
          }
        }),
      20_000
    )
  }
})
