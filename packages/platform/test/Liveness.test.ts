import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Liveness from "@recourse/platform/Liveness"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as TestClock from "effect/TestClock"

const bounds: FastCheck.Arbitrary<Liveness.Bound> = FastCheck.constantFrom("headers", "chunk")

describe("Liveness", () => {
  it.effect.prop("tells a silence at its bound and never before, whatever was waited for earlier", {
    limits: FastCheck.record({
      headers: FastCheck.integer({ min: 1, max: 500 }),
      chunk: FastCheck.integer({ min: 1, max: 500 })
    }),
    // waits that end in time, as a share of their bound, each after a pause of the consumer's
    waits: FastCheck.array(
      FastCheck.record({
        bound: bounds,
        share: FastCheck.double({ min: 0, max: 0.99, noNaN: true }),
        pause: FastCheck.nat({ max: 2_000 })
      }),
      { maxLength: 6 }
    ),
    last: bounds
  }, ({ last, limits, waits }) =>
    Effect.gen(function*() {
      const watch = yield* Liveness.watch(limits)
      const told: Array<string> = []
      for (const { bound, pause, share } of waits) {
        yield* TestClock.adjust(pause)
        watch.begin(bound, () => told.push("too early"))
        yield* TestClock.adjust(Duration.millis(Math.floor(limits[bound] * share)))
        watch.end()
      }
      watch.begin(last, ({ bound }) => told.push(bound))
      yield* TestClock.adjust(Duration.millis(limits[last] - 1))
      assert.deepStrictEqual(told, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(told, [last])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(told, [last])
    }), { fastCheck: { numRuns: 30 } })

  it.effect("sleeps no longer when nobody will wait again", () =>
    Effect.gen(function*() {
      let sleeping = 0
      const clock: Clock.Clock = {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        unsafeCurrentTimeMillis: () => 0,
        unsafeCurrentTimeNanos: () => 0n,
        currentTimeMillis: Effect.succeed(0),
        currentTimeNanos: Effect.succeed(0n),
        sleep: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => sleeping++),
            () => Effect.never,
            () => Effect.sync(() => sleeping--)
          )
      }
      const watch = yield* Effect.withClock(Liveness.watch(), clock)
      watch.begin("chunk", () => assert.fail("nobody waits"))
      yield* Effect.yieldNow()
      assert.strictEqual(sleeping, 1)
      watch.close()
      yield* Effect.yieldNow()
      assert.strictEqual(sleeping, 0)
    }))

  it.effect("naps for a second at most, so that a call that is done keeps no process from ending", () =>
    Effect.gen(function*() {
      const watch = yield* Liveness.watch()
      watch.begin("headers", () => assert.fail("it came"))
      yield* TestClock.adjust("1 minute")
      watch.end()
      yield* TestClock.adjust("1 second")
      assert.lengthOf(yield* TestClock.sleeps(), 0)
    }))

  it.effect("is three minutes to the headers and ten between chunks, and infinity is no bound", () =>
    Effect.gen(function*() {
      const told: Array<number> = []
      const at = yield* Clock.currentTimeMillis
      for (const bound of ["headers", "chunk"] as const) {
        ;(yield* Liveness.watch()).begin(bound, ({ message }) => told.push(message.length))
      }
      ;(yield* Liveness.watch({ headers: Duration.infinity })).begin("headers", () => assert.fail("no bound"))
      yield* TestClock.adjust(Duration.millis(179_999))
      assert.lengthOf(told, 0)
      yield* TestClock.adjust(1)
      assert.lengthOf(told, 1)
      yield* TestClock.adjust(Duration.millis(419_999))
      assert.lengthOf(told, 1)
      yield* TestClock.adjust(1)
      assert.lengthOf(told, 2)
      assert.strictEqual((yield* Clock.currentTimeMillis) - at, 600_000)
    }))

  it("a silence is a fault that says whose clock ran out", () => {
    const silence = new Liveness.Silence("chunk", Duration.minutes(10))
    const fault = Diagnosis.fromUnknown(silence, { received: 0 })
    assert.strictEqual(fault._tag, "TimedOut")
    assert.include(fault.message, "RECOURSE_CHUNK_TIMEOUT")
    assert.include(fault.message, "no further bytes within 10m")
  })
})
