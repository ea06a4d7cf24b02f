/**
 * Half a minute of what the library does: a handful of real failures and what can be done about each.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Fault from "@recourse/core/Fault"
import * as Readout from "@recourse/core/Readout"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import Table from "cli-table3"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import * as Explain from "./Explain.ts"
import * as Input from "./Input.ts"

const examples = fileURLToPath(new URL("../examples", import.meta.url))

const shown: ReadonlyArray<readonly [file: string, story: string]> = [
  ["openai-429-minute.http", "429: three requests a minute, all used"],
  ["codex-429-plan.http", "429: the plan's allowance is spent"],
  ["openai-429-no-credit.http", "429, retry-after 1: but the credit is gone"],
  ["anthropic-overloaded.sse", "an error frame in a stream that began with 200"],
  ["openai-cut.sse", "a stream that just stops, without [DONE]"],
  ["groq-400-tool-use.http", "400 \"adjust your prompt\": a bad sample, not a bad request"],
  ["gemini-400-too-long.http", "400: 1.2 million tokens into a window of 1 million"],
  ["gateway-502.http", "502: an HTML page where JSON was promised"],
  ["socket-reset.json", "TypeError: fetch failed"]
]

const named: Explain.Named = { name: "standard", policy: RetryPolicy.standard }

/**
 * Prints the tour.
 *
 * @category constructors
 * @since 0.1.0
 */
export const print = (screen: Explain.Screen) =>
  Effect.gen(function*() {
    const { colors } = screen
    const fs = yield* FileSystem.FileSystem
    const width = Math.min(Math.max(screen.width, 80), 110)
    const table = new Table({
      head: ["what came back", "what it means", "what to do about it"],
      colWidths: [34, 22, width - 60],
      wordWrap: true,
      style: { head: [], border: [] }
    })
    for (const [file, story] of shown) {
      const text = yield* fs.readFileString(`${examples}/${file}`)
      const readings = yield* Input.read(text, { received: screen.now, now: screen.now })
      for (const { found } of readings) {
        if (!Fault.isFault(found)) continue
        const shade = Fault.isRetryable(found._tag) ? colors.yellow : colors.red
        const next = Readout.fromFault(found).fields.find(({ label }) => label === "next")?.value
        table.push([
          story,
          shade(found._tag),
          Fault.isRetryable(found._tag) ? Explain.remedy(found, named) : `surface it. ${String(next)}`
        ])
      }
    }
    yield* Console.log([
      "",
      `${
        colors.bold("Recourse")
      } tells a program what it can do about a failed language-model call: retry it, defer it`,
      "to the reset, or surface it. It reads the failure's structure, not its wording:",
      "",
      table.toString(),
      "",
      "Each row is a file under packages/cli/examples. Try next:",
      "",
      `  ${
        colors.cyan("npm start -- explain packages/cli/examples/openai-429-minute.http")
      }   all that was read, and why`,
      `  ${colors.cyan("npm start -- explain packages/cli/examples/*.sse --policy cautious")}  under another policy`,
      `  ${colors.cyan("curl -si https://your.provider/… | npm start -- explain")}             a failure of your own`,
      ""
    ].join("\n"))
  })
