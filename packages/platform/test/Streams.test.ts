import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { assert, describe, it } from "@effect/vitest"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import type * as Recovery from "@recourse/core/Recovery"
import type * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as AnthropicMessages from "@recourse/platform/AnthropicMessages"
import * as Gemini from "@recourse/platform/Gemini"
import * as OpenAiChat from "@recourse/platform/OpenAiChat"
import * as OpenAiResponses from "@recourse/platform/OpenAiResponses"
import * as Protocol from "@recourse/platform/Protocol"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { quick } from "./quick.ts"

const dialects = [
  ["OpenAI's chat completions", "/v1/chat/completions", OpenAiChat.protocol],
  ["OpenAI's responses", "/v1/responses", OpenAiResponses.protocol],
  ["Anthropic's messages", "/v1/messages", AnthropicMessages.protocol],
  ["Gemini", "/v1beta/models/scripted:streamGenerateContent", Gemini.protocol]
] as const

const TEXT = "Here is the answer."
const impatient = { headers: "500 millis", chunk: "500 millis" } as const

/** How long silence is borne: briefly where it is played, and else for longer than a busy machine takes. */
const livenessFor = (steps: ReadonlyArray<Provider.Step>) =>
  steps.some((step) => step._tag === "Silent" || (step._tag === "Partly" && step.after === "silence")) ? impatient : {}

const asking = (url: string): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUnsafeJson({ model: "scripted", stream: true }))

interface Seen {
  readonly text: string
  /** The cut, or the tag of the error. */
  readonly ended: string | undefined
  readonly boundaries: number
  readonly calls: string
  readonly faults: ReadonlyArray<string>
  readonly requests: number
}

type Part = Protocol.Part | StreamRecovery.Boundary | StreamRecovery.CutShort

const collected = (
  provider: Provider.Started,
  path: string,
  steps: ReadonlyArray<Provider.Step>
): Effect.Effect<Seen, never, HttpClient.HttpClient> =>
  Effect.gen(function*() {
    provider.play(...steps)
    const client = yield* HttpClient.HttpClient
    const faults: Array<string> = []
    const parts: Array<Part> = []
    const ended = yield* Effect.either(Stream.runForEach(
      RecourseClient.stream(client, asking(`${provider.url}${path}`), {
        policy: quick,
        liveness: livenessFor(steps),
        listener: (event: Recovery.Event) => event._tag === "Failed" ? faults.push(event.fault._tag) : undefined
      }),
      (part) => Effect.sync(() => parts.push(part))
    ))
    const last = parts.at(-1)
    return {
      text: parts.map((part) => part._tag === "Text" ? part.text : "").join(""),
      ended: ended._tag === "Left"
        ? Fault.isFault(ended.left) ? ended.left._tag : String(ended.left)
        : last?._tag === "Stalled"
        ? `Stalled ${last.fault._tag}`
        : last?._tag,
      boundaries: parts.filter(({ _tag }) => _tag === "Boundary").length,
      calls: parts.map((part) => part._tag === "ToolCall" ? `${part.name ?? ""}${part.input}` : "").join(""),
      faults,
      requests: provider.requests().length
    }
  })

/** What a fault before the first text comes to: another request, and the whole answer. */
const unseen: ReadonlyArray<readonly [name: string, step: Provider.Step, tags: ReadonlyArray<Fault.Fault["_tag"]>]> = [
  ["an overload", Provider.answer(529, { body: { error: { type: "overloaded_error" } } }), ["Overloaded"]],
  ["a reset before the headers", Provider.reset, ["Unreachable"]],
  ["no headers", Provider.silent, ["TimedOut"]],
  ["a stall before the first frame", Provider.stalled(Provider.good(), 0.001), ["TimedOut"]],
  ["a cut before the first frame", Provider.cutAfter(4), ["Unreachable"]],
  ["a reset before the first frame", Provider.cutAfter(4, Provider.good(), "reset"), ["Unreachable"]],
  ["no frame at all", Provider.ends("nothing", { kept: 0 }), ["StreamCut"]],
  ["an error frame first", Provider.ends("error", { kept: 0 }), ["Overloaded"]],
  ["a failure first", Provider.ends("failure", { kept: 0 }), ["Unavailable", "GenerationMalformed"]]
]

/** What one after it comes to: no other request, and a cut. */
const seen: ReadonlyArray<readonly [name: string, step: Provider.Step, tags: ReadonlyArray<Fault.Fault["_tag"]>]> = [
  ["no terminal event", Provider.ends("nothing"), ["StreamCut"]],
  ["an error frame", Provider.ends("error"), ["Overloaded"]],
  ["a failure", Provider.ends("failure"), ["Unavailable", "GenerationMalformed"]],
  ["a cut", Provider.cut(Provider.good(TEXT.repeat(20)), 0.6), ["Unreachable"]],
  ["a reset", Provider.cutAfter(4_000, Provider.good(TEXT.repeat(40)), "reset"), ["Unreachable"]],
  ["a stall", Provider.stalled(Provider.good(TEXT.repeat(20)), 0.6), ["TimedOut"]]
]

/** The text that a provider sends in one answer, as far as it goes: what a bare fetch has of it. */
const sent = async (
  provider: Provider.Started,
  path: string,
  protocol: Protocol.Protocol,
  step: Provider.Step
): Promise<string> => {
  provider.play(step)
  const bytes: Array<Uint8Array> = []
  const body = JSON.stringify({ model: "scripted", stream: true })
  const response = await fetch(`${provider.url}${path}`, { method: "POST", body, signal: AbortSignal.timeout(1_000) })
  try {
    const reader = response.body?.getReader()
    for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) bytes.push(next.value)
  } catch {
    // it breaks, or stalls: what has come by then is what it sent
  }
  let text = ""
  await Effect.runPromise(Effect.either(
    Stream.runForEach(Protocol.decode(protocol)(Stream.fromIterable(bytes)), (part) =>
      Effect.sync(() => {
        if (part._tag === "Text") text += part.text
      }))
  ))
  return text
}

/** Waits until the provider has seen that nobody reads; a test that waits for ever fails. */
const hungUp = (provider: Provider.Started): Effect.Effect<void> =>
  Effect.suspend(() => provider.open() === 0 ? Effect.void : Effect.zipRight(Effect.sleep(2), hungUp(provider)))

const clients = [["fetch", FetchHttpClient.layer], ["undici", NodeHttpClient.layerUndici]] as const

describe.concurrent("Streams, on real sockets", () => {
  for (const [name, path, protocol] of dialects) {
    it(
      `${name}: every fault before the first text is invisible, every later one a cut`,
      { timeout: 30_000 },
      async () => {
        const provider = await Provider.start()
        for (const [client, layer] of clients) {
          const streamed = (...steps: ReadonlyArray<Provider.Step>) =>
            Effect.runPromise(Effect.provide(collected(provider, path, steps), layer))
          for (const [what, step, tags] of unseen) {
            const { ended, faults, requests, text } = await streamed(step)
            assert.deepStrictEqual([text, ended, requests], [TEXT, ended, 2], `${client}: ${what}`)
            assert.include(["End", "Usage", "Other"], ended, `${client}: ${what}`)
            assert.lengthOf(faults, 1)
            assert.include(tags, faults[0], `${client}: ${what}`)
          }
          for (const [what, step, tags] of seen) {
            const { ended, faults, requests, text } = await streamed(step)
            assert.isTrue(text.length > 0 && TEXT.repeat(40).startsWith(text), `${client}: ${what}: ${text}`)
            assert.strictEqual(text, await sent(provider, path, protocol, step), `${client}: ${what}`)
            assert.lengthOf(faults, 1)
            assert.include(tags, faults[0], `${client}: ${what}`)
            assert.deepStrictEqual([ended, requests], [`Stalled ${faults[0]}`, 1], `${client}: ${what}`)
          }
        }
        await provider.close()
      }
    )

    it(`${name}: what is whole, however it comes`, { timeout: 30_000 }, async () => {
      const provider = await Provider.start()
      const streamed = (...steps: ReadonlyArray<Provider.Step>) =>
        Effect.runPromise(Effect.provide(collected(provider, path, steps), FetchHttpClient.layer))
      for (
        const step of [Provider.paced(Provider.good(), { every: 0 }), Provider.paced(Provider.good(), { bytes: 250 })]
      ) {
        const { faults, requests, text } = await streamed(step)
        assert.deepStrictEqual([text, requests, faults], [TEXT, 1, []])
      }
      const tool = { name: "look", input: { at: "the sky" } }
      const thinking = { reasoning: "Let me see.", tool }
      const after = path.endsWith("/responses") ? 6 : path.endsWith("/messages") ? 3 : 2
      const again = await streamed(
        Provider.ends("nothing", { ...thinking, kept: after }),
        Provider.good(TEXT, thinking)
      )
      assert.deepStrictEqual(
        [again.text, again.calls, again.boundaries, again.requests],
        [TEXT, `look${JSON.stringify(tool.input)}`, 1, 2]
      )
      const broken = await streamed(Provider.ends("nothing", { tool }))
      assert.deepStrictEqual([broken.text, broken.calls, broken.ended], [TEXT, "", "Stalled StreamCut"])
      const capped = await streamed(Provider.good(TEXT, { capped: true, tool }))
      assert.deepStrictEqual([capped.text, capped.calls, capped.ended, capped.requests], [TEXT, "", "OutputCap", 1])
      const far = await streamed(Provider.answer(429, { headers: { "retry-after": "7200" } }))
      assert.deepStrictEqual([far.text, far.ended, far.requests], ["", "RateLimited", 1])
      const plain = await streamed(Provider.answer(200, { body: { choices: [{ finish_reason: "stop" }] } }))
      assert.deepStrictEqual([plain.text, plain.ended, plain.requests], ["", "Unrecognized", 1])
      await provider.close()
    })
  }

  it(
    "comments are life, an interruption closes the socket at once, and so does an early stop",
    { timeout: 5_000 },
    async () => {
      const provider = await Provider.start()
      provider.play(Provider.keepAlive(40), Provider.stalled(Provider.good(TEXT.repeat(20)), 0.6))
      const events: Array<string> = []
      await Effect.runPromise(
        Effect.gen(function*() {
          const client = yield* HttpClient.HttpClient
          const url = `${provider.url}/v1/chat/completions`
          const streamed = RecourseClient.stream(client, asking(url), {
            policy: quick,
            liveness: impatient,
            listener: (event) => events.push(event._tag === "Interrupted" ? `Interrupted ${event.where}` : event._tag)
          })
          const fiber = yield* Effect.fork(Stream.runDrain(streamed))
          // twenty comments, in twice the bound
          yield* Effect.sleep(1_000)
          assert.isNull(fiber.unsafePoll())
          assert.strictEqual(provider.open(), 1)
          yield* Fiber.interrupt(fiber)
          yield* hungUp(provider)
          yield* Stream.runDrain(Stream.take(streamed, 3))
          yield* hungUp(provider)
        }).pipe(Effect.provide(NodeHttpClient.layerUndici))
      )
      assert.deepStrictEqual(events, ["Started", "Interrupted attempt", "Started"])
      await provider.close()
    }
  )

  it("a refusal inside a stream holds the next one", async () => {
    const provider = await Provider.start()
    provider.play(Provider.answer(429, { headers: { "retry-after": "7200" } }))
    await Effect.runPromise(
      Effect.gen(function*() {
        const client = yield* HttpClient.HttpClient
        const streamed = Stream.runDrain(RecourseClient.stream(client, asking(`${provider.url}/v1/messages`)))
        for (const attempts of [1, 0]) {
          const error = yield* Effect.flip(streamed)
          assert.deepStrictEqual([error._tag, Fault.isFault(error) && error.attempts], ["RateLimited", attempts])
        }
      }).pipe(Effect.provide(FetchHttpClient.layer), Effect.provide(Hold.layerMemory))
    )
    assert.lengthOf(provider.requests(), 1)
    await provider.close()
  })
})

it.effect("what comes for a pull that was interrupted is there for the next one", () =>
  Effect.gen(function*() {
    const source: { controller?: ReadableStreamDefaultController<Uint8Array> } = {}
    const client = HttpClient.make((request) =>
      Effect.sync(() => {
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            source.controller = controller
          }
        })
        return HttpClientResponse.fromWeb(
          request,
          new Response(body, { headers: { "content-type": "text/event-stream" } })
        )
      })
    )
    const say = (content: string, finish_reason: string | null = null) =>
      source.controller?.enqueue(
        new TextEncoder().encode(
          `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
        )
      )
    const pull = yield* Stream.toPull(RecourseClient.stream(client, asking("http://provider/v1/chat/completions")))
    const next = Effect.map(pull, (parts) => Array.from(parts, (part) => part._tag === "Text" ? part.text : part._tag))
    const first = yield* Effect.fork(next)
    while (source.controller === undefined) yield* Effect.yieldNow()
    say("a")
    assert.deepStrictEqual(yield* Fiber.join(first), ["a"])
    for (const word of ["b", "c"]) {
      const interrupted = yield* Effect.fork(next)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(interrupted)
      say(word)
      // so that it comes while nobody asks
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.deepStrictEqual(yield* next, [word])
    }
    say("", "stop")
    assert.deepStrictEqual(yield* next, ["End"])
  }).pipe(Effect.scoped))
