import * as AnthropicClient from "@effect/ai-anthropic/AnthropicClient"
import * as AnthropicLanguageModel from "@effect/ai-anthropic/AnthropicLanguageModel"
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { assert, describe, it } from "@effect/vitest"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as NodeClient from "@recourse/platform/NodeClient"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { inspect } from "node:util"
import { quick } from "./quick.ts"

type Answer =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | "reset"
  | "never"

/** A client in memory that answers in order, and the instants at which it was asked. */
const inMemory = (...answers: ReadonlyArray<Answer>) => {
  const asked: Array<number> = []
  const client = HttpClient.make((request) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      asked.push(now)
      const answer = answers[asked.length - 1] ?? { status: 200, body: "{\"choices\":[]}" }
      return answer === "never"
        ? Effect.never
        : answer === "reset"
        ? Effect.fail(
          new HttpClientError.RequestError({
            request,
            reason: "Transport",
            cause: Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
          })
        )
        : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(answer.body ?? "{}", answer)))
    })
  )
  return { asked, client }
}

const url = "https://api.example.com/v1/messages"
const post = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUnsafeJson({ messages: [] }))
const busy: Answer = { status: 529, body: "{\"error\":{\"type\":\"overloaded_error\"}}" }
const later: Answer = { status: 429, headers: { "retry-after": "20" }, body: "{\"error\":{\"message\":\"later\"}}" }

/** Runs an effect on the test's clock, which moves on whenever real promises have settled. */
const passing = <A, E>(effect: Effect.Effect<A, E>, seconds: number): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(effect)
    for (let i = 0; i < seconds * 2 && (yield* Fiber.poll(fiber))._tag === "None"; i++) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("500 millis")
    }
    return yield* Fiber.await(fiber)
  })

describe("RecourseClient", () => {
  it.effect("waits as long as the answer says, and hands on the next", () =>
    Effect.gen(function*() {
      const { asked, client } = inMemory(later)
      const exit = yield* passing(RecourseClient.recover(client).execute(post), 60)
      assert.strictEqual(Exit.isSuccess(exit) && exit.value.status, 200)
      assert.strictEqual((asked[1] ?? 0) - (asked[0] ?? 0) >= 20_000, true)
      assert.strictEqual((asked[1] ?? 0) - (asked[0] ?? 0) < 22_000, true)
    }))

  it.effect("recover fails with the fault, transparent with the last answer", () =>
    Effect.gen(function*() {
      const policy = quick
      const recovered = yield* passing(
        RecourseClient.recover(inMemory(busy, busy, busy).client, { policy }).execute(post),
        5
      )
      assert.isTrue(Exit.isFailure(recovered))
      const handed = yield* passing(
        RecourseClient.transparent(inMemory(busy, busy, busy).client, { policy }).execute(post).pipe(
          Effect.flatMap((response) => Effect.map(response.text, (text) => [response.status, text]))
        ),
        5
      )
      assert.deepStrictEqual(handed, Exit.succeed([529, "{\"error\":{\"type\":\"overloaded_error\"}}"]))
    }))

  it.effect("transparent fails with the transport's own error", () =>
    Effect.gen(function*() {
      const { asked, client } = inMemory("reset", "reset", "reset")
      const error = yield* Effect.flip(
        yield* passing(RecourseClient.transparent(client, { policy: quick }).execute(post), 5)
      )
      assert.instanceOf(error, HttpClientError.RequestError)
      assert.lengthOf(asked, 3)
    }))

  it.effect("a silence is a fault to the one, and the platform's own error to the other", () =>
    Effect.gen(function*() {
      const options = { policy: quick, liveness: { headers: "1 second" } } as const
      const fault = yield* Effect.flip(
        yield* passing(RecourseClient.recover(inMemory("never", "never", "never").client, options).execute(post), 9)
      )
      assert.strictEqual(fault._tag, "TimedOut")
      const error = yield* Effect.flip(
        yield* passing(RecourseClient.transparent(inMemory("never", "never", "never").client, options).execute(post), 9)
      )
      assert.instanceOf(error, HttpClientError.RequestError)
    }))

  it.effect("leaves alone what is no fault of the call", () =>
    Effect.gen(function*() {
      class Mine extends Data.TaggedError("Mine")<{}> {}
      const { asked, client } = inMemory()
      const mine = HttpClient.transformResponse(client, Effect.zipRight(new Mine()))
      assert.instanceOf(yield* Effect.flip(RecourseClient.recover(mine).execute(post)), Mine)
      assert.instanceOf(yield* Effect.flip(RecourseClient.transparent(mine).execute(post)), Mine)
      const nowhere = HttpClientRequest.post("/v1/messages")
      const error = yield* Effect.flip(RecourseClient.recover(client).execute(nowhere))
      assert.strictEqual(error._tag === "RequestError" && error.reason, "InvalidUrl")
      assert.lengthOf(asked, 2)
    }))

  it.effect("sends once a body that is a stream, and what is no inference; recover classifies both", () =>
    Effect.gen(function*() {
      const streamed = HttpClientRequest.bodyStream(HttpClientRequest.post(url), Stream.make(new Uint8Array(1)))
      for (const request of [streamed, HttpClientRequest.get("https://api.example.com/v1/models")]) {
        const { asked, client } = inMemory(busy, busy, busy, busy)
        assert.strictEqual((yield* Effect.flip(RecourseClient.recover(client).execute(request)))._tag, "Overloaded")
        assert.strictEqual((yield* RecourseClient.transparent(client).execute(request)).status, 529)
        assert.lengthOf(asked, 2)
      }
    }))

  it.effect("hands on whatever is no inference and no failure, unread", () =>
    Effect.gen(function*() {
      for (
        const [method, status, body] of [
          ["DELETE", 204, null],
          ["GET", 200, "a picture"],
          ["HEAD", 200, null],
          ["GET", 304, null],
          ["GET", 302, ""],
          ["POST", 200, "<html>"]
        ] as const
      ) {
        const client = HttpClient.make((request) =>
          Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body, { status })))
        )
        const request = HttpClientRequest.make(method)("https://api.example.com/v1/files")
        assert.strictEqual((yield* RecourseClient.recover(client).execute(request)).status, status)
      }
    }))

  /** A client whose answers drip, and how many of them were hung up on. */
  const dripping = (status: number, headers: Record<string, string> = {}) => {
    const seen = { hungUp: 0 }
    const client = HttpClient.make((request) =>
      Effect.sync(() => {
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
          cancel: () => {
            seen.hungUp++
          }
        })
        return HttpClientResponse.fromWeb(request, new Response(body, { status, headers }))
      })
    )
    return { client, seen }
  }
  const turn = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))

  it.effect("hangs up on a failure that nobody can read any more: given back, or followed by another attempt", () =>
    Effect.gen(function*() {
      const options = { policy: quick, body: { within: "1 second" } } as const
      const rejected = dripping(400)
      yield* passing(RecourseClient.recover(rejected.client, options).execute(post), 9)
      assert.strictEqual(rejected.seen.hungUp, 1)
      const unavailable = dripping(503, { "retry-after": "30" })
      const fiber = yield* Effect.fork(RecourseClient.transparent(unavailable.client, options).execute(post))
      yield* turn
      yield* TestClock.adjust("2 seconds")
      yield* turn
      assert.strictEqual(unavailable.seen.hungUp, 1)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("hangs up when whoever reads an answer is interrupted", () =>
    Effect.gen(function*() {
      const { client, seen } = dripping(200, { "content-type": "application/x-ndjson" })
      const response = yield* RecourseClient.recover(client).execute(post)
      const fiber = yield* Effect.fork(response.text)
      yield* turn
      yield* Fiber.interrupt(fiber)
      yield* turn
      assert.strictEqual(seen.hungUp, 1)
    }))

  it.effect("hangs up on silence where interruption is forbidden", () =>
    Effect.gen(function*() {
      let open = 0
      const client = HttpClient.make(() =>
        Effect.acquireUseRelease(Effect.sync(() => open++), () => Effect.never, () => Effect.sync(() => open--))
      )
      const options = { policy: quick, liveness: { headers: "1 second" } } as const
      const call = RecourseClient.recover(client, options).execute(post)
      const exit = yield* passing(Effect.uninterruptible(call), 9)
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(open, 0)
    }))

  it.effect("logs nothing of an error but what the readout shows", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const request = HttpClientRequest.setUrlParam(post, "key", "sk-0123456789abcdef")
      yield* passing(
        RecourseClient.recover(inMemory("reset", "reset", "reset").client, { policy: quick }).execute(request),
        5
      ).pipe(
        Logger.withMinimumLogLevel(LogLevel.All),
        Effect.provide(
          Logger.replace(Logger.defaultLogger, Logger.make((line) => lines.push(inspect(line, { depth: 9 }))))
        )
      )
      assert.isAbove(lines.length, 1)
      for (const line of lines) assert.notInclude(line, "sk-0123456789abcdef")
    }))

  it("an option that cannot be is told at once, with its mend", () => {
    const { client } = inMemory()
    assert.throws(
      () => RecourseClient.recover(client, { liveness: { headers: JSON.parse("\"soon\"") } }),
      /^liveness\.headers: a duration/
    )
    assert.throws(() => RecourseClient.transparent(client, { body: { bytes: -1 } }), /^body\.bytes: a number/)
  })

  it.effect("interrupted, it asks no more", () =>
    Effect.gen(function*() {
      const { asked, client } = inMemory(later)
      const fiber = yield* Effect.fork(RecourseClient.recover(client).execute(post))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(asked, 1)
    }))

  it.effect("keeps the headers, the cookies and the body of a good answer", () =>
    Effect.gen(function*() {
      const { client } = inMemory({
        status: 201,
        headers: { "set-cookie": "a=1; Path=/", "x-own": "2" },
        body: "{\"a\":1}"
      })
      const response = yield* RecourseClient.recover(client).execute(post)
      assert.strictEqual(response.status, 201)
      assert.strictEqual(response.headers["x-own"], "2")
      assert.strictEqual(response.cookies.cookies["a"]?.value, "1")
      assert.deepStrictEqual(yield* response.json, { a: 1 })
    }))

  it.effect("its policy is its own, and standard if it has none", () =>
    Effect.gen(function*() {
      const { asked, client } = inMemory(busy, busy, busy, busy, busy)
      yield* passing(RecourseClient.recover(client).execute(post), 120)
      assert.lengthOf(asked, RetryPolicy.standard.tiers["transient"]?.attempts ?? 0)
    }))
})

describe("RecourseClient.transparent, beneath a library that knows HttpClient alone", () => {
  const said = "Here is the answer."
  const limited = Provider.answer(429, { headers: { "retry-after-ms": "60" }, body: { error: { message: "later" } } })
  const overloaded = Provider.answer(529, { body: { error: { type: "overloaded_error", message: "busy" } } })
  const spent = Provider.answer(429, {
    body: { type: "error", error: { type: "billing_error", code: "insufficient_quota", message: "no credit" } }
  })
  const transformClient = RecourseClient.transparent({ policy: quick })
  const apiKey = Redacted.make("none")

  const models: ReadonlyArray<
    readonly [string, (apiUrl: string) => Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient>]
  > = [
    ["@effect/ai-openai", (url) =>
      OpenAiLanguageModel.layer({ model: "gpt-4o" }).pipe(
        Layer.provide(OpenAiClient.layer({ apiKey, apiUrl: `${url}/v1`, transformClient }))
      )],
    ["@effect/ai-anthropic", (url) =>
      AnthropicLanguageModel.layer({ model: "claude-sonnet-4-0" }).pipe(
        Layer.provide(AnthropicClient.layer({ apiKey, apiUrl: url, transformClient }))
      )]
  ]

  for (const [name, model] of models) {
    for (
      const [what, steps] of [
        ["a 429 with a wait", [limited]],
        ["a 529", [overloaded]],
        ["a connection that is reset", [Provider.reset]],
        ["a body that is cut short", [Provider.cut()]]
      ] as const
    ) {
      it.scopedLive(`${name} survives ${what}`, () =>
        Effect.gen(function*() {
          const provider = yield* Provider.make()
          yield* provider.play(...steps)
          const response = yield* LanguageModel.generateText({ prompt: "Say something." }).pipe(
            Effect.provide(model(provider.url))
          )
          assert.strictEqual(response.text, said)
          assert.lengthOf(yield* provider.requests, 2)
        }).pipe(Effect.provide(NodeClient.layer())))
    }

    it.scopedLive(`${name} streams, and survives what comes before the head`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(overloaded, Provider.reset)
        const text = yield* LanguageModel.streamText({ prompt: "Say something." }).pipe(
          Stream.runFold("", (text, part) => part.type === "text-delta" ? text + part.delta : text),
          Effect.provide(model(provider.url))
        )
        assert.strictEqual(text, said)
        assert.lengthOf(yield* provider.requests, 3)
      }).pipe(Effect.provide(FetchHttpClient.layer)))

    it.scopedLive(`${name} raises its own error for a spent quota, after one request`, () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.play(spent)
        const surfaced: Array<string> = []
        const error = yield* LanguageModel.generateText({ prompt: "Say something." }).pipe(
          Effect.provide(model(provider.url)),
          Effect.flip,
          Recovery.withListener((event) =>
            Effect.sync(() => event._tag === "Surfaced" && surfaced.push(event.fault._tag))
          )
        )
        assert.strictEqual(error._tag === "HttpResponseError" && error.response.status, 429, String(error))
        assert.deepStrictEqual(surfaced, ["QuotaExhausted"])
        assert.lengthOf(yield* provider.requests, 1)
      }).pipe(Effect.provide(FetchHttpClient.layer)))
  }
})
