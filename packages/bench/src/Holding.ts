import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import type { Group } from "./Bench.ts"

const LOOP = 1_000
const account = Redacted.make("a key")
const free: Hold.Target = { account, model: "free" }

const refusal = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "3600" } }, { received: Date.now() })

/** A hold that knows so many refusals, none of which concerns `free`. */
const holding = async (size: number) => {
  const runtime = ManagedRuntime.make(Hold.layerMemory)
  const hold = await runtime.runPromise(Hold.Hold)
  await runtime.runPromise(Effect.zipRight(
    Hold.account(account),
    Effect.forEach(Array.from({ length: size }), (_, i) => hold.settle({ account, model: `m${i}` }, refusal), {
      discard: true
    })
  ))
  return { runtime, hold }
}

/** Runs an effect a thousand times in one fiber. */
const times = (effect: Effect.Effect<unknown, unknown>) => () => {
  let i = 0
  return Effect.runSync(Effect.whileLoop({ while: () => i++ < LOOP, body: () => effect, step: () => undefined }))
}

/** What it costs to ask the hold, at several sizes, to write to it, and what it adds to a call that succeeds. */
export const groups = async (): Promise<ReadonlyArray<Group>> => {
  const all: Array<Group> = []
  for (const [size, goal] of [[10, 4], [1_000, 4], [100_000, undefined]] as const) {
    const { hold } = await holding(size)
    all.push({
      name: `the hold's check, a thousand in one fiber, at ${size} keys`,
      base: { name: "Effect.void", run: times(Effect.void) },
      cases: [{
        name: "whether a target is free",
        run: times(Effect.suspend(() => hold.isFree(free) ? Effect.void : Effect.fail("held"))),
        ...(goal === undefined ? {} : { goal })
      }]
    })
  }
  {
    const { hold } = await holding(100_000)
    // asked in another order than they were written in, and for models that are not held, as both of them are
    const keys = Array.from({ length: 100_000 }, (_, i) => `x${(i * 7_919) % 100_000}`)
    const hash = "0123456789abcdef".repeat(4)
    const map = new Map(Array.from({ length: 100_000 }, (_, i) => [`${hash}/m${i}`, i]))
    const names = keys.map((key) => `${hash}/${key}`)
    let at = 0
    const targets = keys.map((model): Hold.Target => ({ account, model }))
    all.push({
      name: "the hold's check, a thousand targets of 100,000",
      base: {
        name: "Map.get",
        run: () => {
          let found = 0
          for (let i = 0; i < LOOP; i++) if (map.get(names[at++ % names.length] ?? "") !== undefined) found++
          return found
        }
      },
      cases: [{
        name: "whether a target is free",
        run: () => {
          let found = 0
          for (let i = 0; i < LOOP; i++) if (hold.isFree(targets[at++ % targets.length] ?? free)) found++
          return found
        },
        goal: 2.5
      }]
    })
    all.push({
      name: "a write, a thousand in one fiber, at 100,000 keys",
      base: { name: "Effect.void", run: times(Effect.void) },
      cases: [{ name: "settle", run: times(hold.settle({ account, model: "m5" }, refusal)) }]
    })
  }
  const { hold } = await holding(1_000)
  const recovered = Effect.provideService(
    Effect.suspend(() => {
      let i = 0
      const one = Recovery.recover(Effect.succeed(1), { target: free })
      return Effect.whileLoop({ while: () => i++ < LOOP, body: () => one, step: () => undefined })
    }),
    Hold.Hold,
    hold
  )
  all.push({
    name: "success with the hold in it, a thousand in one fiber",
    base: { name: "Effect.succeed", run: times(Effect.succeed(1)) },
    cases: [{ name: "recover, with a target", run: () => Effect.runSync(recovered), goal: 8 }]
  })
  return all
}
