// A provider in a process of its own, so that it does not take the time of what is measured. It ends with its standard input.
import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"

process.stdin.resume().on("end", () => process.exit(0))

await Effect.runPromise(
  Effect.scoped(
    Effect.flatMap(ScriptedProvider.make(), ({ url }) => {
      console.log(url)
      return Effect.never
    })
  )
)
