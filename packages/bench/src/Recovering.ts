import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import { ConstantBackoff, handleAll, retry } from "cockatiel"
import * as Effect from "effect/Effect"
import pRetry from "p-retry"
import type { Group } from "./Bench.ts"

const schedule = RetryPolicy.schedule(RetryPolicy.standard)
const ok = Effect.succeed(1)
const recovered = Recovery.recover(ok)
const retried = Effect.retry(ok, schedule)

/** Runs an effect a thousand times in one fiber. */
const inFiber = (effect: Effect.Effect<unknown, unknown>) => () => {
  let i = 0
  return Effect.runSync(Effect.whileLoop({ while: () => i++ < 1_000, body: () => effect, step: () => undefined }))
}

const malformed = Diagnosis.fromFrame({ candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] }, { received: 0 })

/** A call that fails twice and then succeeds, each time that it is run. */
const flaky = (around: (call: Effect.Effect<number, typeof malformed>) => Effect.Effect<number, unknown>) =>
  Effect.suspend(() => {
    let failures = 0
    return around(Effect.suspend(() => failures++ < 2 ? Effect.fail(malformed) : Effect.succeed(1)))
  })

const recoveredTwice = flaky((call) => Recovery.recover(call))
const retriedTwice = flaky((call) => Effect.retry(call, schedule))

const error = new Error("failed")
const promise = () => {
  let failures = 0
  return () => failures++ < 2 ? Promise.reject(error) : Promise.resolve(1)
}
const atOnce = retry(handleAll, { maxAttempts: 2, backoff: new ConstantBackoff(0) })

/** What a recovery costs a call that succeeds at once, and one that fails twice. */
export const groups: ReadonlyArray<Group> = [
  {
    name: "success, a thousand in one fiber",
    base: { name: "Effect.succeed", run: inFiber(ok) },
    cases: [{ name: "recover", run: inFiber(recovered), goal: 8 }, { name: "Effect.retry", run: inFiber(retried) }]
  },
  {
    name: "success, a thousand in one fiber, beside Effect.retry",
    base: { name: "Effect.retry", run: inFiber(retried) },
    cases: [{ name: "recover", run: inFiber(recovered), goal: 0.25 }]
  },
  {
    name: "success through Effect.runPromise",
    base: { name: "Effect.succeed", run: () => Effect.runPromise(ok) },
    cases: [
      { name: "recover", run: () => Effect.runPromise(recovered) },
      { name: "Effect.retry", run: () => Effect.runPromise(retried) }
    ]
  },
  {
    name: "two failures, then success, no wait, a thousand in one fiber",
    base: { name: "Effect.retry, the same schedule", run: inFiber(retriedTwice) },
    cases: [{ name: "recover", run: inFiber(recoveredTwice), goal: 0.7 }]
  },
  {
    name: "two failures, then success, no wait, from a promise",
    base: { name: "Effect.retry, the same schedule", run: () => Effect.runPromise(retriedTwice) },
    cases: [
      { name: "recover", run: () => Effect.runPromise(recoveredTwice), goal: 0.7 },
      { name: "cockatiel", run: () => atOnce.execute(promise()) },
      { name: "p-retry", run: () => pRetry(promise(), { retries: 2, minTimeout: 0 }) }
    ]
  }
]
