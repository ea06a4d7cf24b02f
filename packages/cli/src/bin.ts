#!/usr/bin/env node
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Main from "./Main.ts"

// a pipe whose reader left is no failure of ours
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1))

const exit = (code: number) =>
  Effect.sync(() => {
    process.exitCode = code
  })

Main.main(process.argv).pipe(
  // what the command line got wrong has been printed by its parser
  Effect.catchAll(() => exit(2)),
  Effect.provide(NodeContext.layer),
  NodeRuntime.runMain
)
