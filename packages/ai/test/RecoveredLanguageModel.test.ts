import * as AiError from "@effect/ai/AiError"
import * as Chat from "@effect/ai/Chat"
import * as LanguageModel from "@effect/ai/LanguageModel"
import { CurrentSpanTransformer } from "@effect/ai/Telemetry"
import { assert, describe, it } from "@effect/vitest"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { counting, models, quick, toolkit } from "./models.ts"

const TEXT = "Here is what I can see of it."
const tool = { name: "look", input: { at: "the sky" } }
const overloaded = Provider.answer(529, { body: { error: { type: "overloaded_error", message: "Overloaded" } } })
const throttled = Provider.answer(429, {
  headers: { "retry-after-ms": "5" },
  body: { error: { message: "slow down" } }
})

/** What a fault before the answer comes to: another request. */
const recoverable: ReadonlyArray<Provider.Step> = [
  overloaded,
  throttled,
  Provider.reset,
  Provider.cutAfter(3),
  Provider.cutAfter(3, Provider.good(), "reset"),
  Provider.answer(502, { headers: { "content-type": "text/html" }, body: "<html><title>Bad gateway</title>" })
]

/** As much for an answer that is streamed. */
const unseen: ReadonlyArray<Provider.Step> = [
  Provider.ends("nothing", { kept: 0 }),
  Provider.ends("error", { kept: 0 }),
  Provider.ends("failure", { kept: 0 })
]

/** The same numbers in every run, from 0 to 1. */
const numbers = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return seed / 2_147_483_648
}

const some = <A>(from: ReadonlyArray<A>, next: () => number): A =>
  from[Math.floor(next() * from.length)] ?? assert.fail("nothing to choose from")

for (const [name, at] of models) {
  describe.concurrent(name, () => {
    const given = async <A, E>(
      provider: Provider.Started,
      steps: ReadonlyArray<Provider.Step>,
      call: Effect.Effect<
        A,
        E,
        | LanguageModel.LanguageModel
        | RecoveredLanguageModel.RecoveredLanguageModel
        | Layer.Layer.Success<ReturnType<typeof counting>["layer"]>
      >
    ) => {
      provider.play(...steps)
      const { layer, ran } = counting()
      const model = RecoveredLanguageModel.layer({ policy: quick }).pipe(Layer.provide(at(provider.url)))
      const ended = await Effect.runPromise(Effect.either(Effect.provide(call, Layer.merge(model, layer))))
      return { ended, ran, requests: provider.requests().length }
    }

    it("a transcript of ten turns with tools is the one that it is without faults", { timeout: 60_000 }, async () => {
      const provider = await Provider.start()
      const turns = (streamed: boolean) =>
        Effect.gen(function*() {
          const chat = yield* Chat.empty
          for (let turn = 0; turn < 10; turn++) {
            const asked = { prompt: `Turn ${turn}: what do you see?`, toolkit }
            if (streamed) yield* Stream.runDrain(chat.streamText(asked))
            else yield* chat.generateText(asked)
          }
          // Gemini names no calls: its adapter makes their names up
          return (yield* chat.exportJson).replace(/"id":"[^"]*"/g, "\"id\":\"\"")
        })
      for (const streamed of [false, true]) {
        const good = Array.from(
          { length: 10 },
          (_, turn) => Provider.good(`${TEXT} ${turn}`, turn % 2 === 0 ? { tool, reasoning: "Let me see." } : {})
        )
        const next = numbers(7)
        const faulty = good.flatMap((answer) => [
          ...Array.from(
            { length: next() < 0.5 ? 1 : 2 },
            () => some(streamed ? [...recoverable, ...unseen] : recoverable, next)
          ),
          answer
        ])
        const bare = await given(provider, good, turns(streamed))
        const recovered = await given(provider, faulty, turns(streamed))
        const [wanted, transcript] = [bare, recovered].map(({ ended }) =>
          ended._tag === "Right" ? ended.right.split("},{\"role\"") : assert.fail(String(ended.left))
        )
        assert.deepStrictEqual(transcript, wanted)
        assert.deepStrictEqual(recovered.ran, Array.from({ length: 5 }, () => "the sky"))
        assert.strictEqual(recovered.requests, faulty.length)
      }
      await provider.close()
    })

    it("a transcript takes up nothing of what an attempt has thought that failed", async () => {
      const provider = await Provider.start()
      const asked = Effect.gen(function*() {
        const chat = yield* Chat.empty
        yield* Stream.runDrain(chat.streamText({ prompt: "Think." }))
        return yield* chat.exportJson
      })
      const good = Provider.good(TEXT, { reasoning: "Let me see." })
      const bare = await given(provider, [good], asked)
      for (let kept = 0; kept < 10; kept++) {
        const thought = Provider.ends("nothing", { reasoning: "Some other way.", text: "", kept })
        const { ended, requests } = await given(provider, [thought, good], asked)
        assert.deepStrictEqual([ended, requests], [bare.ended, 2])
      }
      await provider.close()
    })

    it("a tool runs once for a whole answer, and never for another", { timeout: 60_000 }, async () => {
      const provider = await Provider.start()
      const next = numbers(11)
      const answer = () => Provider.good(TEXT, { tool })
      const partial = () =>
        some([
          () => Provider.cutAfter(Math.floor(next() * 4_000), answer()),
          () => Provider.cutAfter(Math.floor(next() * 4_000), answer(), "reset"),
          () => Provider.ends("nothing", { text: TEXT, tool, kept: Math.floor(next() * 12) }),
          () => Provider.ends("error", { text: TEXT, tool, kept: Math.floor(next() * 12) }),
          () => Provider.ends("failure", { text: TEXT, tool, kept: Math.floor(next() * 12) }),
          () => Provider.good(TEXT, { tool, capped: true }),
          () => overloaded
        ], next)()
      for (let run = 0; run < 30; run++) {
        const script = [...Array.from({ length: Math.floor(next() * 3) }, partial), answer()]
        const streamed = await given(
          provider,
          script,
          Stream.runCollect(RecoveredLanguageModel.streamText({ prompt: "Look.", toolkit }))
        )
        const parts = streamed.ended._tag === "Right" ? Array.from(streamed.ended.right) : []
        const whole = parts.some((part) => "type" in part && part.type === "finish") &&
          !parts.some(StreamRecovery.isCutShort)
        assert.lengthOf(streamed.ran, whole ? 1 : 0, JSON.stringify(script))
        const text = parts.map((part) => "type" in part && part.type === "text-delta" ? part.delta : "").join("")
        assert.isTrue(TEXT.startsWith(text))
        if (whole) assert.strictEqual(text, TEXT)

        const plain = await given(provider, script, LanguageModel.generateText({ prompt: "Look.", toolkit }))
        const capped = plain.ended._tag === "Right" && plain.ended.right.finishReason === "length"
        assert.lengthOf(plain.ran, plain.ended._tag === "Right" && !capped ? 1 : 0, JSON.stringify(script))
      }
      await provider.close()
    })

    it("what cannot be recovered ends at its turn, in the provider's own words", async () => {
      const provider = await Provider.start()
      const { ended, requests } = await given(
        provider,
        [
          Provider.good("One."),
          throttled,
          Provider.good("Two."),
          Provider.answer(401, { body: { error: { type: "authentication_error", message: "invalid key, says he" } } })
        ],
        Effect.gen(function*() {
          const chat = yield* Chat.empty
          yield* chat.generateText({ prompt: "1" })
          yield* chat.generateText({ prompt: "2" })
          const error = yield* Effect.flip(chat.generateText({ prompt: "3" }))
          return { error, transcript: yield* chat.exportJson }
        })
      )
      if (ended._tag === "Left") return assert.fail("the conversation failed")
      const { error, transcript } = ended.right
      assert.isTrue(AiError.isAiError(error))
      assert.include(error.message, "invalid key, says he")
      assert.strictEqual(Option.getOrUndefined(Fault.fromAiError(error))?._tag, "CredentialRejected")
      for (const word of ["One.", "Two."]) assert.include(transcript, word)
      assert.strictEqual(requests, 4)
      await provider.close()
    })

    it("what breaks after some text was shown is a cut, which says why", async () => {
      const provider = await Provider.start()
      for (
        const [ending, tags] of [
          ["nothing", ["StreamCut"]],
          ["error", ["Overloaded"]],
          ["failure", ["Unavailable", "GenerationMalformed"]]
        ] as const
      ) {
        const step = Provider.ends(ending, { text: TEXT })
        const typed = await given(
          provider,
          [step],
          Stream.runCollect(RecoveredLanguageModel.streamText({ prompt: "Go on." }))
        )
        const last = typed.ended._tag === "Right" ? Array.from(typed.ended.right).at(-1) : undefined
        if (!StreamRecovery.isCutShort(last) || last._tag !== "Stalled") return assert.fail(`${ending}: no cut`)
        assert.include(tags, last.fault._tag)
        assert.isTrue(TEXT.startsWith(last.text) && last.text !== "")
        assert.strictEqual(typed.requests, 1)

        // behind the tag of @effect/ai there is no such part: it fails, and the text can be read from the fault
        const plain = await given(provider, [step], Stream.runDrain(LanguageModel.streamText({ prompt: "Go on." })))
        const fault = plain.ended._tag === "Left" ? Fault.fromAiError(plain.ended.left) : Option.none()
        assert.include(tags, Option.getOrUndefined(fault)?._tag)
        assert.strictEqual(Option.match(fault, { onNone: () => "", onSome: StreamRecovery.prefix }), last.text)

        // and a chat takes up what was shown
        const chat = await given(
          provider,
          [step],
          Effect.gen(function*() {
            const chat = yield* Chat.empty
            yield* Effect.flip(Stream.runDrain(chat.streamText({ prompt: "Go on." })))
            return yield* chat.exportJson
          })
        )
        assert.include(chat.ended._tag === "Right" ? chat.ended.right : "", JSON.stringify(last.text))
      }
      await provider.close()
    })

    it("what a model wrote that cannot be read is asked for again, twice at most, at once", async () => {
      const provider = await Provider.start()
      const wrong = Provider.good(TEXT, { tool: { name: "look", input: { at: 5 } } })
      const asked = LanguageModel.generateText({ prompt: "Look.", toolkit })
      const twice = await given(provider, [wrong, wrong, Provider.good(TEXT, { tool })], asked)
      assert.deepStrictEqual([twice.ended._tag, twice.ran, twice.requests], ["Right", ["the sky"], 3])
      const thrice = await given(provider, [wrong, wrong, wrong, Provider.good(TEXT, { tool })], asked)
      const fault = thrice.ended._tag === "Left" ? Fault.fromAiError(thrice.ended.left) : Option.none()
      assert.deepStrictEqual(
        [Option.getOrUndefined(fault)?._tag, thrice.ran, thrice.requests],
        ["GenerationMalformed", [], 3]
      )
      await provider.close()
    })

    it("an object is generated, and asked for again where it is not the one that was asked for", async () => {
      const provider = await Provider.start()
      const thing = (a: unknown) =>
        name === "@effect/ai-anthropic"
          ? Provider.good("", { tool: { name: "thing", input: { a } } })
          : Provider.good(JSON.stringify({ a }))
      const asked = RecoveredLanguageModel.generateObject({
        prompt: "A thing.",
        objectName: "thing",
        schema: Schema.Struct({ a: Schema.NumberFromString })
      })
      const { ended, requests } = await given(provider, [overloaded, thing("five"), thing("5")], asked)
      assert.deepStrictEqual(ended._tag === "Right" && ended.right.value, { a: 5 })
      assert.strictEqual(requests, 3)
      await provider.close()
    })

    it("a provider's span is one for each attempt, a caller's one for all of them", async () => {
      const provider = await Provider.start()
      const spans: Array<Tracer.Span> = []
      const native = await Effect.runPromise(Effect.tracer)
      const tracer = Tracer.make({
        span: (...args) => {
          const span = native.span(...args)
          spans.push(span)
          return span
        },
        context: (f, fiber) => native.context(f, fiber)
      })
      const { requests } = await given(
        provider,
        [overloaded, throttled, Provider.good(TEXT)],
        Effect.withTracer(LanguageModel.generateText({ prompt: "Go on." }), tracer)
      )
      assert.strictEqual(requests, 3)
      const [above, ...beneath] = spans.filter((span) => span.name === "LanguageModel.generateText")
      assert.lengthOf(beneath, 3)
      for (const { parent } of beneath) assert.strictEqual(Option.getOrUndefined(parent)?.spanId, above?.spanId)
      await provider.close()
    })

    it("a caller's span is transformed once, whatever was asked beneath", async () => {
      const provider = await Provider.start()
      let times = 0
      const { requests } = await given(
        provider,
        [overloaded, Provider.good(TEXT), overloaded, Provider.good(TEXT)],
        Effect.zipRight(
          LanguageModel.generateText({ prompt: "Go on." }),
          Stream.runDrain(LanguageModel.streamText({ prompt: "Go on." }))
        ).pipe(Effect.provideService(CurrentSpanTransformer, () => {
          times++
        }))
      )
      assert.deepStrictEqual([times, requests], [2, 4])
      await provider.close()
    })

    it("a refusal for long ends the call, and nothing is sent for its siblings", async () => {
      const provider = await Provider.start()
      provider.play(Provider.answer(429, { headers: { "retry-after": "2400" }, body: { error: { message: "later" } } }))
      const model = RecoveredLanguageModel.layer({ target: { account: Redacted.make("a key"), model: "scripted" } })
        .pipe(
          Layer.provide(Layer.merge(at(provider.url), Hold.layerMemory))
        )
      const faults = await Effect.runPromise(Effect.provide(
        Effect.all([
          Effect.flip(RecoveredLanguageModel.generateText({ prompt: "1" })),
          Effect.flip(RecoveredLanguageModel.generateText({ prompt: "2" })),
          Effect.flip(Stream.runDrain(RecoveredLanguageModel.streamText({ prompt: "3" })))
        ]),
        model
      ))
      assert.deepStrictEqual(faults.map(({ _tag, attempts }) => [_tag, attempts]), [
        ["RateLimited", 1],
        ["RateLimited", 0],
        ["RateLimited", 0]
      ])
      assert.match(faults[0]?.message ?? "", /until|resets/i)
      assert.lengthOf(provider.requests(), 1)
      await provider.close()
    })
  })
}
