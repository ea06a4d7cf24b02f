// A provider in a process of its own, so that it does not take the time of what is measured: one that answers well, or, told
// `faults`, one whose answers are streams that fail at random. It ends with its standard input.
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"

/** What it says where it says something at length. */
export const SPOKEN = "It says what it has to say, and then it stops. ".repeat(4)

const upTo = (most: number): number => Math.floor(Math.random() * most)

const steps: ReadonlyArray<() => Provider.Step> = [
  () => Provider.good(SPOKEN),
  () => Provider.paced(Provider.good(SPOKEN), { bytes: 1 + upTo(400), every: 0 }),
  () => Provider.paced(Provider.good(SPOKEN), { bytes: 50 + upTo(400), every: 1 }),
  () => Provider.answer(529, { body: { error: { type: "overloaded_error" } } }),
  () => Provider.answer(429, { headers: { "retry-after-ms": String(upTo(50)) }, body: {} }),
  () => Provider.reset,
  () => Provider.cut(Provider.good(SPOKEN), Math.random()),
  () => Provider.cutAfter(upTo(4_000), Provider.good(SPOKEN), "reset"),
  () => Provider.ends("nothing", { text: SPOKEN, kept: upTo(12) }),
  () => Provider.ends("error", { text: SPOKEN, kept: upTo(12) }),
  () => Provider.ends("failure", { text: SPOKEN, kept: upTo(12) }),
  () => Provider.stalled(Provider.good(SPOKEN), Math.random()),
  () => Provider.keepAlive(20),
  () => Provider.silent
]

const scripted = (length: number): ReadonlyArray<Provider.Step> =>
  Array.from({ length }, () => {
    const step = Math.random() < 0.5 ? Provider.good(SPOKEN) : steps[upTo(steps.length)]?.()
    return step ?? Provider.good(SPOKEN)
  })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdin.resume().on("end", () => process.exit(0))
  await Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Provider.make(), ({ play, url }) => {
        const fails = process.argv[2] === "faults"
        // its record of the requests is dropped with each script
        const on: Effect.Effect<never> = Effect.suspend(() =>
          Effect.zipRight(
            fails ? play(...scripted(20_000)) : Effect.void,
            Effect.zipRight(Effect.sleep("4 seconds"), on)
          )
        )
        console.log(url)
        return on
      })
    )
  )
}
