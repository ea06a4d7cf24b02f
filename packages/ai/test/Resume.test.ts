import { assert, describe, it } from "@effect/vitest"
import * as Provider from "@recourse/testing/ScriptedProvider"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("./resuming.ts", import.meta.url))

const refused = (seconds: number) =>
  Provider.answer(429, { headers: { "retry-after": String(seconds) }, body: { error: { message: "later" } } })

/** The process of `resuming.ts`: what it has said, a line each, and what waits for a line. */
const started = (url: string, state: string) => {
  const child = spawn(process.execPath, ["--import", "tsx", "--conditions", "@recourse/source", script, url, state], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const lines: Array<string> = []
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n")
    rest = parts.pop() ?? ""
    lines.push(...parts)
  })
  const closed = once(child, "close")
  const said = async (line: string): Promise<void> => {
    while (!lines.includes(line)) {
      await Promise.race([once(child.stdout, "data"), closed.then(() => assert.fail(`it ended: ${lines.join("; ")}`))])
    }
  }
  return { lines, said, kill: () => child.kill("SIGKILL"), closed }
}

describe.concurrent("Resume, over real sockets and real time", () => {
  it("a conversation that is refused goes on at the reset", { timeout: 60_000 }, async () => {
    const provider = await Provider.start()
    const state = mkdtempSync(join(tmpdir(), "recourse-resume-"))
    provider.play(refused(2), Provider.good("All of it."))
    const { closed, lines } = started(provider.url, state)
    await closed
    assert.deepStrictEqual(lines, ["refused, 1 sent", "waiting", "woken: the conversation", "answered: All of it."])
    const [first, second] = provider.requests()
    assert.isAtLeast((second?.at ?? 0) - (first?.at ?? 0), 1_990)
    assert.include(second?.body, "Your requests were refused from")
    rmSync(state, { recursive: true })
    await provider.close()
  })

  it(
    "also where the process was killed meanwhile: its hold still stands, and it is woken",
    { timeout: 60_000 },
    async () => {
      const provider = await Provider.start()
      const state = mkdtempSync(join(tmpdir(), "recourse-resume-"))
      provider.play(refused(20), Provider.good("All of it."))
      const first = started(provider.url, state)
      await first.said("refused, 1 sent")
      // the line is said before the wake-up is written
      await new Promise((resolve) => setTimeout(resolve, 500))
      first.kill()
      await first.closed
      const second = started(provider.url, state)
      await second.closed
      assert.deepStrictEqual(second.lines, [
        "refused, 0 sent",
        "waiting",
        "woken: the conversation",
        "answered: All of it."
      ])
      const [refusal, answer, ...more] = provider.requests()
      assert.isAtLeast((answer?.at ?? 0) - (refusal?.at ?? 0), 19_900)
      assert.lengthOf(more, 0)
      rmSync(state, { recursive: true })
      await provider.close()
    }
  )
})
