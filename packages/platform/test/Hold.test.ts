import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

const target = { account: Redacted.make("a key"), model: "a-model" }
const init = (model = "a-model", key = "one"): RequestInit => ({
  method: "POST",
  headers: { authorization: `Bearer ${key}` },
  body: JSON.stringify({ model, messages: [] })
})

const refused = (seconds: number) =>
  Provider.answer(429, { headers: { "retry-after": String(seconds) }, body: { error: { message: "later" } } })

describe("One hold, many doors", () => {
  it.scopedLive("the first refusal stops the others, and all succeed after it", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(refused(2))
      const url = `${provider.url}/v1/chat/completions`
      const options = { target: () => target, gate: "wait" } as const
      const fetches = [yield* RecourseFetch.effect(options), yield* RecourseFetch.effect(options)]
      const client = RecourseClient.recover(yield* HttpClient.HttpClient, options)
      const post = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUnsafeJson({ model: "a-model" }))
      const plain = Effect.tryPromise({ try: () => fetch(url, init()), catch: (error) => error }).pipe(
        Effect.flatMap((response) =>
          response.ok
            ? Effect.succeed(response.status)
            : Effect.fail(Diagnosis.fromResponse({ status: response.status }, { received: Date.now() }))
        ),
        Recovery.read,
        Recovery.recover({ target, gate: "wait" })
      )
      const [one, two] = fetches.map((fetch) => Effect.promise(() => fetch(url, init())))
      const statuses = yield* Effect.all(
        [
          Effect.map(one ?? Effect.never, ({ status }) => status),
          ...[
            Effect.map(two ?? Effect.never, ({ status }) => status),
            Effect.map(client.execute(post), ({ status }) => status),
            plain
          ].map((call) => Effect.delay(call, "300 millis"))
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(statuses, [200, 200, 200, 200])
      const [first, ...others] = (yield* provider.requests).map(({ at }) => at)
      assert.lengthOf(others, 4)
      for (const at of others) assert.isAtLeast(at - (first ?? 0), 1_990)
    }).pipe(Effect.provide(Hold.layerMemory), Effect.provide(FetchHttpClient.layer)))

  it.scopedLive("a deferred one answers all, without a request", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(refused(7_200))
      const url = `${provider.url}/v1/chat/completions`
      const fetch = yield* RecourseFetch.effect()
      const another = yield* RecourseFetch.effect()
      const first = yield* Effect.promise(() => fetch(url, init()))
      assert.strictEqual(first.status, 429)
      for (const door of [fetch, another]) {
        const held = yield* Effect.promise(() => door(url, init("a-model", "one")))
        assert.strictEqual(held.status, 429)
        assert.strictEqual(held.headers.get("x-should-retry"), "false")
        const wait = Number(held.headers.get("retry-after"))
        assert.isTrue(wait > 7_190 && wait <= 7_200, String(wait))
        const body = yield* Effect.promise(() => held.json())
        assert.match(body.error.message, /^Nothing was sent: this model or account is refused until \d{4}-/)
        // what reads the answer of a provider reads it too
        const fault = Diagnosis.fromResponse({ status: 429, headers: held.headers, body }, { received: Date.now() })
        assert.strictEqual(fault._tag, "RateLimited")
      }
      const client = yield* HttpClient.HttpClient
      const post = HttpClientRequest.post(url).pipe(
        HttpClientRequest.setHeader("authorization", "Bearer one"),
        HttpClientRequest.bodyUnsafeJson({ model: "a-model" })
      )
      const fault = yield* Effect.flip(RecourseClient.recover(client).execute(post))
      assert.deepStrictEqual([fault._tag, "attempts" in fault && fault.attempts], ["RateLimited", 0])
      assert.strictEqual((yield* RecourseClient.transparent(client).execute(post)).status, 429)
      assert.lengthOf(yield* provider.requests, 1)
    }).pipe(Effect.provide(Hold.layerMemory), Effect.provide(FetchHttpClient.layer)))

  it.scopedLive("another model, another key and another policy are let through", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(refused(60))
      const url = `${provider.url}/v1/chat/completions`
      const fetch = yield* RecourseFetch.effect({ policy: RetryPolicy.brisk })
      const ask = (model: string, key: string, path = url) =>
        Effect.map(Effect.promise(() => fetch(path, init(model, key))), ({ status }) => status)
      assert.strictEqual(yield* ask("a-model", "one"), 429)
      assert.strictEqual(yield* ask("a-model", "one"), 429)
      assert.strictEqual(yield* ask("another-model", "one"), 200)
      assert.strictEqual(yield* ask("a-model", "two"), 200)
      assert.strictEqual(yield* ask("x", "one", `${provider.url}/v1beta/models/gemini:generateContent`), 200)
      assert.lengthOf(yield* provider.requests, 4)
      // a signature is new for each request, and the account the same
      yield* provider.play(refused(60))
      const signed = (signature: string) =>
        Effect.promise(() =>
          fetch(`${provider.url}/model/claude/converse`, {
            method: "POST",
            body: "{}",
            headers: {
              authorization:
                `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/bedrock/aws4_request, Signature=${signature}`
            }
          })
        )
      assert.deepStrictEqual([(yield* signed("1")).status, (yield* signed("2")).status], [429, 429])
      assert.lengthOf(yield* provider.requests, 1)
    }).pipe(Effect.provide(Hold.layerMemory)))
})
