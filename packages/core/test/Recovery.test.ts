import { assert, describe, it } from "@effect/vitest"
import * as Attempt from "@recourse/core/Attempt"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryBudget from "@recourse/core/RetryBudget"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionPlan from "effect/ExecutionPlan"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Supervisor from "effect/Supervisor"
import * as TestClock from "effect/TestClock"

/** Evenly paced and without jitter, so that every instant is known. */
const plain = Either.getOrThrow(RetryPolicy.make({
  patience: "1 minute",
  tiers: {
    transient: { attempts: 4, base: "1 second", ceiling: "10 seconds", jitter: RetryPolicy.none },
    refused: { attempts: 3, base: "2 seconds", ceiling: "10 seconds", jitter: RetryPolicy.none },
    malformed: { attempts: 3, base: 0, ceiling: 0, factor: 1, jitter: RetryPolicy.none }
  },
  tierOf: {
    RateLimited: "refused",
    Overloaded: "transient",
    Unreachable: "transient",
    TimedOut: "transient",
    GenerationMalformed: "malformed"
  }
}))

const atOnce: RetryPolicy.Tier = {
  attempts: 3,
  base: Duration.zero,
  factor: 1,
  ceiling: Duration.zero,
  jitter: RetryPolicy.none,
  wait: "replaces"
}

type Answer = { readonly status: number; readonly headers?: Record<string, string>; readonly body?: unknown }

const busy: Answer = { status: 529 }
const limited = (seconds: number): Answer => ({ status: 429, headers: { "retry-after": String(seconds) } })

/** A provider that gives these answers in turn, and then succeeds; it keeps the instant of each request. */
const provider = (...answers: ReadonlyArray<Answer>) => {
  const at: Array<number> = []
  const call = Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<string, Fault.Fault> => {
    const answer = answers[at.length]
    at.push(now)
    return answer === undefined
      ? Effect.succeed("answered")
      : Effect.fail(Diagnosis.fromResponse(answer, { received: now }))
  })
  return { at, call }
}

const always = (answer: Answer) => provider(...Array.from({ length: 100 }, () => answer))

/** Runs it to its end on a test clock. */
const settled = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(self)
    yield* TestClock.adjust("40 days")
    return yield* Fiber.await(fiber)
  })

const failure = <A, E>(exit: Exit.Exit<A, E>): E =>
  Exit.match(exit, {
    onFailure: (cause) => cause._tag === "Fail" ? cause.error : assert.fail(String(cause)),
    onSuccess: () => assert.fail("it succeeded")
  })

/** The events of a call, shortened. */
const heard = () => {
  const events: Array<string> = []
  const listen = Recovery.withListener((event) =>
    Effect.sync(() => {
      const { _tag, attempt } = event
      const rest = event._tag === "Failed"
        ? `${event.fault._tag} for ${event.attempts}`
        : event._tag === "Retrying"
        ? `${event.tier} ${Duration.toMillis(event.wait)} ${event.named ? "named" : "computed"}`
        : event._tag === "Surfaced"
        ? event.because
        : event._tag === "Interrupted"
        ? event.where
        : ""
      events.push(`${attempt} ${_tag} ${rest}`.trim())
    })
  )
  return { events, listen }
}

describe("recover", () => {
  it.effect("answers at once, and tells nobody who does not listen", () =>
    Effect.gen(function*() {
      const { at, call } = provider()
      assert.strictEqual(yield* Recovery.recover(call), "answered")
      assert.deepStrictEqual(at, [0])
    }))

  it.effect("retries by its tiers, each with its own counter, and by the provider's wait", () =>
    Effect.gen(function*() {
      const { at, call } = provider(busy, limited(20), busy, { status: 429 })
      const exit = yield* settled(call.pipe(Recovery.recover({ policy: plain })))
      assert.deepStrictEqual(exit, Exit.succeed("answered"))
      assert.deepStrictEqual(at, [0, 1_000, 21_000, 23_000, 27_000])
    }))

  it.effect("gives the last fault back, unchanged but for its attempts", () =>
    Effect.gen(function*() {
      const { at, call } = always(busy)
      const fault = failure(yield* settled(Recovery.recover(call, { policy: plain })))
      assert.deepStrictEqual(at, [0, 1_000, 3_000, 7_000])
      assert.strictEqual(fault._tag, "Overloaded")
      assert.strictEqual(fault.attempts, 4)
      assert.strictEqual(fault.received.epochMillis, 7_000)
    }))

  it.effect("does not touch what is no fault", () =>
    Effect.gen(function*() {
      const own = new Error("mine")
      let calls = 0
      const count = <A, E>(self: Effect.Effect<A, E>) => Effect.zipRight(Effect.sync(() => calls++), self)
      assert.strictEqual(yield* Effect.flip(Recovery.recover(count(Effect.fail(own)))), own)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Recovery.recover(count(Effect.die("defect"))))))
      assert.strictEqual(calls, 2)
    }))

  it.effect("retries nothing that is surfaced, deferred or without a tier", () =>
    Effect.gen(function*() {
      for (const answer of [{ status: 400 }, limited(61), { status: 503 }]) {
        const { at, call } = always(answer)
        const fault = failure(yield* settled(Recovery.recover(call, { policy: plain })))
        assert.strictEqual(at.length, 1)
        assert.strictEqual(fault.attempts, 1)
      }
    }))

  it.effect("retries at once where the tier waits for nothing", () =>
    Effect.gen(function*() {
      const { at, call } = always({ status: 400, body: { error: { code: "tool_use_failed" } } })
      failure(yield* Effect.exit(Recovery.recover(call, { policy: plain })))
      assert.deepStrictEqual(at, [0, 0, 0])
    }))

  it.effect("begins its total time with the first attempt", () =>
    Effect.gen(function*() {
      const { at, call } = always(busy)
      const slow = Effect.zipRight(Effect.sleep("4 seconds"), call)
      const policy = { ...plain, within: Option.some(Duration.seconds(11)) }
      failure(yield* settled(Recovery.recover(slow, { policy })))
      // the second wait would end at 4 + 1 + 4 + 2 = 11 s, the third past it
      assert.deepStrictEqual(at, [4_000, 9_000, 15_000])
    }))

  it.effect("an attempt can ask which it is and what it replaces", () =>
    Effect.gen(function*() {
      const { call } = provider(busy, limited(1))
      const asked: Array<string> = []
      const curious = Effect.gen(function*() {
        const { number, replaces } = yield* Attempt.Attempt
        asked.push(`${number} ${Option.match(replaces, { onNone: () => "nothing", onSome: ({ _tag }) => _tag })}`)
        return yield* call
      })
      yield* settled(Recovery.recover(curious, { policy: plain }))
      assert.deepStrictEqual(asked, ["1 nothing", "2 Overloaded", "3 RateLimited"])
    }))

  it.effect("what an attempt was told is forgotten behind the call, however it ended", () =>
    Effect.gen(function*() {
      const asked: Array<number> = []
      const ask = Effect.map(Attempt.Attempt, ({ number }) => {
        asked.push(number)
      })
      const ends = [
        provider(busy, busy).call,
        provider(busy, busy, busy, busy).call,
        Effect.zipRight(
          ask,
          Effect.flatMap(Attempt.Attempt, ({ number }) => number === 3 ? Effect.never : always(busy).call)
        )
      ]
      for (const call of ends) {
        const around = Effect.ensuring(Recovery.recover(call, { policy: plain }), ask)
        const fiber = yield* Effect.fork(Effect.zipRight(Effect.exit(around), ask))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.interrupt(fiber)
      }
      // behind a success and a failure; then three attempts, of which the last was interrupted
      assert.deepStrictEqual(asked, [1, 1, 1, 1, 1, 2, 3, 1])
    }))

  it.effect("an attempt of a recovery inside another begins at one", () =>
    Effect.gen(function*() {
      const asked: Array<number> = []
      const inner = Recovery.recover(Effect.map(Attempt.Attempt, ({ number }) => asked.push(number)))
      const { call } = provider(busy)
      yield* settled(Recovery.recover(Effect.zipRight(inner, call), { policy: plain }))
      assert.deepStrictEqual(asked, [1, 1])
    }))

  it.effect("read lifts anything into faults", () =>
    Effect.gen(function*() {
      let calls = 0
      const call = Effect.tryPromise({
        try: () =>
          calls++ === 0
            ? Promise.reject(Object.assign(new Error("reset"), { code: "ECONNRESET" }))
            : Promise.resolve("answered"),
        catch: (error) => error
      })
      assert.deepStrictEqual(
        yield* Effect.exit(Recovery.read(Effect.fail("odd"))).pipe(Effect.map(failure), Effect.map(({ _tag }) => _tag)),
        "Unrecognized"
      )
      const recovered = Recovery.recover(Recovery.read(call), {
        policy: { ...plain, tiers: { ...plain.tiers, transient: atOnce } }
      })
      assert.strictEqual(yield* recovered, "answered")
    }))
})

describe("recover, what it tells", () => {
  it.effect("a call that is recovered", () =>
    Effect.gen(function*() {
      const { events, listen } = heard()
      yield* settled(provider(busy, limited(20)).call.pipe(Recovery.recover({ policy: plain }), listen))
      assert.deepStrictEqual(events, [
        "1 Started",
        "1 Failed Overloaded for 1",
        "1 Retrying transient 1000 computed",
        "2 Started",
        "2 Failed RateLimited for 1",
        "2 Retrying refused 20000 named",
        "3 Started",
        "3 Recovered"
      ])
    }))

  it.effect("a first attempt that succeeds is told as started, and as nothing more", () =>
    Effect.gen(function*() {
      const { events, listen } = heard()
      yield* provider().call.pipe(Recovery.recover(), listen)
      assert.deepStrictEqual(events, ["1 Started"])
    }))

  const ends: ReadonlyArray<readonly [because: string, answer: Answer, policy: RetryPolicy.RetryPolicy]> = [
    ["tag", { status: 400 }, plain],
    ["deferred", limited(61), plain],
    ["time", limited(20), { ...plain, within: Option.some(Duration.seconds(10)) }],
    ["tier", busy, { ...plain, tiers: { ...plain.tiers, transient: { ...atOnce, attempts: 1 } } }]
  ]
  for (const [because, answer, policy] of ends) {
    it.effect(`why it was given back: ${because}`, () =>
      Effect.gen(function*() {
        const { events, listen } = heard()
        yield* settled(always(answer).call.pipe(Recovery.recover({ policy }), listen))
        assert.strictEqual(events.at(-1), `1 Surfaced ${because}`)
      }))
  }

  it.effect("metrics, by tag and tier, from the first failure on", () =>
    Effect.gen(function*() {
      const retries = Recovery.retries.pipe(Metric.tagged("tag", "Overloaded"), Metric.tagged("tier", "transient"))
      const waits = Recovery.waits.pipe(Metric.tagged("tag", "Overloaded"), Metric.tagged("tier", "transient"))
      const surfaced = Recovery.surfaced.pipe(Metric.tagged("tag", "Overloaded"), Metric.tagged("because", "tier"))
      const read = Effect.all([Metric.value(retries), Metric.value(waits), Metric.value(surfaced)])
      const [r0, w0, s0] = yield* read
      yield* settled(Recovery.recover(always(busy).call, { policy: plain }))
      yield* Recovery.recover(provider().call)
      const [r1, w1, s1] = yield* read
      assert.strictEqual(r1.count - r0.count, 3)
      assert.strictEqual(w1.count - w0.count, 3)
      assert.strictEqual(w1.sum - w0.sum, 7_000)
      assert.strictEqual(s1.count - s0.count, 1)
    }))

  it.effect("an event on the span for each retry, and the count of attempts", () =>
    Effect.gen(function*() {
      const { call } = provider(busy, busy)
      const span = yield* Effect.makeSpan("call")
      yield* settled(Effect.withParentSpan(Recovery.recover(call, { policy: plain }), span))
      assert.strictEqual(span.attributes.get("recourse.attempts"), 2)
      assert.deepStrictEqual(
        Reflect.get(span, "events").map(([name, , attributes]: [string, bigint, object]) => [name, attributes]),
        [
          ["recourse.retry", { tag: "Overloaded", tier: "transient", wait: 1_000 }],
          ["recourse.retry", { tag: "Overloaded", tier: "transient", wait: 2_000 }]
        ]
      )
    }))

  it.effect("one redacted line of the debug log for each retry", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => {
        lines.push(String(message))
      })
      const secret: Answer = { status: 529, body: { error: { message: "busy, sk-proj-0123456789abcdef" } } }
      const run = (level: LogLevel.LogLevel) =>
        settled(Recovery.recover(provider(secret).call, { policy: plain })).pipe(
          Logger.withMinimumLogLevel(level),
          Effect.provide(Logger.replace(Logger.defaultLogger, logger))
        )
      yield* run(LogLevel.Info)
      assert.deepStrictEqual(lines, [])
      yield* run(LogLevel.Debug)
      assert.deepStrictEqual(lines, [
        "The provider is overloaded (529): busy, [masked]. Retrying in tier transient after 1000 ms."
      ])
    }))
})

describe("recover inside recover", () => {
  it.effect("the inner one acts, and the outer ones count its attempts", () =>
    Effect.gen(function*() {
      const { at, call } = always(busy)
      const { events, listen } = heard()
      const layered = call.pipe(
        Recovery.recover({ policy: plain }),
        Recovery.recover({ policy: plain }),
        Recovery.recover({ policy: plain }),
        listen
      )
      const fault = failure(yield* settled(layered))
      assert.strictEqual(at.length, 4)
      assert.strictEqual(fault.attempts, 4)
      assert.strictEqual(events.filter((event) => event === "1 Failed Overloaded for 4").length, 2)
    }))

  it.effect("around an SDK that has retried by itself, its attempts count", () =>
    Effect.gen(function*() {
      let calls = 0
      const sdk = Effect.suspend(() => {
        calls += 1
        return Effect.fail({
          name: "AI_RetryError",
          errors: [{}, {}, {}],
          lastError: { name: "AI_APICallError", statusCode: 529 }
        })
      })
      const fault = failure(yield* settled(Recovery.recover(Recovery.read(sdk), { policy: plain })))
      assert.strictEqual(calls, 2)
      assert.strictEqual(fault.attempts, 6)
    }))

  it.effect("in a bare schedule too", () =>
    Effect.gen(function*() {
      const { at, call } = always(busy)
      const layered = Effect.retry(Recovery.recover(call, { policy: plain }), RetryPolicy.schedule(plain))
      yield* settled(layered)
      assert.strictEqual(at.length, 4)
    }))
})

describe("RetryBudget", () => {
  it.effect("spends on retries, more on timeouts, refunds successes, and surfaces when it is empty", () =>
    Effect.gen(function*() {
      const { events, listen } = heard()
      const recover = <A, E, R>(call: Effect.Effect<A, E, R>) =>
        settled(call.pipe(Recovery.recover({ policy: plain }), listen))
      yield* Effect.gen(function*() {
        // 20 tokens: two retries at 5, one after a timeout at 10, then none
        yield* recover(provider(busy, busy, { status: 408 }, busy).call)
        assert.strictEqual(events.filter((event) => event.includes("Retrying")).length, 3)
        assert.strictEqual(events.at(-1), "4 Surfaced tier")
        yield* recover(provider(busy).call)
        assert.strictEqual(events.at(-1), "1 Surfaced budget")
        for (let i = 0; i < 5; i++) yield* recover(provider().call)
        // five clean successes refund one retry, and that retry refunds itself by succeeding
        yield* recover(provider(busy).call)
        assert.strictEqual(events.at(-1), "2 Recovered")
        yield* recover(provider(busy).call)
        assert.strictEqual(events.at(-1), "2 Recovered")
        yield* recover(always(busy).call)
        assert.strictEqual(events.at(-1), "2 Surfaced budget")
      }).pipe(Effect.provide(RetryBudget.layer({ capacity: 20 })))
    }))

  it.effect("never holds more than its capacity", () =>
    Effect.gen(function*() {
      const budget = RetryBudget.make({ capacity: 7 })
      const fault = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
      for (let i = 0; i < 50; i++) yield* budget.give(0)
      assert.strictEqual(yield* budget.take(fault), 5)
      assert.strictEqual(yield* budget.take(fault), 0)
    }))

  it.effect("bounds nothing unless it is provided", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 300; i++) {
        assert.deepStrictEqual(
          yield* settled(Recovery.recover(provider(busy).call, { policy: plain })),
          Exit.succeed("answered")
        )
      }
    }))
})

describe("a second provider", () => {
  class Model extends Context.Tag("test/Model")<Model, { readonly ask: Effect.Effect<string, Fault.Fault> }>() {}

  for (const answer of [{ status: 401 }, limited(3_600)]) {
    it.effect(`Effect.withExecutionPlan falls back to it after a ${answer.status}`, () =>
      Effect.gen(function*() {
        const first = always(answer)
        const second = provider(busy)
        const plan = ExecutionPlan.make(
          { provide: Layer.succeed(Model, { ask: first.call }) },
          { provide: Layer.succeed(Model, { ask: second.call }) }
        )
        const ask = Recovery.recover(Effect.flatMap(Model, ({ ask }) => ask), { policy: plain })
        assert.deepStrictEqual(yield* settled(Effect.withExecutionPlan(ask, plan)), Exit.succeed("answered"))
        assert.strictEqual(first.at.length, 1)
        assert.strictEqual(second.at.length, 2)
      }))
  }
})

describe("recover, interrupted", () => {
  it.effect.prop("at any instant: nothing more is sent, no fiber is left, and the event says where", [
    FastCheck.integer({ min: 0, max: 9_999 })
  ], ([instant]) =>
    Effect.gen(function*() {
      const { at, call } = always(busy)
      const { events, listen } = heard()
      const supervisor = yield* Supervisor.track
      const slow = Effect.zipRight(Effect.sleep("500 millis"), call)
      const fiber = yield* Effect.fork(
        Effect.supervised(slow.pipe(Recovery.recover({ policy: plain }), listen), supervisor)
      )
      yield* TestClock.adjust(Duration.millis(instant))
      const sent = at.length
      const done = fiber.unsafePoll() !== null
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(at.length, sent)
      assert.strictEqual((yield* supervisor.value).length, 0)
      if (!done) {
        const last = events.at(-1) ?? ""
        const attempting = events.filter((event) => event.endsWith("Started")).length > sent
        assert.match(last, attempting ? /Interrupted attempt$/ : /Interrupted backoff$/)
      }
    }), { fastCheck: { numRuns: 60 } })

  it.live("10,000 sleepers leave no timer", () =>
    Effect.gen(function*() {
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
      const before = timers()
      let calls = 0
      const call = Effect.flatMap(Clock.currentTimeMillis, (received) =>
        Effect.suspend(() => {
          calls += 1
          return Effect.fail(Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "50" } }, { received }))
        }))
      const fibers = yield* Effect.forEach(Array.from({ length: 10_000 }), () =>
        Effect.fork(Recovery.recover(call, { policy: plain })))
      yield* Effect.yieldNow()
      const sent = () =>
        calls
      while (sent() < 10_000) {
        yield* Effect.yieldNow()
      }
      assert.isAtLeast(timers() - before, 1)
      yield* Fiber.interruptAll(fibers)
      assert.strictEqual(timers(), before)
      assert.strictEqual(calls, 10_000)
    }))
})

describe("recover, on odd clocks", () => {
  /** The test clock, with a wall that can be set apart from the time that passes, and a timer that reaches no further than the live one. */
  const odd = Effect.map(Effect.clock, (clock) => {
    const wall = { offset: 0 }
    const slept: Array<number> = []
    const made: Clock.Clock = {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + wall.offset,
      unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + wall.offset),
      currentTimeNanos: clock.currentTimeNanos,
      sleep: (duration) => {
        slept.push(Duration.toMillis(duration))
        return Duration.toMillis(duration) > 2 ** 31 - 1 ? Effect.never : clock.sleep(duration)
      }
    }
    return { made, slept, wall }
  })

  it.effect("no sleep is longer than a timer reaches", () =>
    Effect.gen(function*() {
      const { made, slept } = yield* odd
      const far: Answer = { status: 429, headers: { "retry-after": String(24 * 86_400) } }
      const { at, call } = provider(far, {
        ...far,
        headers: { "retry-after": new Date(24 * 86_400_000 + 600_000).toUTCString() }
      })
      const fiber = yield* Effect.fork(
        Effect.withClock(Recovery.recover(call, { policy: RetryPolicy.persistent }), made)
      )
      yield* TestClock.adjust("25 days")
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed("answered"))
      assert.deepStrictEqual(at, [0, 24 * 86_400_000, 24 * 86_400_000 + 600_000])
      assert.isTrue(slept.every((millis) => millis <= 2 ** 31 - 1))
    }))

  const jump = (headers: Record<string, string>, offset: number) =>
    Effect.gen(function*() {
      const { made, wall } = yield* odd
      const { at, call } = provider({ status: 429, headers })
      const real: Array<number> = []
      const clock = yield* Effect.clock
      const fiber = yield* Effect.fork(
        Effect.withClock(
          Recovery.recover(Effect.zipRight(Effect.sync(() => real.push(clock.unsafeCurrentTimeMillis())), call), {
            policy: plain
          }),
          made
        )
      )
      yield* TestClock.adjust("12 seconds")
      wall.offset = offset
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.strictEqual(at.length, 2)
      return real[1]
    })

  it.effect("a delta ends by the time that passes, however the wall clock is set", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* jump({ "retry-after": "40" }, 3_600_000), 40_000)
    }))

  it.effect("a delta is not prolonged either", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* jump({ "retry-after": "40" }, -600_000), 40_000)
    }))

  const until = { "retry-after": new Date(40_000).toUTCString() }

  it.effect("an instant is met by the wall clock that is set forward, at its next look", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* jump(until, 3_600_000), 15_000)
    }))

  it.effect("and by one that is set back", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* jump(until, -20_000), 60_000)
    }))
})
