import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Exchange from "@recourse/ai/Exchange"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Fault from "@recourse/core/Fault"
import * as RepairBudget from "@recourse/core/RepairBudget"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { counting, models, quick, toolkit } from "./models.ts"

/** What a transcript says, a line a message. */
const said = ({ content }: Prompt.Prompt): ReadonlyArray<string> =>
  content.map(({ content, role }) =>
    `${role}: ${
      typeof content === "string"
        ? content
        : content.map((part) => part.type === "text" ? part.text : part.type).join("+")
    }`
  )

const stalled = (text: string): Provider.Step => Provider.ends("nothing", { text })

const NUDGED = (cut: "failing connection" | "limit") =>
  new RegExp(`^user: Your last message was cut off .*${cut}.* Go on exactly where it ends`)

for (const [name, at] of models) {
  describe.concurrent(`An exchange, ${name}`, () => {
    const played = async (
      steps: ReadonlyArray<Provider.Step>,
      options: { readonly repairOutputCap?: boolean; readonly consecutive?: number; readonly exchanges?: number } = {}
    ) => {
      const { consecutive, exchanges = 1, ...rest } = options
      const budget = RepairBudget.make(consecutive === undefined ? {} : { consecutive })
      const provider = await Provider.start()
      provider.play(...steps)
      const { layer, ran } = counting()
      const result = await Effect.runPromise(
        Effect.gen(function*() {
          const history = yield* Ref.make(Prompt.empty)
          const parts: Array<string> = []
          let ended: Either.Either<void, unknown> = Either.void
          for (let i = 0; i < exchanges; i++) {
            ended = yield* Effect.either(Stream.runForEach(
              Exchange.streamText({
                ...rest,
                budget,
                history,
                prompt: `Tell me, ${i}.`,
                turn: (prompt) => RecoveredLanguageModel.streamText({ prompt, toolkit })
              }),
              (part) =>
                Effect.sync(() => {
                  if ("_tag" in part) parts.push(part._tag)
                  else if (part.type === "text-delta") parts.push(part.delta)
                })
            ))
          }
          const left = yield* budget.left
          return { parts, ended, left, transcript: said(yield* Ref.get(history)) }
        }).pipe(Effect.provide(Layer.merge(
          layer,
          RecoveredLanguageModel.layer({ policy: quick }).pipe(Layer.provide(at(provider.url)))
        )))
      )
      const requests = provider.requests()
      await provider.close()
      return { ...result, ran, requests }
    }

    it("goes on where a stall has cut it, and the transcript has both", async () => {
      const { ended, parts, requests, transcript } = await played([stalled("Once upon "), Provider.good("a time.")])
      assert.isTrue(Either.isRight(ended))
      assert.deepStrictEqual(parts, ["Once ", "upon ", "Stalled", "a ", "time."])
      assert.deepStrictEqual([transcript[0], transcript[1], transcript[3]], [
        "user: Tell me, 0.",
        "assistant: Once upon ",
        "assistant: a time."
      ])
      assert.match(transcript[2] ?? "", NUDGED("failing connection"))
      // the model has read what it had said, and that it is to go on
      assert.include(requests[1]?.body, "Once upon ")
      assert.include(requests[1]?.body, "Go on exactly where it ends")
    })

    it("repairs three times in a row, and no more, and begins anew with an exchange", async () => {
      const cut = Array.from({ length: 9 }, (_, i) => stalled(`${i} `))
      const { parts, requests } = await played(cut)
      assert.deepStrictEqual(parts, ["0 ", "Stalled", "1 ", "Stalled", "2 ", "Stalled", "3 ", "Stalled"])
      assert.lengthOf(requests, 4)
      assert.lengthOf((await played(cut, { exchanges: 2, consecutive: 1 })).requests, 4)
    })

    it("a round of tools that is complete clears the budget", async () => {
      const tool = { name: "look", input: { at: "the sky" } }
      const round = await played([stalled("a "), Provider.good("b ", { tool })])
      assert.deepStrictEqual([round.left, round.ran, round.requests.length], [3, ["the sky"], 2])
      assert.strictEqual((await played([stalled("a "), Provider.good("b ")])).left, 2)
    })

    it("an output cap is reported, and repaired only for whoever asks for it", async () => {
      const steps = [Provider.good("As far as it ", { capped: true }), Provider.good("goes.")]
      const reported = await played(steps)
      assert.deepStrictEqual(reported.parts.slice(-1), ["OutputCap"])
      assert.deepStrictEqual(reported.transcript, ["user: Tell me, 0.", "assistant: As far as it "])
      const repaired = await played(steps, { repairOutputCap: true })
      assert.deepStrictEqual(repaired.parts.filter((part) => !part.includes("Cap")).join(""), "As far as it goes.")
      assert.match(repaired.transcript[2] ?? "", NUDGED("limit"))
    })

    it("what is surfaced ends it, and what was shown is in the transcript", async () => {
      const { ended, transcript } = await played([
        stalled("Once upon "),
        Provider.answer(401, { body: { error: { type: "authentication_error", message: "invalid key" } } })
      ])
      assert.strictEqual(Either.isLeft(ended) && Fault.isFault(ended.left) && ended.left._tag, "CredentialRejected")
      assert.deepStrictEqual(transcript.slice(0, 2), ["user: Tell me, 0.", "assistant: Once upon "])
    })
  })
}

describe("An exchange", () => {
  it("that is interrupted leaves what was shown in the transcript", async () => {
    const provider = await Provider.start()
    provider.play(Provider.stalled(Provider.good("word ".repeat(40)), 0.8))
    const [, at] = models[0] ?? assert.fail("no model")
    const transcript = await Effect.runPromise(
      Effect.gen(function*() {
        const history = yield* Ref.make(Prompt.empty)
        let seen = ""
        const fiber = yield* Effect.fork(Stream.runForEach(
          Exchange.streamText({
            history,
            prompt: "Tell me.",
            turn: (prompt) => RecoveredLanguageModel.streamText({ prompt })
          }),
          (part) =>
            Effect.sync(() => {
              if (!StreamRecovery.isBoundary(part) && !StreamRecovery.isCutShort(part) && part.type === "text-delta") {
                seen += part.delta
              }
            })
        ))
        while (seen.length < 50) yield* Effect.sleep(5)
        yield* Fiber.interrupt(fiber)
        const [, answer] = said(yield* Ref.get(history))
        assert.strictEqual(answer, `assistant: ${seen}`)
        return said(yield* Ref.get(history))
      }).pipe(Effect.provide(RecoveredLanguageModel.layer().pipe(Layer.provide(at(provider.url)))))
    )
    assert.lengthOf(transcript, 2)
    await provider.close()
  })

  it("whose tool is interrupted, or fails, leaves no open call in the transcript", async () => {
    const provider = await Provider.start()
    const [, at] = models[0] ?? assert.fail("no model")
    for (const by of ["an interruption", "a failure"] as const) {
      provider.play(Provider.good("I will look.", { tool: { name: "look", input: { at: "the sky" } } }))
      const transcript = await Effect.runPromise(
        Effect.gen(function*() {
          const history = yield* Ref.make(Prompt.empty)
          const begun = yield* Deferred.make<void>()
          const tools = toolkit.toLayer({
            look: () =>
              Effect.zipRight(Deferred.succeed(begun, undefined), by === "a failure" ? Effect.die("no") : Effect.never)
          })
          const exchange = Exchange.streamText({
            history,
            prompt: "Look.",
            turn: (prompt) => RecoveredLanguageModel.streamText({ prompt, toolkit })
          })
          const fiber = yield* Effect.fork(Stream.runDrain(exchange).pipe(Effect.provide(tools)))
          yield* Deferred.await(begun)
          yield* by === "a failure" ? Fiber.await(fiber) : Fiber.interrupt(fiber)
          return said(yield* Ref.get(history))
        }).pipe(Effect.provide(RecoveredLanguageModel.layer().pipe(Layer.provide(at(provider.url)))))
      )
      assert.deepStrictEqual(transcript, ["user: Look.", "assistant: I will look."], by)
    }
    await provider.close()
  })
})
