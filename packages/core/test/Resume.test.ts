import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as Resume from "@recourse/core/Resume"
import * as ResumeStore from "@recourse/core/ResumeStore"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"

/** A refusal that is met now, with a reset named as a delta or as an instant. */
const refusal = (seconds: number, named: "delta" | "instant" = "delta"): Effect.Effect<Fault.Fault> =>
  Effect.map(Clock.currentTimeMillis, (received) =>
    Diagnosis.fromResponse({
      status: 429,
      headers: {
        "retry-after": named === "delta" ? String(seconds) : new Date(received + seconds * 1_000).toUTCString()
      }
    }, { received }))

/** Everything that wakes, and when, in seconds. */
const woken = Effect.gen(function*() {
  const resume = yield* Resume.Resume
  const log: Array<readonly [conversation: string, at: number]> = []
  yield* Effect.forkScoped(
    Stream.runForEach(
      resume.wakeups,
      ({ conversation }) => Effect.map(Clock.currentTimeMillis, (now) => log.push([conversation, now / 1_000]))
    )
  )
  yield* Effect.yieldNow()
  return log
})

const prompt = Layer.provide(Resume.layer({ spread: 0 }), ResumeStore.layerMemory)

describe("Resume", () => {
  it.scoped.prop(
    "each conversation wakes once, at the reset of its last refusal, unless it succeeds before",
    [FastCheck.array(
      FastCheck.record({
        conversation: FastCheck.constantFrom("a", "b", "c"),
        does: FastCheck.constantFrom("refused", "refused", "succeeds"),
        seconds: FastCheck.integer({ min: 1, max: 120 }),
        named: FastCheck.constantFrom<"delta" | "instant">("delta", "instant"),
        pause: FastCheck.integer({ min: 0, max: 60 })
      }),
      { maxLength: 8 }
    )],
    ([steps]) =>
      Effect.gen(function*() {
        const resume = yield* Resume.Resume
        const log = yield* woken
        const expected: Array<readonly [conversation: string, at: number]> = []
        const due = new Map<string, number>()
        let now = 0
        const pass = (seconds: number) => {
          now += seconds
          for (const [conversation, at] of [...due].sort(([, a], [, b]) => a - b)) {
            if (at > now) continue
            due.delete(conversation)
            expected.push([conversation, at])
          }
          return TestClock.adjust(Duration.seconds(seconds))
        }
        for (const { conversation, does, named, pause, seconds } of steps) {
          const call = does === "refused" ? Effect.flatMap(refusal(seconds, named), Effect.fail) : Effect.void
          yield* Effect.either(Resume.arming(call, conversation))
          if (does === "refused") due.set(conversation, now + seconds)
          else due.delete(conversation)
          yield* pass(pause)
        }
        yield* pass(130)
        const ordered = (all: ReadonlyArray<readonly [string, number]>) =>
          [...all].sort(([a, x], [b, y]) => x - y || a.localeCompare(b))
        assert.deepStrictEqual(ordered(log), ordered(expected))
        assert.deepStrictEqual(yield* resume.armed, [])
      }).pipe(Effect.provide(prompt)),
    { fastCheck: { numRuns: 25 } }
  )

  it.scoped.prop(
    "a wake-up comes within its spread, and those of one reset are no stampede",
    { seed: FastCheck.integer({ min: 1, max: 60 }) },
    ({ seed }) =>
      Effect.gen(function*() {
        const resume = yield* Resume.Resume
        const log = yield* woken
        for (let i = 0; i < 50; i++) yield* resume.arm(`${i}`, yield* refusal(seed * 10))
        yield* TestClock.adjust(Duration.seconds(seed * 10 + 60))
        assert.lengthOf(log, 50)
        for (const [, at] of log) assert.isTrue(at >= seed * 10 && at <= seed * 10 + 30)
        assert.isAbove(new Set(log.map(([, at]) => at)).size, 10)
      }).pipe(Effect.provide(Layer.provide(Resume.layer({ spread: "30 seconds" }), ResumeStore.layerMemory))),
    { fastCheck: { numRuns: 5 } }
  )

  it.scoped("what fell due while no process ran wakes at once, and says from when until when", () =>
    Effect.gen(function*() {
      const start = Date.UTC(2026, 0, 10, 10)
      yield* TestClock.setTime(start)
      const fault = yield* refusal(2_400)
      yield* TestClock.setTime(start + 86_400_000)
      const slept: ResumeStore.Armed = {
        conversation: "slept",
        fault,
        from: start,
        until: start + 2_400_000,
        wakes: start + 2_401_000
      }
      const store = Layer.succeed(ResumeStore.ResumeStore, ResumeStore.makeMemory([slept]))
      const [wakeup] = yield* Effect.flatMap(Resume.Resume, ({ wakeups }) => Stream.runCollect(Stream.take(wakeups, 1)))
        .pipe(Effect.provide(Layer.provide(Resume.layer(), store)))
      if (wakeup === undefined) return assert.fail("nobody woke")
      assert.strictEqual(wakeup.conversation, "slept")
      assert.strictEqual(DateTime.formatIso(wakeup.until), "2026-01-10T10:40:00.000Z")
      assert.strictEqual(
        wakeup.sentence,
        "Your requests were refused from Sat, 10 Jan 2026 10:00:00 UTC until Sat, 10 Jan 2026 10:40:00 UTC. " +
          "That has passed: go on where you were interrupted."
      )
    }))

  it.scoped("of two readers one is woken, and a conversation is woken but once", () =>
    Effect.gen(function*() {
      const resume = yield* Resume.Resume
      const [one, two] = [yield* woken, yield* woken]
      for (const conversation of ["a", "b", "c"]) yield* resume.arm(conversation, yield* refusal(60))
      yield* TestClock.adjust("1 hour")
      assert.sameMembers([...one, ...two].map(([conversation]) => conversation), ["a", "b", "c"])
    }).pipe(Effect.provide(prompt)))

  it.effect("a fault that names no reset, or that no wait cures, arms nothing", () =>
    Effect.gen(function*() {
      const resume = yield* Resume.Resume
      for (const status of [401, 402, 529]) {
        assert.isTrue(Option.isNone(yield* resume.arm("a", Diagnosis.fromResponse({ status }, { received: 0 }))))
      }
      assert.deepStrictEqual(yield* resume.armed, [])
    }).pipe(Effect.provide(prompt)))

  it.effect("nobody wakes under layerNone, nor in what has to settle", () =>
    Effect.gen(function*() {
      const fault = yield* refusal(60)
      const arm = Effect.flatMap(Resume.Resume, (resume) => resume.arm("a", fault))
      assert.isTrue(Option.isNone(yield* Effect.provide(arm, Resume.layerNone)))
      yield* Effect.gen(function*() {
        const resume = yield* Resume.Resume
        assert.strictEqual(yield* Effect.flip(Resume.settling(Resume.arming(Effect.fail(fault), "child"))), fault)
        assert.deepStrictEqual(yield* resume.armed, [])
        assert.isTrue(Option.isSome(yield* arm))
        assert.lengthOf(yield* resume.armed, 1)
      }).pipe(Effect.provide(Resume.layerMemory))
    }))

  it.effect("a store that is away arms nothing, and says so once", () =>
    Effect.gen(function*() {
      const away = Effect.fail(new ResumeStore.ResumeStoreAway({ cause: "no route" }))
      const lines: Array<string> = []
      yield* Effect.gen(function*() {
        const resume = yield* Resume.Resume
        for (let i = 0; i < 2; i++) assert.isTrue(Option.isNone(yield* resume.arm("a", yield* refusal(60))))
        assert.isFalse(yield* resume.disarm("a"))
      }).pipe(
        Effect.provide(
          Layer.provide(
            Resume.layer(),
            Layer.succeed(ResumeStore.ResumeStore, { put: () => away, remove: () => away, all: away })
          )
        ),
        Effect.provide(Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => lines.push(String(message)))))
      )
      assert.deepStrictEqual(lines, ["The store of wake-ups cannot be reached: no route Nobody is woken."])
    }))

  it.scoped("a conversation that is refused for 40 minutes goes on at the reset, and its siblings send nothing until then", () =>
    Effect.gen(function*() {
      const target = { account: Redacted.make("a key"), model: "a-model" }
      let sent = 0
      const ask = Effect.suspend(() =>
        sent++ === 0 ? Effect.flatMap(refusal(2_400), Effect.fail) : Effect.succeed("answer")
      )
      const call = Recovery.recover(ask, { target })
      const resume = yield* Resume.Resume
      const trunk = Resume.arming(call, "trunk")

      const refused = yield* Effect.flip(trunk)
      assert.deepStrictEqual([refused._tag, refused.attempts, sent], ["RateLimited", 1, 1])
      assert.include(refused.message, "resets at")
      const sibling = yield* Effect.flip(call)
      assert.deepStrictEqual([sibling._tag, sibling.attempts, sent], ["RateLimited", 0, 1])

      const goneOn = yield* Effect.forkScoped(
        Stream.runHead(
          Stream.mapEffect(resume.wakeups, ({ sentence }) => Effect.map(trunk, (text) => [sentence, text]))
        )
      )
      yield* TestClock.adjust("39 minutes")
      assert.isTrue(Option.isNone(yield* Fiber.poll(goneOn)))
      assert.strictEqual(sent, 1)
      yield* TestClock.adjust("2 minutes")
      const [sentence, text] = Option.getOrThrow(yield* Fiber.join(goneOn))
      assert.deepStrictEqual([text, sent], ["answer", 2])
      assert.include(sentence, "go on where you were interrupted")
      assert.deepStrictEqual(yield* resume.armed, [])
    }).pipe(Effect.provide(Layer.merge(Hold.layerMemory, Resume.layerMemory))))
})
