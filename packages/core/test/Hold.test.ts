import { assert, describe, it } from "@effect/vitest"
import * as Attempt from "@recourse/core/Attempt"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as HoldStore from "@recourse/core/HoldStore"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { inspect } from "node:util"

const secret = "sk-live-0123456789abcdef"
const account = Redacted.make(secret)
const target: Hold.Target = { account, model: "a-model" }

/** A refusal as a provider sends it, met now. */
const refusal = (seconds: number, body: object = {}): Effect.Effect<never, Fault.Fault> =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (received) =>
      Effect.fail(
        Diagnosis.fromResponse({ status: 429, headers: { "retry-after": String(seconds) }, body }, { received })
      )
  )

const bare = Effect.flatMap(
  Clock.currentTimeMillis,
  (received) => Effect.fail(Diagnosis.fromResponse({ status: 429 }, { received }))
)

/** A provider that answers by a rule, and the seconds at which it was asked, and by whom. */
const provider = (answer: (asked: number, by: string) => Effect.Effect<string, Fault.Fault>) => {
  const log: Array<string> = []
  const ask = (by: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      log.push(`${by}@${now / 1_000}`)
      return answer(log.length, by)
    })
  return { log, ask }
}

const waiting = { target, gate: "wait" } as const

const digested = Effect.zipRight(Hold.account(Redacted.make("warm")), Hold.account(account))

describe("Hold, who is let through", () => {
  it.effect("a call that its policy would defer is answered with the same fault, and nothing is sent", () =>
    Effect.gen(function*() {
      const { ask, log } = provider(() => refusal(600))
      const first = yield* Effect.flip(Recovery.recover(ask("first"), { target }))
      yield* TestClock.adjust("1 minute")
      const second = yield* Effect.flip(Recovery.recover(ask("second"), { target }))
      assert.deepStrictEqual(log, ["first@0"])
      assert.deepStrictEqual([first.attempts, second.attempts], [1, 0])
      assert.strictEqual(second.message, first.message)
      assert.deepStrictEqual(second.resetsAt?.at, first.resetsAt?.at)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("each caller's policy reads it: what is far for one is near for another", () =>
    Effect.gen(function*() {
      const { ask, log } = provider((asked) => asked === 1 ? refusal(50) : Effect.succeed("answer"))
      const fiber = yield* Effect.fork(Recovery.recover(ask("patient"), { target }))
      yield* TestClock.adjust("1 second")
      const hasty = yield* Effect.flip(Recovery.recover(ask("hasty"), { target, policy: RetryPolicy.brisk }))
      assert.strictEqual(hasty.attempts, 0)
      assert.strictEqual(yield* Recovery.recover(ask("another"), { target }), "answer")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), "answer")
      assert.deepStrictEqual(log, ["patient@0", "another@1", "patient@50"])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("at the gate it waits for the reset, which costs no attempt", () =>
    Effect.gen(function*() {
      const { ask, log } = provider((asked) => asked === 1 ? refusal(20) : Effect.succeed("answer"))
      const first = yield* Effect.fork(Recovery.recover(ask("first"), waiting))
      yield* TestClock.adjust("1 second")
      const numbers: Array<number> = []
      const second = yield* Effect.fork(
        Recovery.recover(
          Effect.flatMap(Attempt.Attempt, ({ number }) => {
            numbers.push(number)
            return ask("second")
          }),
          waiting
        )
      )
      yield* TestClock.adjust("18 seconds")
      assert.deepStrictEqual(log, ["first@0"])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["answer", "answer"])
      assert.deepStrictEqual(numbers, [1])
      assert.lengthOf(log, 3)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a wait at the gate that would pass the total time is not entered", () =>
    Effect.gen(function*() {
      const { ask, log } = provider(() => refusal(20))
      const policy = { ...RetryPolicy.standard, within: Option.some(Duration.seconds(10)) }
      yield* Effect.flip(Recovery.recover(ask("first"), { ...waiting, policy }))
      const second = yield* Effect.flip(Recovery.recover(ask("second"), { ...waiting, policy }))
      assert.strictEqual(second.attempts, 0)
      assert.deepStrictEqual(log, ["first@0"])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a plan's allowance concerns every model of the account, a rate its own", () =>
    Effect.gen(function*() {
      const hold = yield* Hold.Hold
      const other = { ...target, model: "another-model" }
      const settled = (effect: Effect.Effect<never, Fault.Fault>) =>
        Effect.flatMap(Effect.flip(effect), (fault) => hold.settle(target, fault))
      yield* settled(refusal(600))
      assert.isTrue(Option.isSome(yield* hold.get(target)))
      assert.isTrue(Option.isNone(yield* hold.get(other)))
      yield* settled(refusal(7_200, { error: { type: "usage_limit_reached" } }))
      assert.isTrue(Option.isSome(yield* hold.get(other)))
      assert.isTrue(Option.isNone(yield* hold.get({ ...target, account: Redacted.make("somebody else") })))
    }).pipe(Effect.provide(Hold.layerMemory)))
})

describe("Hold, after the reset", () => {
  const crowd = (ask: (by: string) => Effect.Effect<string, Fault.Fault>, size: number) =>
    Effect.forEach(
      Array.from({ length: size }, (_, i) => `c${i}`),
      (by) => Effect.fork(Recovery.recover(ask(by), waiting))
    )

  it.effect("one probes, and the others follow in groups that double, oldest first", () =>
    Effect.gen(function*() {
      yield* digested
      const { ask, log } = provider((asked) =>
        asked === 1 ? refusal(10) : Effect.as(Effect.sleep("500 millis"), "answer")
      )
      const first = yield* Effect.fork(Recovery.recover(ask("first"), waiting))
      yield* TestClock.adjust("1 second")
      const others = yield* crowd(ask, 7)
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(first)
      yield* Fiber.joinAll(others)
      assert.deepStrictEqual(log.slice(0, 1), ["first@0"])
      // the refused call waits out its own refusal, and keeps its place before those that came later
      const at = (by: string) => Number(log.find((entry, i) => i > 0 && entry.startsWith(`${by}@`))?.split("@")[1])
      assert.deepStrictEqual(
        ["first", "c0", "c1", "c2", "c3", "c4", "c5", "c6"].map(at).sort((a, b) => a - b).at(0),
        10
      )
      assert.isAtMost(Math.max(...log.slice(1).map((entry) => Number(entry.split("@")[1]))), 12)
      const times = log.slice(1).map((entry) => Number(entry.split("@")[1]))
      assert.strictEqual(times.filter((time) => time === 10).length <= 2, true)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a call that is refused keeps its place", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider((asked) => asked === 1 ? refusal(5) : Effect.never)
      yield* Effect.flatMap(Effect.flip(refusal(5)), (fault) => hold.settle(target, fault))
      const fibers = yield* crowd(ask, 5)
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual(log[0], "c0@5")
      assert.deepStrictEqual(log.slice(1).map((entry) => entry.split("@")[0]).sort(), ["c0", "c1", "c2"])
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a probe that is silent holds the others for two seconds", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider((asked) => asked === 1 ? Effect.never : Effect.succeed("answer"))
      yield* Effect.flatMap(Effect.flip(refusal(5)), (fault) => hold.settle(target, fault))
      const fibers = yield* crowd(ask, 3)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log, ["c0@5"])
      yield* TestClock.adjust(Duration.millis(1_999))
      assert.deepStrictEqual(log, ["c0@5"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["c0@5", "c1@7", "c2@7"])
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a call that says that it is admitted lets them go at once", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() =>
        Effect.zipRight(
          Effect.flatMap(Attempt.Attempt, ({ admitted }) => admitted),
          Effect.as(Effect.sleep("1 minute"), "answer")
        )
      )
      yield* Effect.flatMap(Effect.flip(refusal(5)), (fault) => hold.settle(target, fault))
      const fibers = yield* crowd(ask, 3)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log, ["c0@5", "c1@5", "c2@5"])
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("another takes the place of a probe that is interrupted, at once", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() => Effect.never)
      yield* Effect.flatMap(Effect.flip(refusal(5)), (fault) => hold.settle(target, fault))
      const [first, ...others] = yield* crowd(ask, 3)
      yield* TestClock.adjust("5 seconds")
      if (first !== undefined) yield* Fiber.interrupt(first)
      yield* Effect.yieldNow()
      assert.deepStrictEqual(log, ["c0@5", "c1@5"])
      yield* Fiber.interruptAll(others)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a probe that is refused without a reset extends the hold by its tier's curve", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider((asked) => asked <= 2 ? bare : Effect.succeed("answer"))
      yield* Effect.flatMap(Effect.flip(refusal(5)), (fault) => hold.settle(target, fault))
      const fibers = yield* crowd(ask, 3)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)
      // 2 s and then 4 s are the first steps of the refused tier of the standard policy
      assert.deepStrictEqual(log.map((entry) => Number(entry.split("@")[1])).slice(0, 3), [5, 7, 11])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("once the last has left, the store is empty", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask } = provider((asked) => asked === 1 ? refusal(10) : Effect.succeed("answer"))
      const fibers = yield* crowd(ask, 5)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(yield* hold.all, [])
      assert.deepStrictEqual(yield* Effect.flatMap(HoldStore.HoldStore, (store) => store.all), [])
    }).pipe(Effect.provide(Layer.provideMerge(Hold.layer, HoldStore.layerMemory))))
})

describe("Hold, what takes a refusal back", () => {
  it.effect("a success that began after it, and none that began before", () =>
    Effect.gen(function*() {
      const hold = yield* Hold.Hold
      const slow = yield* Effect.fork(Recovery.recover(Effect.as(Effect.sleep("3 seconds"), "old"), { target }))
      yield* TestClock.adjust("1 second")
      yield* Effect.flatMap(Effect.flip(refusal(60)), (fault) => hold.settle(target, fault))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* Fiber.join(slow), "old")
      assert.isTrue(Option.isSome(yield* hold.get(target)))
      yield* Recovery.recover(Effect.succeed("new"), { target })
      assert.isTrue(Option.isNone(yield* hold.get(target)))
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("of a call that was sent while nothing was known: a refusal that it began after, and none that it began before", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const call = Recovery.recover(Effect.as(Effect.sleep("3 seconds"), "answer"), { target })
      for (const [refused, holds] of [["before", false], ["after", true]] as const) {
        const early = yield* Effect.flip(refusal(60))
        yield* TestClock.adjust("1 second")
        assert.isTrue(hold.isFree(target))
        const sent = yield* Effect.fork(call)
        yield* TestClock.adjust("1 second")
        yield* hold.settle(target, refused === "before" ? early : yield* Effect.flip(refusal(60)))
        assert.isTrue(Option.isSome(yield* hold.get(target)))
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual(yield* Fiber.join(sent), "answer")
        assert.strictEqual(Option.isSome(yield* hold.get(target)), holds)
      }
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("clear lets everybody go, and changes tell of both", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const seen = yield* Effect.fork(Stream.runCollect(Stream.take(hold.changes, 2)))
      yield* TestClock.adjust("1 second")
      const { ask, log } = provider(() => Effect.succeed("answer"))
      yield* Effect.flatMap(Effect.flip(refusal(60)), (fault) => hold.settle(target, fault))
      const fibers = yield* Effect.forEach(
        ["a", "b", "c", "d"],
        (by) => Effect.fork(Recovery.recover(ask(by), waiting))
      )
      yield* TestClock.adjust("1 second")
      yield* hold.clear(target)
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(log, ["a@2", "b@2", "c@2", "d@2"])
      assert.deepStrictEqual(Array.from(yield* Fiber.join(seen), ({ _tag }) => _tag), ["Held", "Released"])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("an earlier reset does not: a merge only extends", () =>
    Effect.gen(function*() {
      const hold = yield* Hold.Hold
      for (const seconds of [300, 20, 200]) {
        yield* Effect.flatMap(Effect.flip(refusal(seconds)), (fault) => hold.settle(target, fault))
      }
      assert.strictEqual(Option.getOrThrow(yield* hold.get(target)).until, 300_000)
    }).pipe(Effect.provide(Hold.layerMemory)))
})

describe("Hold, its store and its keys", () => {
  it.effect("a store that is away holds nobody, and says so once", () =>
    Effect.gen(function*() {
      const away = Effect.fail(new HoldStore.HoldStoreAway({ cause: "no route" }))
      // one that cannot be reached, and one that can be read but not written
      for (const find of [away, Effect.succeed([])]) {
        const lines: Array<string> = []
        const store = Layer.succeed(HoldStore.HoldStore, {
          find: () => find,
          isFree: () => false,
          learnt: () => 0,
          extend: () => away,
          forget: () => away,
          all: away
        })
        yield* Effect.gen(function*() {
          assert.strictEqual(yield* Recovery.recover(Effect.succeed("answer"), { target }), "answer")
          assert.strictEqual((yield* Effect.flip(Recovery.recover(refusal(600), { target })))._tag, "RateLimited")
          assert.strictEqual((yield* Effect.flip(Recovery.recover(refusal(600), { target })))._tag, "RateLimited")
        }).pipe(
          Effect.provide(Layer.provide(Hold.layer, store)),
          Effect.provide(
            Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => lines.push(String(message))))
          )
        )
        assert.deepStrictEqual(lines, ["The store of holds cannot be reached: no route Calls are let through."])
      }
    }))

  it.effect("a credential stands nowhere", () =>
    Effect.gen(function*() {
      const hold = yield* Hold.Hold
      yield* Effect.flip(Recovery.recover(refusal(600), { target }))
      const all = yield* hold.all
      const exit = yield* Effect.exit(Recovery.recover(Effect.succeed(1), { target }))
      assert.lengthOf(all, 1)
      for (const text of [JSON.stringify(all), inspect(all, { depth: 9 }), String(exit), inspect(exit, { depth: 9 })]) {
        assert.notInclude(text, secret)
      }
      assert.match(yield* Hold.account(Redacted.make("abc")), /^ba7816bf8f01cfea414140de5dae2223/)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("the number of keys is bounded: what was remembered longest goes first", () =>
    Effect.gen(function*() {
      const store = yield* HoldStore.makeMemory({ capacity: 2 })
      const fault = yield* Effect.flip(refusal(600))
      for (const key of ["a", "b", "a", "c"]) yield* store.extend({ key, fault, until: 600_000, refused: 0 })
      assert.deepStrictEqual((yield* store.all).map(({ key }) => key), ["b", "c"])
    }).pipe(Effect.scoped))

  it.effect("holds that have ended leave nothing behind", () =>
    Effect.gen(function*() {
      const fault = yield* Effect.flip(refusal(600))
      const store = yield* HoldStore.makeMemory()
      yield* Effect.forEach(
        Array.from({ length: 100_000 }, (_, i) => i),
        (i) => store.extend({ key: `k${i}`, fault, until: 1_000 + (i % 60_000), refused: 0 }),
        { discard: true }
      )
      yield* store.extend({ key: "an hour", fault, until: 3_600_000, refused: 0 })
      yield* store.extend({ key: "soon", fault, until: 500, refused: 0 })
      assert.lengthOf(yield* store.all, 100_002)
      yield* TestClock.adjust("1 second")
      assert.isTrue(store.isFree("soon", "any"))
      yield* TestClock.adjust("3 minutes")
      assert.lengthOf(yield* store.all, 1)
      assert.isTrue(store.isFree("k0", "any") && store.isFree("k99999", "any"))
    }).pipe(Effect.scoped))

  it.effect("the event of an interruption says that it struck at a gate", () =>
    Effect.gen(function*() {
      const hold = yield* Hold.Hold
      const struck: Array<string> = []
      yield* Effect.flatMap(Effect.flip(refusal(60)), (fault) => hold.settle(target, fault))
      const fiber = yield* Recovery.recover(Effect.succeed("answer"), waiting).pipe(
        Recovery.withListener((event) => Effect.sync(() => event._tag === "Interrupted" && struck.push(event.where))),
        Effect.fork
      )
      yield* TestClock.adjust("1 second")
      const exit = yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.isInterrupted(exit))
      assert.deepStrictEqual(struck, ["gate"])
    }).pipe(Effect.provide(Hold.layerMemory)))
})

describe("Hold, what changes while somebody waits", () => {
  const settle = (hold: Context.Tag.Service<typeof Hold.Hold>, seconds: number, body?: object) =>
    Effect.flatMap(Effect.flip(refusal(seconds, body)), (fault) => hold.settle(target, fault))
  const patient: RetryPolicy.RetryPolicy = { ...RetryPolicy.standard, within: Option.none() }

  it.effect("a refusal that another hold has met over the same store is waited for, and looked at but a few times", () =>
    Effect.gen(function*() {
      yield* digested
      const store = yield* HoldStore.makeMemory()
      let finds = 0
      const counted = {
        ...store,
        // one that spins would never give the test its turn
        find: (keys: ReadonlyArray<string>) =>
          Effect.suspend(() => ++finds > 1_000 ? Effect.dieMessage("it spins") : store.find(keys))
      }
      const [one, other] = yield* Effect.all([Hold.make, Hold.make]).pipe(
        Effect.provideService(HoldStore.HoldStore, counted)
      )
      const { ask, log } = provider(() => Effect.succeed("answer"))
      yield* settle(one, 5)
      const fibers = yield* Effect.forEach(
        ["a", "b", "c"],
        (by) => Effect.fork(Effect.provideService(Recovery.recover(ask(by), waiting), Hold.Hold, one))
      )
      yield* TestClock.adjust("1 second")
      yield* settle(other, 50)
      yield* TestClock.adjust("2 minutes")
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(log.map((entry) => entry.slice(2)), ["51", "51", "51"])
      assert.isBelow(finds, 20)
    }).pipe(Effect.scoped))

  it.effect("who waits is told at once when the wait becomes one that its policy defers", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      yield* settle(hold, 20)
      const fiber = yield* Effect.fork(Recovery.recover(Effect.succeed("answer"), { ...waiting, policy: patient }))
      yield* TestClock.adjust("1 second")
      yield* settle(hold, 7_200)
      yield* TestClock.adjust(1)
      const fault = yield* Effect.flip(Fiber.join(fiber))
      assert.deepStrictEqual([fault._tag, fault.attempts], ["RateLimited", 0])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("no attempt begins past the total time, however slow those in front are", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() => Effect.never)
      yield* settle(hold, 9)
      const policy = { ...RetryPolicy.standard, within: Option.some(Duration.seconds(12)) }
      const fibers = yield* Effect.forEach(Array.from({ length: 20 }, (_, i) => `c${i}`), (by) =>
        Effect.fork(Recovery.recover(ask(by), { ...waiting, policy })))
      yield* TestClock.adjust("1 minute")
      assert.isAtMost(
        Math.max(...log.map((entry) =>
          Number(entry.split("@")[1])
        )),
        12
      )
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("clear lets those go too who wait for a probe", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() => Effect.never)
      yield* settle(hold, 5)
      const fibers = yield* Effect.forEach(["a", "b", "c", "d", "e"], (by) =>
        Effect.fork(Recovery.recover(ask(by), waiting)))
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(log, 1)
      yield* hold.clear(target)
      yield* TestClock.adjust(1)
      assert.lengthOf(log, 5)
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a merge extends a delta whatever the wall clock is set to", () =>
    Effect.gen(function*() {
      const clock = yield* Effect.clock
      const fault = yield* Effect.flip(refusal(600))
      const long = { key: "k", fault, until: 3_600_000, elapses: 3_600_000, refused: 0 }
      const short = { key: "k", fault, until: 7_210_000, elapses: 10_000, refused: 1 }
      assert.deepStrictEqual(HoldStore.merge(long, short, clock), { ...long, refused: 1 })
      assert.deepStrictEqual(HoldStore.merge(short, long, clock), { ...long, refused: 1 })
    }))

  it.effect("the end of the layer lets everybody go, and ends the changes", () =>
    Effect.gen(function*() {
      yield* digested
      const scope = yield* Scope.make()
      const hold = Context.get(yield* Layer.buildWithScope(Hold.layerMemory, scope), Hold.Hold)
      const changes = yield* Effect.fork(Stream.runDrain(hold.changes))
      yield* settle(hold, 60)
      const fiber = yield* Effect.fork(
        Effect.provideService(Recovery.recover(Effect.succeed("answer"), waiting), Hold.Hold, hold)
      )
      yield* TestClock.adjust("1 second")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust(1)
      assert.isTrue(Option.isSome(yield* Fiber.poll(changes)))
      assert.strictEqual(yield* Fiber.join(fiber), "answer")
    }))

  it.effect("what a probe's refusal without a reset extends says until when", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask } = provider(() => bare)
      yield* settle(hold, 5)
      const fibers = yield* Effect.forEach(["a", "b"], (by) => Effect.fork(Recovery.recover(ask(by), waiting)))
      yield* TestClock.adjust("5 seconds")
      const held = Option.getOrThrow(yield* hold.get(target))
      assert.strictEqual(held.until, 7_000)
      assert.strictEqual(held.fault.resetsAt?.at.epochMillis, 7_000)
      const hasty = { ...RetryPolicy.brisk, patience: Duration.seconds(1) }
      const fault = yield* Effect.flip(Recovery.recover(ask("hasty"), { target, policy: hasty }))
      assert.strictEqual(fault.attempts, 0)
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a recovery inside an attempt tells the hold around it that it is admitted", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() =>
        Effect.zipRight(Effect.flatMap(Attempt.Attempt, ({ admitted }) => admitted), Effect.never)
      )
      yield* settle(hold, 5)
      const fibers = yield* Effect.forEach(["a", "b", "c"], (by) =>
        Effect.fork(Recovery.recover(Recovery.recover(ask(by)), waiting)))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log, ["a@5", "b@5", "c@5"])
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a recovery inside a probe of the same target does not wait for that probe", () =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      const { ask, log } = provider(() => Effect.succeed("answer"))
      yield* settle(hold, 5)
      const fiber = yield* Effect.fork(ask("inner").pipe(Recovery.recover(waiting), Recovery.recover(waiting)))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log, ["inner@5"])
      assert.strictEqual(yield* Fiber.join(fiber), "answer")
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("who waits for a model learns when its account is refused, and the other way round", () =>
    Effect.gen(function*() {
      yield* digested
      const { ask, log } = provider(() => Effect.succeed("answer"))
      const plan = refusal(600, { error: { type: "usage_limit_reached" } })
      for (
        const [near, far] of [[refusal(20), plan], [
          refusal(20, { error: { type: "usage_limit_reached" } }),
          refusal(600)
        ]] as const
      ) {
        const hold = yield* Hold.Hold
        yield* hold.settle(target, yield* Effect.flip(near))
        const fiber = yield* Effect.fork(Effect.flip(Recovery.recover(ask("waiting"), waiting)))
        yield* TestClock.adjust("1 second")
        yield* hold.settle(target, yield* Effect.flip(far))
        yield* TestClock.adjust(0)
        const known = fiber.unsafePoll()
        assert.isNotNull(known)
        assert.isTrue(Exit.isSuccess(known ?? Exit.void))
        yield* hold.clear(target)
      }
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(Hold.layerMemory)))
})

describe("Hold, whatever the order of things", () => {
  it.effect.prop("a hold that is cleared lets everybody go, then and there", {
    starts: FastCheck.array(FastCheck.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 30 }),
    at: FastCheck.integer({ min: 1, max: 60_000 })
  }, ({ at, starts }) =>
    Effect.gen(function*() {
      yield* digested
      const hold = yield* Hold.Hold
      yield* Effect.flatMap(Effect.flip(refusal(3_600)), (fault) => hold.settle(target, fault))
      const policy: RetryPolicy.RetryPolicy = {
        ...RetryPolicy.standard,
        patience: Duration.hours(2),
        within: Option.none()
      }
      const fibers = yield* Effect.forEach(starts, (start) =>
        Effect.fork(Effect.delay(
          Recovery.recover(Clock.currentTimeMillis, { target, gate: "wait", policy }),
          start
        )))
      const clearing = yield* Effect.fork(Effect.delay(hold.clear(target), at))
      yield* TestClock.adjust("2 minutes")
      yield* Fiber.join(clearing)
      const went = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(went, starts.map((start) => Math.max(start, at)))
    }).pipe(Effect.provide(Hold.layerMemory)), { fastCheck: { numRuns: 15 } })

  interface Caller {
    readonly starts: number
    readonly takes: number
    readonly gate: "open" | "wait"
    readonly hasty: boolean
    readonly stopped: number | undefined
  }

  interface Window {
    readonly from: number
    readonly lasts: number
    /** Whether its refusals say until when. */
    readonly named: boolean
  }

  const caller: FastCheck.Arbitrary<Caller> = FastCheck.record({
    starts: FastCheck.nat({ max: 15_000 }),
    takes: FastCheck.integer({ min: 1, max: 3_000 }),
    gate: FastCheck.constantFrom("open", "wait", "wait"),
    hasty: FastCheck.boolean(),
    stopped: FastCheck.option(FastCheck.nat({ max: 30_000 }), { nil: undefined, freq: 3 })
  })

  const window: FastCheck.Arbitrary<Window> = FastCheck.record({
    from: FastCheck.nat({ max: 15_000 }),
    lasts: FastCheck.integer({ min: 100, max: 20_000 }),
    named: FastCheck.boolean()
  })

  interface Sent {
    readonly at: number
    readonly who: number
    /** When it was answered, or given up. */
    ended: number
    outcome: "admitted" | "refused" | "abandoned"
    /** Until when it was refused, where that was said. */
    until: number | undefined
  }

  it.effect.prop(
    "nobody is stranded, nobody passes a refusal that its policy defers, one probes, and nothing is left behind",
    {
      callers: FastCheck.array(caller, { minLength: 1, maxLength: 8 }),
      windows: FastCheck.array(window, { maxLength: 2 })
    },
    ({ callers, windows }) =>
      Effect.gen(function*() {
        yield* digested
        const hold = yield* Hold.Hold
        const sent: Array<Sent> = []
        const resets: Array<number> = []
        const ask = (who: number, takes: number) =>
          Effect.flatMap(Clock.currentTimeMillis, (at): Effect.Effect<string, Fault.Fault> => {
            const mine: Sent = { at, who, ended: Number.POSITIVE_INFINITY, outcome: "abandoned", until: undefined }
            sent.push(mine)
            const refusing = windows.find(({ from, lasts }) => at >= from && at < from + lasts)
            const ends = (outcome: Sent["outcome"]) =>
              Effect.map(Clock.currentTimeMillis, (now) => {
                mine.ended = now
                mine.outcome = outcome
              })
            return Effect.onInterrupt(
              refusing === undefined
                ? Effect.as(Effect.zipRight(Effect.sleep(takes), ends("admitted")), "answer")
                : Effect.zipRight(
                  ends("refused"),
                  Effect.suspend(() => {
                    const wait = refusing.from + refusing.lasts - at
                    if (refusing.named) mine.until = at + wait
                    return Effect.fail(
                      Diagnosis.fromResponse(
                        { status: 429, headers: refusing.named ? { "retry-after-ms": String(wait) } : {} },
                        { received: at }
                      )
                    )
                  })
                ),
              () => ends("abandoned")
            )
          })
        const patience = (hasty: boolean) => hasty ? 5_000 : 75_000
        const fibers = yield* Effect.forEach(callers, ({ gate, hasty, starts, stopped, takes }, who) => {
          const policy: RetryPolicy.RetryPolicy = {
            ...RetryPolicy.standard,
            patience: Duration.millis(patience(hasty)),
            within: Option.none()
          }
          const call = Recovery.recover(ask(who, takes), { target, gate, policy })
          return Effect.fork(
            Effect.zipRight(
              Effect.sleep(starts),
              stopped === undefined ? call : Effect.raceFirst(call, Effect.sleep(stopped))
            )
          )
        })
        const watching = yield* Effect.fork(Stream.runForEach(hold.changes, (change) =>
          Effect.sync(() => {
            // a merge only extends; what was released begins anew
            if (change._tag === "Released") resets.length = 0
            else {
              assert.isAtLeast(change.held.until, resets.at(-1) ?? 0)
              resets.push(change.held.until)
            }
          })))
        yield* TestClock.adjust("10 minutes")
        for (const fiber of fibers) assert.isTrue(Option.isSome(yield* Fiber.poll(fiber)), "stranded")
        yield* Fiber.interrupt(watching)
        assert.deepStrictEqual(yield* Effect.flatMap(HoldStore.HoldStore, (store) => store.all), [])

        for (const [i, one] of sent.entries()) {
          const policy = callers[one.who]
          // what was known when it was sent: refusals that were met before, and not taken back by a success that began after them
          const known = sent.slice(0, i).filter((other) =>
            other.until !== undefined && other.ended < one.at &&
            !sent.some((good) => good.outcome === "admitted" && good.at > other.ended && good.ended <= one.at)
          )
          const until = Math.max(0, ...known.map((other) => other.until ?? 0))
          assert.isAtMost(until - one.at, patience(policy?.hasty ?? false), "a request passed a deferred hold")
          if (policy?.gate === "wait") assert.isAtMost(until, one.at, "a request left the gate before the reset")
        }

        // from a reset on, no second one of those that waited, until the first is admitted or two seconds have passed
        const waits = sent.filter(({ at, who }) => callers[who]?.gate === "wait" && at > (callers[who]?.starts ?? 0))
        for (const { until } of sent) {
          if (until === undefined) continue
          const after = waits.filter(({ at }) => at >= until)
          const [probe, ...others] = after
          if (probe === undefined || probe.outcome !== "admitted" || probe.at !== until) continue
          for (const other of others) {
            const retries = sent.filter(({ at, who }) => who === other.who && at < other.at).length > 0
            if (!retries && callers[other.who]?.starts !== undefined && (callers[other.who]?.starts ?? 0) < until) {
              assert.isAtLeast(other.at, Math.min(probe.ended, probe.at + 2_000), "two probed")
            }
          }
        }
      }).pipe(Effect.provide(Layer.provideMerge(Hold.layer, HoldStore.layerMemory))),
    { fastCheck: { numRuns: 25 }, timeout: 60_000 }
  )
})
