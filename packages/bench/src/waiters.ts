// One process for each kind of waiter: how much heap each takes, and how long cancelling one and all of them takes.
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import { ConstantBackoff, handleAll, retry } from "cockatiel"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import pRetry from "p-retry"

const COUNT = 100_000
const MINUTE = 60_000

const fault = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "60" } }, { received: Date.now() })
const error = new Error("failed")

const target = { account: Redacted.make("a key"), model: "a-model" }
const runtime = ManagedRuntime.make(Hold.layerMemory)
const hold = await runtime.runPromise(Hold.Hold)
await runtime.runPromise(hold.settle(target, fault))
const patient = { ...RetryPolicy.standard, within: Option.none() }
const gated = Recovery.recover(Effect.succeed(1), { target, gate: "wait", policy: patient })

/** Starts a waiter and gives what cancels it; resolves when it has ended. */
const kinds: { readonly [kind: string]: () => () => Promise<unknown> } = {
  "Effect.sleep": () => cancels(Effect.sleep(MINUTE)),
  recover: () => cancels(Recovery.recover(Effect.fail(fault))),
  "a hold's gate": () => cancels(Effect.provideService(gated, Hold.Hold, hold)),
  "p-retry": () => {
    const controller = new AbortController()
    const ended = pRetry(() => Promise.reject(error), { retries: 1, minTimeout: MINUTE, signal: controller.signal })
      .catch(() => undefined)
    return () => {
      controller.abort()
      return ended
    }
  },
  cockatiel: () => {
    const controller = new AbortController()
    const policy = retry(handleAll, { maxAttempts: 1, backoff: new ConstantBackoff(MINUTE) })
    const ended = policy.execute(() => Promise.reject(error), controller.signal).catch(() => undefined)
    return () => {
      controller.abort()
      return Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 3_000))])
    }
  }
}

const cancels = (effect: Effect.Effect<unknown, unknown>) => {
  const fiber = Effect.runFork(effect)
  return () => Effect.runPromise(Fiber.interrupt(fiber))
}

const heap = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const rest = () => new Promise((resolve) => setTimeout(resolve, 50))

const start = kinds[process.argv[2] ?? ""]
if (start === undefined) throw new Error(`no such waiter: ${process.argv[2]}`)
for (let i = 0; i < 1_000; i++) await start()()
const before = heap()
const all = Array.from({ length: COUNT }, start)
await rest()
const bytes = (heap() - before) / COUNT
const one: Array<number> = []
for (const cancel of all.splice(0, 200)) {
  const began = process.hrtime.bigint()
  await cancel()
  one.push(Number(process.hrtime.bigint() - began))
}
const began = process.hrtime.bigint()
await Promise.all(all.map((cancel) => cancel()))
const every = Number(process.hrtime.bigint() - began) / 1e6
one.sort((a, b) => a - b)

/** How long it takes until as many callers have gone who waited at a gate that is opened, in milliseconds. */
const released = async (): Promise<number> => {
  const fibers = Array.from({ length: COUNT }, () => Effect.runFork(Effect.provideService(gated, Hold.Hold, hold)))
  await rest()
  const began = process.hrtime.bigint()
  await Effect.runPromise(hold.clear(target))
  await Effect.runPromise(Fiber.joinAll(fibers))
  return Number(process.hrtime.bigint() - began) / 1e6
}

/** What is left of the heap once as many holds have ended, each of a key of its own, in bytes. */
const ended = async (): Promise<number> => {
  const start = heap()
  const soon = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "3" } }, { received: Date.now() })
  await Effect.runPromise(
    Effect.forEach(Array.from({ length: COUNT }), (_, i) => hold.settle({ ...target, model: `m${i}` }, soon), {
      discard: true
    })
  )
  await new Promise((resolve) => setTimeout(resolve, 6_000))
  return heap() - start
}

const gate = process.argv[2] === "a hold's gate" ? { releaseMillis: await released(), leftBytes: await ended() } : {}
console.log(JSON.stringify({ bytes, oneMicros: (one[100] ?? 0) / 1_000, allMillis: every, ...gate }))
process.exit(0)
