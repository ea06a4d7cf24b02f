// A fleet of callers through one limited model, on a clock that is counted and not spent.
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Pacer from "@recourse/platform/Pacer"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"

const FIBERS = 200
const CALLS = 5
const BUCKET = 60
const TAKES = 500
/** The bucket is spent at once, and every other call waits for a token of its own. */
const OPTIMUM = (FIBERS * CALLS - BUCKET) * 1_000 + TAKES

interface Outcome {
  readonly lost: number
  readonly refusals: number
  readonly makespan: number
}

/** 60 requests a minute: a bucket that is refilled one a second, and says in whole seconds when the next one is there. */
const limited = () => {
  let tokens = BUCKET
  let at = 0
  let refusals = 0
  const ask = Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<void, Fault.Fault> => {
    tokens = Math.min(BUCKET, tokens + (now - at) / 1_000)
    at = now
    if (tokens >= 1) {
      tokens -= 1
      return Effect.sleep(TAKES)
    }
    refusals++
    return Effect.fail(
      Diagnosis.fromResponse(
        { status: 429, headers: { "retry-after": String(Math.ceil(1 - tokens)) } },
        { received: now }
      )
    )
  })
  return { ask, refused: () => refusals }
}

const target = { account: Redacted.make("a fleet"), model: "a-model" }

const run = (policy: RetryPolicy.RetryPolicy, gate: "open" | "wait", paced = false): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const pacer = yield* Pacer.Pacer
    const server = limited()
    let lost = 0
    let last = 0
    yield* Hold.account(target.account)
    const call = (paced ? pacer.paced(server.ask, target) : server.ask).pipe(
      Recovery.recover({ target, gate, policy }),
      Effect.matchEffect({
        onFailure: () => Effect.sync(() => void lost++),
        onSuccess: () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            last = now
          })
      })
    )
    const fleet = yield* Effect.fork(
      Effect.forEach(
        Array.from({ length: FIBERS }),
        () => Effect.forEach(Array.from({ length: CALLS }), () => call, { discard: true }),
        { concurrency: "unbounded", discard: true }
      )
    )
    while (Option.isNone(yield* Fiber.poll(fleet))) yield* TestClock.adjust("1 minute")
    return { lost, refusals: server.refused(), makespan: last }
  }).pipe(
    Effect.provide(Hold.layerMemory),
    Effect.provide(Pacer.layer({ requestsPerMinute: BUCKET })),
    Effect.withRandom(Random.make("a fleet")),
    Effect.provide(TestContext.TestContext)
  )

const policies = {
  standard: RetryPolicy.standard,
  brisk: RetryPolicy.brisk,
  persistent: RetryPolicy.persistent,
  cautious: RetryPolicy.cautious
}

console.log("| policy | gate | calls lost of 1,000 | refusals per success | makespan over the optimum |")
console.log("| --- | --- | --- | --- | --- |")
for (const [name, policy] of Object.entries(policies)) {
  for (const [gate, paced] of [["open", false], ["wait", false], ["wait", true]] as const) {
    const patient = { ...policy, within: Option.some(Duration.hours(1)) }
    const { lost, makespan, refusals } = await Effect.runPromise(run(patient, gate, paced))
    const succeeded = FIBERS * CALLS - lost
    console.log(
      `| ${name} | ${gate}${paced ? ", paced" : ""} | ${lost} | ${(refusals / succeeded).toFixed(2)} | ${
        lost === 0 ? (makespan / OPTIMUM).toFixed(2) : "–"
      } |`
    )
  }
}
