import { assert, describe, it } from "@effect/vitest"
import * as Fault from "@recourse/core/Fault"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Arbitraries from "@recourse/testing/Arbitraries"
import * as Laws from "@recourse/testing/Laws"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/TestClock"

const named = {
  standard: RetryPolicy.standard,
  brisk: RetryPolicy.brisk,
  persistent: RetryPolicy.persistent,
  cautious: RetryPolicy.cautious
}

describe("Laws of the policies", () => {
  for (const [name, policy] of Object.entries(named)) {
    it(`${name} keeps them`, () => Laws.policy(policy))
  }

  it.prop("every policy keeps them", [Arbitraries.policy], ([policy]) => {
    Laws.policy(policy, { runs: 20 })
  }, { fastCheck: { numRuns: 60 } })

  it.prop("every policy that make lets through keeps them", [Arbitraries.policy], ([{ within, ...policy }]) => {
    const made = RetryPolicy.make({
      ...policy,
      ...Option.match(within, { onNone: () => ({}), onSome: (within) => ({ within }) })
    })
    assert.deepStrictEqual(made._tag === "Right" ? made.right : made.left.message, { ...policy, within })
  })
})

const broken = (law: string, schedule: Schedule.Schedule<unknown, Fault.Fault>, options: Laws.ScheduleOptions) => {
  try {
    Laws.schedule(schedule, options)
  } catch (error) {
    assert.instanceOf(error, Laws.LawBroken)
    assert.strictEqual(error.law, law)
    return error
  }
  return assert.fail(`kept: ${law}`)
}

const retryable = Schedule.recurWhile((fault: Fault.Fault) => Fault.isRetryable(fault._tag))

describe("Laws find what breaks them", () => {
  it("a schedule without an end", () => {
    const error = broken("requests are bounded", retryable, { requests: 5 })
    assert.match(error.message, /^"requests are bounded" is broken by \[\w+\]: 14 requests, and at most 5$/)
  })

  it("one request too many", () => {
    broken("requests are bounded", Schedule.intersect(retryable, Schedule.recurs(5)), { requests: 5 })
  })

  it("a wait that no timer reaches", () => {
    broken(
      "waits are finite",
      Schedule.intersect(retryable, Schedule.recurs(4)).pipe(Schedule.addDelay(() => "40 days")),
      { requests: 5 }
    )
  })

  it("a wait that a seed does not give again", () => {
    let n = 0
    const fickle = Schedule.intersect(retryable, Schedule.recurs(4)).pipe(Schedule.addDelay(() => Duration.millis(n++)))
    broken("the same seed gives the same waits", fickle, { requests: 5 })
  })

  it("a retry that cannot help", () => {
    const error = broken("nothing follows a fault that a retry cannot help", Schedule.recurs(4), { requests: 5 })
    assert.strictEqual(error.run.length, 1)
  })

  it("a named wait that is not honoured", () => {
    const deaf = Schedule.intersect(retryable, Schedule.recurs(4)).pipe(Schedule.addDelay(() => "1 second"))
    const error = broken("no attempt begins before a named instant", deaf, { requests: 5 })
    assert.strictEqual(error.run.length, 1)
  })

  it("a sound schedule breaks none", () => {
    Laws.schedule(RetryPolicy.schedule(RetryPolicy.standard), { requests: 1 + 3 + 5 + 2 })
  })
})

describe("Laws, the drive beside Effect.retry", () => {
  it.effect.prop(
    "attempts under a test clock begin when the drive says",
    [Arbitraries.policy, Arbitraries.failures, FastCheck.nat()],
    ([policy, run, seed]) =>
      Effect.gen(function*() {
        const at: Array<number> = []
        const call = Effect.gen(function*() {
          // clocks count whole milliseconds; the test clock wakes a sleeper between two
          yield* Effect.sleep(yield* Effect.map(Clock.currentTimeMillis, (now) => Math.ceil(now) - now))
          const now = yield* Clock.currentTimeMillis
          const failure = run[at.length]
          at.push(now)
          return failure === undefined ? "answered" : yield* Effect.fail(Arbitraries.fault(failure, now))
        })
        const fiber = yield* Effect.fork(Effect.retry(call, RetryPolicy.schedule(policy)))
        yield* TestClock.adjust("400 days")
        const exit = yield* Fiber.await(fiber)
        const waits = Laws.drive(RetryPolicy.schedule(policy), run, seed).map(({ wait }) => wait)
        assert.strictEqual(at.length, waits.length + 1)
        at.slice(1).forEach((now, i) => assert.approximately(now - (at[i] ?? 0), waits[i] ?? 0, 1))
        assert.strictEqual(Exit.isSuccess(exit), waits.length === run.length)
      }).pipe(Effect.withRandom(Random.make(seed))),
    { fastCheck: { numRuns: 60 } }
  )
})
