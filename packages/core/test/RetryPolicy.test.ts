import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/TestClock"

const fault = (status: number, seconds?: number, received = 0): Fault.Fault =>
  Diagnosis.fromResponse({ status, headers: seconds === undefined ? {} : { "retry-after": String(seconds) } }, {
    received
  })

const malformed = Diagnosis.fromResponse({ status: 400, body: { error: { code: "tool_use_failed" } } }, { received: 0 })

const millis = (duration: Duration.Duration) => Duration.toMillis(duration)

const times = <A>(n: number, value: A): Array<A> => Array.from({ length: n }, () => value)

/** The most and the least of each wait, and why it ended. */
const bands = (policy: RetryPolicy.RetryPolicy, faults: ReadonlyArray<Fault.Fault>) => {
  const { ended, steps } = RetryPolicy.timeline(policy, faults)
  return { ended, least: steps.map(({ least }) => millis(least)), most: steps.map(({ most }) => millis(most)) }
}

describe("The numbers of the policies", () => {
  it("standard", () => {
    assert.deepStrictEqual(bands(RetryPolicy.standard, times(9, fault(529))), {
      ended: "tier",
      least: [500, 1_000, 2_000],
      most: [1_000, 2_000, 4_000]
    })
    assert.deepStrictEqual(bands(RetryPolicy.standard, times(9, fault(429))).most, [
      2_000,
      4_000,
      8_000,
      16_000,
      30_000
    ])
    assert.deepStrictEqual(bands(RetryPolicy.standard, times(9, malformed)).most, [0, 0])
    assert.deepStrictEqual(bands(RetryPolicy.standard, [fault(429, 75)]).most, [75_000])
    assert.strictEqual(bands(RetryPolicy.standard, [fault(429, 76)]).ended, "deferred")
    assert.deepStrictEqual(bands(RetryPolicy.standard, times(9, fault(429, 75))), {
      ended: "time",
      least: times(4, 75_000),
      most: times(4, 75_000)
    })
  })

  it("brisk", () => {
    assert.deepStrictEqual(bands(RetryPolicy.brisk, times(9, fault(529))), {
      ended: "tier",
      least: [0, 0],
      most: [750, 1_500]
    })
    assert.deepStrictEqual(bands(RetryPolicy.brisk, times(9, fault(429))).most, [750, 1_500, 3_000, 6_000, 12_000])
    assert.deepStrictEqual(bands(RetryPolicy.brisk, [fault(429, 30)]).most, [30_000])
    assert.strictEqual(bands(RetryPolicy.brisk, [fault(429, 31)]).ended, "deferred")
  })

  it("persistent: 159 s of curve, 199 s with jitter", () => {
    const { ended, least, most } = bands(RetryPolicy.persistent, times(20, fault(529)))
    const sum = (waits: ReadonlyArray<number>) => waits.reduce((total, wait) => total + wait, 0)
    assert.strictEqual(ended, "tier")
    assert.strictEqual(least.length, 9)
    assert.strictEqual(sum(least), 159_000)
    assert.strictEqual(sum(most), 198_750)
    assert.strictEqual(bands(RetryPolicy.persistent, [malformed]).ended, "tag")
    assert.deepStrictEqual(bands(RetryPolicy.persistent, [fault(429, 2_100_000)]).least, [2_100_000_000])
    assert.deepStrictEqual(bands(RetryPolicy.persistent, [fault(429, 2_200_000)]).least, [1_000])
  })

  it("cautious: seven requests at most, and no timeout", () => {
    const run = [...times(5, fault(529)), ...times(5, malformed)]
    assert.strictEqual(bands(RetryPolicy.cautious, [fault(408)]).ended, "tag")
    assert.deepStrictEqual(bands(RetryPolicy.cautious, times(9, fault(529))).most, [1_000, 2_000, 4_000, 8_000])
    assert.strictEqual(bands(RetryPolicy.cautious, run).ended, "tier")
    assert.strictEqual(
      bands(RetryPolicy.cautious, [...times(4, fault(529)), ...times(5, malformed)]).most.length + 1,
      7
    )
    assert.deepStrictEqual(bands(RetryPolicy.cautious, [fault(429, 300)]), {
      ended: undefined,
      least: [60_000],
      most: [60_000]
    })
    assert.deepStrictEqual(bands(RetryPolicy.cautious, times(3, fault(429, 1))).most, [1_000, 2_000, 4_000])
  })
})

describe("RetryPolicy.make", () => {
  const options: RetryPolicy.Options = {
    tiers: { only: { attempts: 3, base: "1 second", ceiling: "4 seconds" } },
    tierOf: { Overloaded: "only" }
  }
  const tier = (change: Partial<RetryPolicy.TierOptions>): RetryPolicy.Options => ({
    ...options,
    tiers: { only: { attempts: 3, base: "1 second", ceiling: "4 seconds", ...change } }
  })

  const refused: ReadonlyArray<readonly [field: string, options: RetryPolicy.Options]> = [
    ["tiers.only.attempts", tier({ attempts: 0 })],
    ["tiers.only.attempts", tier({ attempts: Number.NaN })],
    ["tiers.only.attempts", tier({ attempts: Number.POSITIVE_INFINITY })],
    ["tiers.only.attempts", tier({ attempts: 2.5 })],
    ["tiers.only.attempts", tier({ attempts: 1_001 })],
    ["tiers.only.base", tier({ base: Number.NaN })],
    ["tiers.only.base", tier({ base: -1 })],
    ["tiers.only.base", tier({ base: Duration.infinity })],
    ["tiers.only.ceiling", tier({ ceiling: "999 millis" })],
    ["tiers.only.ceiling", tier({ ceiling: "30 days" })],
    ["tiers.only.factor", tier({ factor: 0.5 })],
    ["tiers.only.factor", tier({ factor: Number.NaN })],
    ["tiers.only.jitter", tier({ jitter: { low: -0.1, high: 1 } })],
    ["tiers.only.jitter", tier({ jitter: { low: 1, high: 0.5 } })],
    ["tiers.only.jitter", tier({ jitter: { low: 0, high: Number.NaN } })],
    ["patience", { ...options, patience: 2 ** 31 }],
    ["patience", { ...options, patience: Number.NaN }],
    ["within", { ...options, within: 0 }],
    ["within", { ...options, within: Duration.infinity }],
    ["tierOf.Overloaded", { ...options, tierOf: { Overloaded: "other" } }]
  ]
  for (const [field, options] of refused) {
    it(`refuses ${field}: ${JSON.stringify(options.tiers["only"])}`, () => {
      const made = RetryPolicy.make(options)
      assert.isTrue(Either.isLeft(made) && made.left.field === field && made.left.mend.length > 5, JSON.stringify(made))
    })
  }

  it("refuses a tier for a tag that no retry helps", () => {
    const made = RetryPolicy.make(JSON.parse(JSON.stringify({ ...options, tierOf: { Aborted: "only" } })))
    assert.isTrue(Either.isLeft(made) && made.left.field === "tierOf.Aborted")
  })

  it("has defaults that are finite", () => {
    const made = Either.getOrThrow(RetryPolicy.make(options))
    assert.strictEqual(millis(made.patience), 75_000)
    assert.deepStrictEqual(made.tiers["only"], {
      attempts: 3,
      base: Duration.seconds(1),
      factor: 2,
      ceiling: Duration.seconds(4),
      jitter: RetryPolicy.equal,
      wait: "replaces"
    })
  })
})

describe("RetryPolicy.config", () => {
  const read = (settings: Record<string, string>) =>
    Effect.runSync(Effect.either(
      Effect.withConfigProvider(
        RetryPolicy.config("RECOURSE"),
        ConfigProvider.fromMap(new Map(Object.entries(settings)), { pathDelim: "_" })
      )
    ))

  it("is standard where nothing is set", () => {
    assert.deepStrictEqual(read({}), Either.right(RetryPolicy.standard))
  })

  it("is a named policy and what differs from it", () => {
    const policy = Either.getOrThrow(read({
      RECOURSE_POLICY: "brisk",
      RECOURSE_PATIENCE: "10 seconds",
      RECOURSE_BEYOND: "clamp",
      RECOURSE_WITHIN: "2 minutes",
      RECOURSE_REFUSED_ATTEMPTS: "9",
      RECOURSE_REFUSED_JITTER: "additive:0.5",
      RECOURSE_TRANSIENT_BASE: "2 seconds",
      RECOURSE_TRANSIENT_WAIT: "atLeast",
      RECOURSE_MALFORMED_FACTOR: "3"
    }))
    assert.strictEqual(millis(policy.patience), 10_000)
    assert.strictEqual(policy.beyond, "clamp")
    assert.deepStrictEqual(policy.within, Option.some(Duration.minutes(2)))
    assert.deepStrictEqual(policy.tiers["refused"], {
      ...RetryPolicy.brisk.tiers["refused"],
      attempts: 9,
      jitter: RetryPolicy.additive(0.5)
    })
    assert.deepStrictEqual(policy.tiers["transient"], {
      ...RetryPolicy.brisk.tiers["transient"],
      base: Duration.seconds(2),
      wait: "atLeast"
    })
    assert.strictEqual(policy.tiers["malformed"]?.factor, 3)
  })

  const refused: ReadonlyArray<readonly [field: string, settings: Record<string, string>]> = [
    ["POLICY", { RECOURSE_POLICY: "hasty" }],
    ["ATTEMPTS", { RECOURSE_REFUSED_ATTEMPTS: "0" }],
    ["ATTEMPTS", { RECOURSE_REFUSED_ATTEMPTS: "many" }],
    ["ceiling", { RECOURSE_TRANSIENT_BASE: "1 minute" }],
    ["PATIENCE", { RECOURSE_PATIENCE: "soon" }],
    ["patience", { RECOURSE_PATIENCE: "30 days" }],
    ["JITTER", { RECOURSE_REFUSED_JITTER: "some" }],
    ["MALFORMED", { RECOURSE_POLICY: "persistent", RECOURSE_MALFORMED_ATTEMPTS: "2" }]
  ]
  for (const [field, settings] of refused) {
    it(`refuses ${JSON.stringify(settings)}`, () => {
      const made = read(settings)
      assert.isTrue(Either.isLeft(made))
      assert.match(JSON.stringify(made), new RegExp(field, "i"))
    })
  }
})

const waits = <In>(schedule: Schedule.Schedule<unknown, In>, inputs: Iterable<In>) =>
  Effect.runSync(Schedule.run(Schedule.delays(schedule), 0, inputs)).pipe((all) => [...all].map(millis))

describe("routed", () => {
  const side = FastCheck.constantFrom("even" as const, "odd" as const)
  it.prop(
    "each route steps as it would alone, over its own inputs",
    [FastCheck.array(side, { maxLength: 12 })],
    ([inputs]) => {
      const routes = {
        even: Schedule.exponential("1 second").pipe(Schedule.intersect(Schedule.recurs(4))),
        odd: Schedule.fibonacci("10 millis").pipe(Schedule.intersect(Schedule.recurs(3)))
      }
      const all = waits(
        RetryPolicy.routed((input: "even" | "odd") => Option.some([input, input] as const), routes),
        inputs
      )
      const taken = inputs.slice(0, all.length)
      for (const route of ["even", "odd"] as const) {
        const alone = waits(routes[route], taken.filter((input) => input === route))
        assert.deepStrictEqual(
          all.filter((_, i) => taken[i] === route),
          alone.slice(0, taken.filter((input) => input === route).length)
        )
      }
    }
  )

  it("an input that is routed nowhere ends it", () => {
    const routed = RetryPolicy.routed((n: number) => n > 0 ? Option.some(["a", n] as const) : Option.none(), {
      a: Schedule.forever
    })
    assert.strictEqual(waits(routed, [1, 1, 0, 1, 1]).length, 3)
    assert.deepStrictEqual([...Effect.runSync(Schedule.run(routed, 0, [1, 0, 1]))], [Option.some(0), Option.none()])
  })
})

describe("within", () => {
  const cases = [FastCheck.integer({ min: 1, max: 3_000 }), FastCheck.integer({ min: 0, max: 20_000 })] as const
  it.effect.prop(
    "recurs as long as the next wait ends inside the limit, and no longer",
    [...cases],
    ([base, limit]) =>
      Effect.gen(function*() {
        const at: Array<number> = []
        const call = Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(at.push(now)))
        const schedule = Schedule.exponential(Duration.millis(base)).pipe(RetryPolicy.within(Duration.millis(limit)))
        const fiber = yield* Effect.fork(Effect.retry(call, schedule))
        yield* TestClock.adjust("1 day")
        assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
        const expected = [0]
        for (let next = base; next <= limit; next += base * 2 ** (expected.length - 1)) expected.push(next)
        assert.deepStrictEqual(at, expected)
      }),
    { fastCheck: { numRuns: 40 } }
  )

  it("takes data first and data last", () => {
    const schedule = Schedule.spaced("1 second")
    assert.deepStrictEqual(
      waits(RetryPolicy.within(schedule, "10 seconds"), [1, 2]),
      waits(schedule.pipe(RetryPolicy.within("10 seconds")), [1, 2])
    )
  })
})

describe("schedule", () => {
  it.effect("keeps the whole error channel, and what is no fault ends it", () =>
    Effect.gen(function*() {
      class NotFound {
        readonly _tag = "NotFound"
      }
      let calls = 0
      const call = Effect.suspend((): Effect.Effect<string, Fault.Fault | NotFound> =>
        calls++ === 0 ? Effect.fail(malformed) : Effect.fail(new NotFound())
      )
      const retried: Effect.Effect<string, Fault.Fault | NotFound> = Effect.retry(
        call,
        RetryPolicy.schedule(RetryPolicy.standard)
      )
      assert.strictEqual((yield* Effect.flip(retried))._tag, "NotFound")
      assert.strictEqual(calls, 2)
    }))

  it.effect("a named wait ends at the reset, wherever the clock stands by then", () =>
    Effect.gen(function*() {
      const at: Array<number> = []
      const call = Effect.gen(function*() {
        const received = yield* Clock.currentTimeMillis
        at.push(received)
        // the fault is met three seconds after it was received
        yield* Effect.sleep("3 seconds")
        return yield* Effect.fail(fault(429, 20, received))
      })
      const fiber = yield* Effect.fork(Effect.retry(call, RetryPolicy.schedule(RetryPolicy.brisk)))
      yield* TestClock.adjust("45 seconds")
      assert.deepStrictEqual(at, [0, 20_000, 40_000])
      yield* Fiber.interrupt(fiber)
    }))

  it("a call that fumbles once and is then throttled spends both allowances", () => {
    assert.strictEqual(
      RetryPolicy.timeline(RetryPolicy.brisk, [malformed, malformed, ...times(9, fault(429))]).steps.length,
      2 + 5
    )
  })

  it.effect("a seed gives the same waits, another seed others", () =>
    Effect.gen(function*() {
      const draw = (seed: string) =>
        Schedule.run(Schedule.delays(RetryPolicy.schedule(RetryPolicy.standard)), 0, times(3, fault(529))).pipe(
          Effect.withRandom(Random.make(seed)),
          Effect.map((all) => [...all].map(millis))
        )
      assert.deepStrictEqual(yield* draw("a"), yield* draw("a"))
      assert.notDeepEqual(yield* draw("a"), yield* draw("b"))
    }))
})
