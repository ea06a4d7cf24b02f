import * as PlatformError from "@effect/platform/Error"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Resume from "@recourse/core/Resume"
import * as PersistedHoldStore from "@recourse/platform/PersistedHoldStore"
import * as PersistedResumeStore from "@recourse/platform/PersistedResumeStore"
import * as Arbitrary from "effect/Arbitrary"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"

const target: Hold.Target = { account: Redacted.make("a key"), model: "a-model" }

const refusal: Effect.Effect<Fault.Fault> = Effect.map(
  Clock.currentTimeMillis,
  (received) => Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "2400" } }, { received })
)

/** A process, as far as it remembers: what is built anew over the same store. */
const process = <A, E>(
  self: Effect.Effect<A, E, Hold.Hold | Resume.Resume>,
  store: Layer.Layer<KeyValueStore.KeyValueStore>
): Effect.Effect<A, E> =>
  Effect.provide(
    self,
    Layer.merge(
      Layer.provide(Hold.layer, PersistedHoldStore.layer()),
      Layer.provide(Resume.layer({ spread: 0 }), PersistedResumeStore.layer())
    ).pipe(Layer.provide(store))
  )

/** What is warned of meanwhile. */
const warnings = () => {
  const lines: Array<string> = []
  const layer = Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => lines.push(String(message))))
  return { lines, layer }
}

const inMemory = Effect.provide(KeyValueStore.KeyValueStore, KeyValueStore.layerMemory)

const KEYS = ["recourse-holds", "recourse-wakeups"]

/** What stands under both of a key's names, the one that was written last in front. */
const written = (values: KeyValueStore.KeyValueStore, key: string) =>
  Effect.map(
    Effect.forEach([`${key}-0`, `${key}-1`], (name) =>
      Effect.map(values.get(name), (text) => ({
        name,
        text: Option.getOrElse(text, () => "{\"revision\":0,\"records\":[]}")
      }))),
    (all) => all.sort((a, b) => JSON.parse(b.text).revision - JSON.parse(a.text).revision)
  )

describe("What is remembered over a restart", () => {
  it.effect("a refusal, until its reset by the wall clock, and the conversation that it wakes", () =>
    Effect.gen(function*() {
      const store = Layer.succeed(KeyValueStore.KeyValueStore, yield* inMemory)
      const fault = yield* refusal
      yield* process(
        Effect.gen(function*() {
          yield* Effect.flatMap(Hold.Hold, (hold) => hold.settle(target, fault))
          yield* Effect.flatMap(Resume.Resume, (resume) => resume.arm("trunk", fault))
        }),
        store
      )
      yield* TestClock.adjust("39 minutes")
      yield* process(
        Effect.gen(function*() {
          const held = Option.getOrThrow(yield* Effect.flatMap(Hold.Hold, (hold) => hold.get(target)))
          assert.strictEqual(held.until, 2_400_000)
          assert.strictEqual(held.fault.message, fault.message)
          const [armed] = yield* Effect.flatMap(Resume.Resume, ({ armed }) => armed)
          assert.deepStrictEqual([armed?.conversation, armed?.wakes], ["trunk", 2_400_000])
        }),
        store
      )
      yield* TestClock.adjust("2 minutes")
      for (const wakes of [true, false]) {
        yield* process(
          Effect.gen(function*() {
            const hold = yield* Hold.Hold
            assert.isTrue(Option.isNone(yield* hold.get(target)))
            const resume = yield* Resume.Resume
            assert.lengthOf(yield* resume.armed, wakes ? 1 : 0)
            if (wakes) yield* Stream.runHead(resume.wakeups)
          }),
          store
        )
      }
    }))

  it.effect("nothing that a success has taken back, and nothing of a credential", () =>
    Effect.gen(function*() {
      const values = yield* inMemory
      const store = Layer.succeed(KeyValueStore.KeyValueStore, values)
      const fault = yield* refusal
      yield* process(
        Effect.gen(function*() {
          const [hold, resume] = [yield* Hold.Hold, yield* Resume.Resume]
          yield* hold.settle(target, fault)
          for (const { text } of yield* written(values, "recourse-holds")) assert.notInclude(text, "a key")
          yield* hold.clear(target)
          yield* Resume.arming(Effect.fail(fault), "trunk").pipe(Effect.ignore)
          assert.lengthOf(yield* resume.armed, 1)
          yield* Resume.arming(Effect.void, "trunk")
        }),
        store
      )
      for (const key of KEYS) {
        const [last] = yield* written(values, key)
        assert.deepStrictEqual(JSON.parse(last?.text ?? "").records, [])
      }
    }))

  it.effect.prop(
    "whatever stands in the store: what is torn or somebody else's is dropped with a warning, and the rest is kept",
    [
      FastCheck.oneof(FastCheck.string(), FastCheck.json(), FastCheck.constant("[{\"key\":\"a/b\"},null,7]")),
      FastCheck.boolean()
    ],
    ([junk, inList]) =>
      Effect.gen(function*() {
        const values = yield* inMemory
        const store = Layer.succeed(KeyValueStore.KeyValueStore, values)
        const fault = yield* refusal
        const remembered = Effect.gen(function*() {
          yield* Effect.flatMap(Hold.Hold, (hold) => hold.settle(target, fault))
          yield* Effect.flatMap(Resume.Resume, (resume) => resume.arm("trunk", fault))
        })
        yield* process(remembered, store)
        for (const key of KEYS) {
          const [last] = yield* written(values, key)
          if (last === undefined) return assert.fail("nothing was written")
          const document = JSON.parse(last.text)
          yield* values.set(
            last.name,
            inList ? JSON.stringify({ ...document, records: [junk, ...document.records] }) : junk
          )
        }
        const { layer, lines } = warnings()
        const [held, armed] = yield* process(
          Effect.all([
            Effect.flatMap(Hold.Hold, (hold) => hold.all),
            Effect.flatMap(Resume.Resume, ({ armed }) => armed)
          ]),
          store
        ).pipe(Effect.provide(layer))
        const { length } = inList ? [fault] : []
        assert.deepStrictEqual([held.length, armed.length], [length, length])
        if (inList) assert.lengthOf(lines, 2)
        // and it goes on
        yield* process(remembered, store).pipe(Effect.provide(layer))
        assert.lengthOf(yield* process(Effect.flatMap(Hold.Hold, (hold) => hold.all), store), 1)
      }),
    { fastCheck: { numRuns: 60 } }
  )

  it.effect.prop(
    "what is killed while it writes has what was written before",
    { share: FastCheck.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }) },
    ({ share }) =>
      Effect.gen(function*() {
        const values = yield* inMemory
        const store = Layer.succeed(KeyValueStore.KeyValueStore, values)
        const fault = yield* refusal
        const arm = (conversation: string) => Effect.flatMap(Resume.Resume, (resume) => resume.arm(conversation, fault))
        yield* process(Effect.zipRight(arm("one"), arm("two")), store)
        const [last] = yield* written(values, "recourse-wakeups")
        if (last === undefined) return assert.fail("nothing was written")
        yield* values.set(last.name, last.text.slice(0, Math.floor(last.text.length * share)))
        const { layer } = warnings()
        const armed = yield* process(Effect.flatMap(Resume.Resume, ({ armed }) => armed), store).pipe(
          Effect.provide(layer)
        )
        assert.deepStrictEqual(armed.map(({ conversation }) => conversation), ["one"])
      }),
    { fastCheck: { numRuns: 30 } }
  )

  it.effect("a store that cannot be read is not written either", () =>
    Effect.gen(function*() {
      const values = yield* inMemory
      const denied = new PlatformError.SystemError({
        reason: "PermissionDenied",
        module: "KeyValueStore",
        method: "get"
      })
      const fault = yield* refusal
      const arm = (conversation: string) => Effect.flatMap(Resume.Resume, (resume) => resume.arm(conversation, fault))
      yield* process(arm("one"), Layer.succeed(KeyValueStore.KeyValueStore, values))
      const { layer } = warnings()
      yield* process(
        arm("two"),
        Layer.succeed(KeyValueStore.KeyValueStore, { ...values, get: () => Effect.fail(denied) })
      ).pipe(Effect.provide(layer))
      const armed = yield* process(
        Effect.flatMap(Resume.Resume, ({ armed }) => armed),
        Layer.succeed(KeyValueStore.KeyValueStore, values)
      )
      assert.deepStrictEqual(armed.map(({ conversation }) => conversation), ["one"])
    }))

  it.effect.prop(
    "any fault that names a reset is the same after a restart",
    { fault: Arbitrary.make(Fault.Schema) },
    ({ fault }) =>
      Effect.gen(function*() {
        const store = Layer.succeed(KeyValueStore.KeyValueStore, yield* inMemory)
        yield* TestClock.setTime(fault.received.epochMillis)
        const armed = yield* process(Effect.flatMap(Resume.Resume, (resume) => resume.arm("one", fault)), store)
        const [after] = yield* process(Effect.flatMap(Resume.Resume, ({ armed }) => armed), store)
        assert.strictEqual(after !== undefined, Option.isSome(armed))
        if (after !== undefined) {
          assert.deepStrictEqual([after.fault._tag, after.fault.message], [fault._tag, fault.message])
        }
      }),
    { fastCheck: { numRuns: 60 } }
  )

  it.effect("a store that cannot be written says so once, and what is remembered is this process's", () =>
    Effect.gen(function*() {
      const memory = yield* inMemory
      const full = new PlatformError.SystemError({ reason: "PermissionDenied", module: "KeyValueStore", method: "set" })
      const fault = yield* refusal
      const { layer, lines } = warnings()
      yield* process(
        Effect.gen(function*() {
          const [hold, resume] = [yield* Hold.Hold, yield* Resume.Resume]
          for (let i = 0; i < 2; i++) {
            yield* hold.settle(target, fault)
            yield* resume.arm(`${i}`, fault)
          }
          assert.lengthOf(yield* hold.all, 1)
          assert.lengthOf(yield* resume.armed, 2)
        }),
        Layer.succeed(KeyValueStore.KeyValueStore, { ...memory, set: () => Effect.fail(full) })
      ).pipe(Effect.provide(layer))
      assert.lengthOf(lines, 2)
      for (const line of lines) assert.match(line, /does not outlive this process: it cannot be written/)
    }))
})
