import { assert, describe, it } from "@effect/vitest"
import * as Pacer from "@recourse/platform/Pacer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"

const target = { account: Redacted.make("a key"), model: "a-model" }

const calls = (size: number, starts: Array<number>, to = target) =>
  Effect.flatMap(Pacer.Pacer, (pacer) =>
    Effect.forEach(
      Array.from({ length: size }),
      () => Effect.fork(pacer.paced(Effect.map(Clock.currentTimeMillis, (now) => starts.push(now)), to))
    ))

describe("Pacer", () => {
  it.effect.prop("begins no more calls in a minute than its bucket and what is refilled", {
    limit: FastCheck.integer({ min: 1, max: 60 }),
    size: FastCheck.integer({ min: 1, max: 80 })
  }, ({ limit, size }) =>
    Effect.gen(function*() {
      const starts: Array<number> = []
      const fibers = yield* calls(size, starts)
      yield* TestClock.adjust("2 hours")
      yield* Fiber.joinAll(fibers)
      assert.lengthOf(starts, size)
      for (const [i, at] of starts.entries()) {
        assert.isAtMost(starts.slice(i).filter((other) => other < at + 60_000).length, 2 * limit)
        assert.isAtLeast(at, Math.max(0, i + 1 - limit) * 60_000 / limit - 1)
      }
    }).pipe(Effect.provide(Pacer.layer({ requestsPerMinute: limit }))), { fastCheck: { numRuns: 15 } })

  it.effect("refuses what would make its queue too long, and gives the place of an interrupted call back", () =>
    Effect.gen(function*() {
      const pacer = yield* Pacer.Pacer
      const starts: Array<number> = []
      const [first, ...others] = yield* calls(3, starts)
      yield* TestClock.adjust(1)
      assert.lengthOf(starts, 1)
      const full = yield* Effect.flip(pacer.paced(Effect.void, target))
      assert.strictEqual(full._tag, "PacerFull")
      assert.strictEqual(
        full.message,
        "queue: 2 calls for a-model wait already; make fewer at once, or allow more to wait"
      )
      for (const fiber of others) yield* Fiber.interrupt(fiber)
      const another = yield* Effect.fork(pacer.paced(Effect.void, target))
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.join(another)
      if (first !== undefined) yield* Fiber.join(first)
    }).pipe(Effect.provide(Pacer.layer({ requestsPerMinute: 1, queue: 2 }))))

  it.effect("paces each target by itself", () =>
    Effect.gen(function*() {
      const starts: Array<number> = []
      yield* calls(2, starts)
      yield* calls(2, starts, { ...target, model: "another" })
      yield* TestClock.adjust(1)
      assert.lengthOf(starts, 2)
      yield* TestClock.adjust("5 minutes")
      assert.lengthOf(starts, 4)
    }).pipe(Effect.provide(Pacer.layer({ requestsPerMinute: 1 }))))
})
