import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Agent } from "@effect/platform-node/Undici"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Recovery from "@recourse/core/Recovery"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as NodeClient from "@recourse/platform/NodeClient"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { readFileSync } from "node:fs"
import { quick } from "./quick.ts"

const dialects = [
  { name: "OpenAI's chat completions", path: "/v1/chat/completions", text: "choices" },
  { name: "Anthropic's messages", path: "/v1/messages", text: "content" }
]

const liveness = { headers: "150 millis", chunk: "150 millis" } as const
const options = { policy: quick, liveness, body: { within: "150 millis" } } as const

const refusal = (status: number, type: string, headers: Record<string, string> = {}) =>
  Provider.answer(status, { headers, body: { type: "error", error: { type, message: "said so" } } })

// what is done, what it means, and whether it is worth another request
const faults: ReadonlyArray<readonly [name: string, step: Provider.Step, tag: Fault.Fault["_tag"]]> = [
  ["a 429 that names a wait", refusal(429, "rate_limit_error", { "retry-after-ms": "20" }), "RateLimited"],
  ["a 429 that a plan names", refusal(429, "rate_limit_error", { "retry-after": "7200" }), "RateLimited"],
  ["a 529", refusal(529, "overloaded_error"), "Overloaded"],
  [
    "a 503 page",
    Provider.answer(503, { headers: { "content-type": "text/html" }, body: "<html></html>" }),
    "Unavailable"
  ],
  ["a 408", refusal(408, "x"), "TimedOut"],
  ["a 400", refusal(400, "invalid_request_error"), "RequestRejected"],
  ["a 401", refusal(401, "authentication_error"), "CredentialRejected"],
  ["an empty purse", Provider.answer(429, { body: { error: { code: "insufficient_quota" } } }), "QuotaExhausted"],
  [
    "a request that does not fit",
    Provider.answer(400, { body: { error: { code: "context_length_exceeded" } } }),
    "ContextOverflowed"
  ],
  ["a reset before the headers", Provider.reset, "Unreachable"],
  ["an answer cut in its body", Provider.cut(), "Unreachable"],
  ["an answer cut before its body", Provider.cut(Provider.good(), 0), "Unreachable"],
  ["a refusal cut in its body", Provider.cut(refusal(529, "overloaded_error")), "Overloaded"],
  ["no headers", Provider.silent, "TimedOut"],
  ["a connection that nobody reads", Provider.unread, "TimedOut"],
  ["a body that stalls", Provider.stalled(), "TimedOut"],
  ["the body of a refusal that stalls", Provider.stalled(refusal(529, "overloaded_error")), "Overloaded"],
  ["a page under 200", Provider.page, "Unrecognized"],
  ["nothing under 200", Provider.empty, "Unrecognized"],
  ["JSON that breaks off under 200", Provider.truncated, "Unrecognized"],
  ["bytes that are no UTF-8", Provider.notUtf8, "Unrecognized"],
  [
    "an error under 200",
    Provider.answer(200, { body: { error: { code: "overloaded", message: "busy" } } }),
    "Unrecognized"
  ],
  [
    "a model's malformed call under 200",
    Provider.answer(200, { body: { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] } }),
    "GenerationMalformed"
  ]
]

const post = (url: string) =>
  HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUnsafeJson({ model: "a-model", messages: [] }))

/** What a listener hears: what each fault was, and what it was worth. */
const heard = (faults: Array<string>) => (event: Recovery.Event) =>
  Effect.sync(() => {
    if (event._tag === "Failed") faults.push(`${event.fault._tag}, ${Remedy.fromFault(event.fault, quick)._tag}`)
  })

for (const dialect of dialects) {
  describe(`On real sockets, ${dialect.name}`, () => {
    for (const [name, step, tag] of faults) {
      const remedy = name === "a 429 that a plan names" ? "Defer" : Fault.isRetryable(tag) ? "Retry" : "Surface"
      const requests = remedy === "Retry" ? 2 : 1
      it.scopedLive(`${name} is ${tag}: ${remedy}, ${requests === 1 ? "one request" : "two requests"}`, () =>
        Effect.gen(function*() {
          const provider = yield* Provider.make()
          yield* provider.play(
            ...(step === Provider.unread ? [Provider.good()] : []),
            step,
            Provider.good("All is well.")
          )
          const client = RecourseClient.recover(yield* HttpClient.HttpClient, options)
          const url = `${provider.url}${dialect.path}`
          // only the answer before it can make the client open the connection that is not read
          if (step === Provider.unread) yield* Effect.flatMap(client.execute(post(url)), (response) => response.text)
          const before = (yield* provider.requests).length
          const tags: Array<string> = []
          const outcome = yield* client.execute(post(url)).pipe(
            Effect.flatMap((response) => response.json),
            Effect.either,
            Recovery.withListener(heard(tags))
          )
          assert.deepStrictEqual(tags, [`${tag}, ${remedy}`])
          assert.strictEqual((yield* provider.requests).length - before, requests)
          if (requests === 2) assert.property(Either.getOrThrow(outcome), dialect.text)
          else assert.strictEqual(Either.isLeft(outcome) ? outcome.left._tag : "an answer", tag)
        }).pipe(Effect.provide(NodeClient.layer(liveness))))
    }

    it.scopedLive("a dead port is Unreachable, and answered once it lives", () =>
      Effect.gen(function*() {
        const provider = yield* Provider.make()
        yield* provider.down
        const client = RecourseClient.recover(yield* HttpClient.HttpClient, options)
        const tags: Array<string> = []
        const response = yield* client.execute(post(`${provider.url}${dialect.path}`)).pipe(
          Recovery.withListener((event) =>
            Effect.zipRight(heard(tags)(event), event._tag === "Retrying" ? provider.up : Effect.void)
          )
        )
        assert.strictEqual(response.status, 200)
        assert.deepStrictEqual(tags, ["Unreachable, Retry"])
        assert.strictEqual((yield* provider.requests).length, 1)
      }).pipe(Effect.provide(FetchHttpClient.layer)))
  })
}

describe("On real sockets, once each", () => {
  const once = (provider: Context.Tag.Service<Provider.ScriptedProvider>) =>
    Effect.gen(function*() {
      const tags: Array<string> = []
      const client = RecourseClient.recover(yield* HttpClient.HttpClient, options)
      const outcome = yield* client.execute(post(`${provider.url}/v1/messages`)).pipe(
        Effect.flatMap((response) => response.text),
        Effect.either,
        Recovery.withListener(heard(tags))
      )
      return { tags, outcome, requests: (yield* provider.requests).length }
    })

  it.scopedLive("gzip that breaks is Unreachable, and asked for again", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(Provider.brokenGzip)
      const { outcome, requests, tags } = yield* once(provider)
      assert.deepStrictEqual({ tags, requests }, { tags: ["Unreachable, Retry"], requests: 2 })
      assert.isTrue(Either.isRight(outcome))
    }).pipe(Effect.provide(FetchHttpClient.layer)))

  it.scopedLive("gzip that a client does not unpack is handed on", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(Provider.brokenGzip)
      const { requests, tags } = yield* once(provider)
      assert.deepStrictEqual({ tags, requests }, { tags: [], requests: 1 })
    }).pipe(Effect.provide(NodeClient.layer())))

  it.scopedLive("a certificate that signs itself is Unrecognized, and nothing is sent", () =>
    Effect.gen(function*() {
      const { outcome, requests, tags } = yield* once(yield* Provider.make({ protocol: "https" }))
      assert.deepStrictEqual({ tags, requests }, { tags: ["Unrecognized, Surface"], requests: 0 })
      assert.match(Either.isLeft(outcome) ? outcome.left.message : "", /DEPTH_ZERO_SELF_SIGNED_CERT/)
    }).pipe(Effect.provide(FetchHttpClient.layer)))

  it.scopedLive("HTTP/2: GOAWAY is Unreachable, and asked for again on another connection", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make({ protocol: "h2" })
      yield* provider.play(Provider.goAway)
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ allowH2: true, connect: { ca: Provider.certificate } })),
        (agent) => Effect.promise(() => agent.destroy())
      )
      const { outcome, requests, tags } = yield* once(provider).pipe(
        Effect.provideService(HttpClient.HttpClient, NodeHttpClient.makeUndici(agent))
      )
      assert.deepStrictEqual({ tags, requests }, { tags: ["Unreachable, Retry"], requests: 2 })
      assert.isTrue(Either.isRight(outcome))
    }))
})

describe("On real sockets, every answer of the corpus", () => {
  const rows: ReadonlyArray<{
    readonly id: string
    readonly source: {
      readonly kind: string
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body?: unknown
    }
  }> = readFileSync(new URL("../../core/test/corpus/faults.jsonl", import.meta.url), "utf8").trim().split("\n").map((
    line
  ) => JSON.parse(line))

  it.scopedLive("reads as it reads without a socket", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      const once = RetryPolicy.make({ tierOf: {}, tiers: {} }).pipe(Either.getOrThrow)
      const client = RecourseClient.recover(yield* HttpClient.HttpClient, { policy: once })
      let read = 0
      for (const { id, source } of rows) {
        if (source.kind !== "response") continue
        const { "content-length": _, ...headers } = source.headers ?? {}
        yield* provider.play(Provider.answer(source.status, { headers, body: source.body }))
        const outcome = yield* Effect.either(client.execute(post(`${provider.url}/v1/messages`)))
        assert.strictEqual(
          Either.isLeft(outcome) ? outcome.left._tag : undefined,
          Diagnosis.fromAnswer(source, { received: Date.now() })?._tag,
          id
        )
        read++
      }
      assert.isAbove(read, 90)
    }).pipe(Effect.provide(FetchHttpClient.layer)))
})
