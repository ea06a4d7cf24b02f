// What the adapters do with what a provider says, and what is heard of it all the same.
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiEmbeddingModel from "@effect/ai-openai/OpenAiEmbeddingModel"
import * as EmbeddingModel from "@effect/ai/EmbeddingModel"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as RecoveredEmbeddingModel from "@recourse/ai/RecoveredEmbeddingModel"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { models, quick } from "./models.ts"

const named = (name: string) => models.find(([own]) => own === name)?.[1] ?? assert.fail(`no ${name}`)
const openai = named("@effect/ai-openai")
const anthropic = named("@effect/ai-anthropic")

/** How a stream ends: by a cut, by a fault, or as a whole answer. */
const streamed = async (
  model: (url: string) => Layer.Layer<LanguageModel.LanguageModel>,
  ...steps: ReadonlyArray<Provider.Step>
) => {
  const provider = await Provider.start()
  provider.play(...steps)
  const ended = await Effect.runPromise(
    Effect.either(Stream.runCollect(RecoveredLanguageModel.streamText({ prompt: "Go on." }))).pipe(
      Effect.provide(RecoveredLanguageModel.layer({ policy: quick }).pipe(Layer.provide(model(provider.url))))
    )
  )
  const requests = provider.requests().length
  await provider.close()
  if (ended._tag === "Left") return [ended.left._tag, requests]
  const last = Array.from(ended.right).at(-1)
  return [
    StreamRecovery.isCutShort(last) && last._tag === "Stalled"
      ? `Stalled ${last.fault._tag}`
      : last !== undefined && "type" in last && last.type,
    requests
  ]
}

const deaf = (client: Parameters<NonNullable<Parameters<typeof openai>[1]>>[0]) => client

const message = (...events: ReadonlyArray<object>): Provider.Whole =>
  Provider.answer(200, {
    headers: { "content-type": "text/event-stream" },
    body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
  })

const begun = [
  {
    type: "message_start",
    message: {
      id: "m",
      type: "message",
      role: "assistant",
      model: "scripted",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 }
    }
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "So far" } }
]

const unlisted = { type: "error", error: { type: "engine_overloaded_error", message: "The engine is overloaded" } }

describe.concurrent("Known traps of the adapters", () => {
  it("an error type that Anthropic's adapter does not list is read for what it is", async () => {
    assert.deepStrictEqual(await streamed(anthropic, message(unlisted), Provider.good("All of it.")), ["finish", 2])
    const slowly = Provider.paced(message(...begun, unlisted), { bytes: 100, every: 10 })
    assert.deepStrictEqual(await streamed(anthropic, slowly), ["Stalled Overloaded", 1])
    // whose decoder fails for it: without a witness there is what its error quotes
    assert.deepStrictEqual(
      await streamed((url) => anthropic(url, deaf), message(unlisted), Provider.good("All of it.")),
      ["finish", 2]
    )
  })

  it("an error part, and an end without a finish, need no witness", async () => {
    for (const model of [openai, anthropic]) {
      const unheard = (url: string) => model(url, deaf)
      assert.deepStrictEqual(await streamed(unheard, Provider.ends("error")), ["Stalled Overloaded", 1])
      assert.deepStrictEqual(await streamed(unheard, Provider.ends("nothing")), ["Stalled StreamCut", 1])
    }
  })

  it("response.failed is a finish like any other to OpenAI's adapter: only a witness hears of it", async () => {
    assert.deepStrictEqual(await streamed(openai, Provider.ends("failure")), ["Stalled Unavailable", 1])
    assert.deepStrictEqual(await streamed((url) => openai(url, deaf), Provider.ends("failure")), ["finish", 1])
  })

  it("Gemini's MALFORMED_FUNCTION_CALL is asked for again at once, twice at most, whole and streamed", async () => {
    const provider = await Provider.start()
    const malformed = Provider.answer(200, {
      body: { candidates: [{ index: 0, finishReason: "MALFORMED_FUNCTION_CALL" }] }
    })
    const model = RecoveredLanguageModel.layer({ policy: quick }).pipe(
      Layer.provide(named("@effect/ai-google")(provider.url))
    )
    const asked = RecoveredLanguageModel.generateText({ prompt: "Look." }).pipe(
      Effect.map(({ text }) => text),
      Effect.catchTag("GenerationMalformed", (fault) => Effect.succeed(fault.attempts)),
      Effect.provide(model)
    )
    provider.play(malformed, malformed, Provider.good("I see it."))
    assert.strictEqual(await Effect.runPromise(asked), "I see it.")
    provider.play(malformed, malformed, malformed)
    assert.strictEqual(await Effect.runPromise(asked), 3)
    assert.lengthOf(provider.requests(), 3)
    await provider.close()
    const cut = Provider.ends("failure", { kept: 0 })
    assert.deepStrictEqual(await streamed(named("@effect/ai-google"), cut, cut, Provider.good("I see it.")), [
      "finish",
      3
    ])
  })

  it("a body that is neither JSON nor text by its name is read all the same", async () => {
    const purse = Provider.answer(429, {
      headers: { "content-type": "application/problem+json" },
      body: { error: { code: "insufficient_quota", message: "You exceeded your current quota" } }
    })
    for (const model of [openai, anthropic]) {
      assert.deepStrictEqual(await streamed(model, purse), ["QuotaExhausted", 1])
    }
  })

  it("silence is no answer, and is asked for again", async () => {
    const impatient = RecourseClient.witnessed({ liveness: { headers: 500, chunk: 500 } })
    for (const model of [openai, anthropic]) {
      const ended = await streamed((url) => model(url, impatient), Provider.silent, Provider.silent, Provider.silent)
      assert.deepStrictEqual(ended, ["TimedOut", 3])
    }
  })
})

describe("An embedding model", () => {
  it("is recovered, and meets the hold", async () => {
    const provider = await Provider.start()
    const embeddings = Provider.answer(200, {
      body: {
        object: "list",
        model: "scripted",
        data: [{ object: "embedding", index: 0, embedding: [1, 2] }],
        usage: { prompt_tokens: 1, total_tokens: 1 }
      }
    })
    const model = OpenAiEmbeddingModel.layerBatched({ model: "scripted" }).pipe(
      Layer.provide(OpenAiClient.layer({ apiUrl: `${provider.url}/v1`, transformClient: RecourseClient.witnessed() })),
      Layer.provide(FetchHttpClient.layer)
    )
    provider.play(
      Provider.answer(503, {}),
      embeddings,
      Provider.reset,
      embeddings,
      Provider.answer(429, { headers: { "retry-after": "2400" }, body: {} })
    )
    const target = { account: Redacted.make("a key"), model: "scripted" }
    await Effect.runPromise(
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* RecoveredEmbeddingModel.embed("one"), [1, 2])
        assert.deepStrictEqual(yield* RecoveredEmbeddingModel.embedMany(["one"]), [[1, 2]])
        const refused = yield* Effect.flip(RecoveredEmbeddingModel.embed("two"))
        assert.deepStrictEqual([refused._tag, refused.attempts], ["RateLimited", 1])
        // behind the tag, the same fault is the cause
        const behind = yield* Effect.flip(
          Effect.flatMap(EmbeddingModel.EmbeddingModel, (model) => model.embed("three"))
        )
        const fault = Option.getOrUndefined(Fault.fromAiError(behind))
        assert.deepStrictEqual([fault?._tag, fault?.attempts], ["RateLimited", 0])
      }).pipe(
        Effect.provide(RecoveredEmbeddingModel.layer({ target, policy: quick })),
        Effect.provide(Layer.merge(model, Hold.layerMemory))
      )
    )
    assert.lengthOf(provider.requests(), 5)
    await provider.close()
  })
})
