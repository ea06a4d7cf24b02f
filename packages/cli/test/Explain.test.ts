import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import type * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Main from "../src/Main.ts"

const bin = fileURLToPath(new URL("../dist/bin.js", import.meta.url))
const examples = fileURLToPath(new URL("../examples", import.meta.url))
const corpus = fileURLToPath(new URL("../../core/test/corpus/faults.jsonl", import.meta.url))

// whatever the terminal or the runner asks of colours
const { FORCE_COLOR: _, NO_COLOR: __, ...env } = process.env
delete process.env["FORCE_COLOR"]
delete process.env["NO_COLOR"]

const run = (args: ReadonlyArray<string>, input = "", colours: NodeJS.ProcessEnv = {}) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args], {
    input,
    encoding: "utf8",
    env: { ...env, ...colours }
  })
  return { status, stderr, stdout }
}

/** The same without a process of its own, for what standard input and output have no part in. */
const inProcess = async (args: ReadonlyArray<string>) => {
  const printed = { log: "", error: "" }
  const base = await Effect.runPromise(Effect.console)
  const unsafe: Console.UnsafeConsole = {
    ...globalThis.console,
    log: (...line) => {
      printed.log += `${line.join(" ")}\n`
    },
    error: (...line) => {
      printed.error += `${line.join(" ")}\n`
    }
  }
  const print = (to: "log" | "error") => (...line: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      printed[to] += `${line.join(" ")}\n`
    })
  const exit = await Effect.runPromiseExit(
    Main.main(["node", "recourse", ...args]).pipe(
      Effect.withConsole({ ...base, log: print("log"), error: print("error"), unsafe }),
      Effect.provide(NodeContext.layer)
    )
  )
  return { status: Exit.isSuccess(exit) ? 0 : 2, stderr: printed.error, stdout: printed.log }
}

const tag = (args: ReadonlyArray<string>, input = ""): string | null => {
  const { status, stdout } = run(["explain", "--json", ...args], input)
  assert.strictEqual(status, 0)
  return JSON.parse(stdout).tag
}

describe("recourse explain", () => {
  const inputs: ReadonlyArray<
    readonly [form: string, wanted: string | null, input: string, ...args: ReadonlyArray<string>]
  > = [
    [
      "an answer as curl -i prints it",
      "Overloaded",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 529 \r\ncontent-type: application/json\r\n\r\n{\"error\":{}}"
    ],
    [
      "a saved response as JSON",
      "RateLimited",
      "{\"status\":429,\"headers\":{\"retry-after\":\"3\"},\"body\":{\"error\":{}}}"
    ],
    ["a body and its status", "Unavailable", "{\"error\":{\"message\":\"x\"}}", "--status", "503"],
    ["an empty body and its status", "RateLimited", "", "--status", "429"],
    ["a body alone, read as a frame", "Overloaded", "{\"error\":{\"type\":\"overloaded_error\"}}"],
    [
      "a thrown error as JSON",
      "Unreachable",
      "{\"name\":\"TypeError\",\"message\":\"fetch failed\",\"cause\":{\"code\":\"ECONNRESET\"}}"
    ],
    ["the text of a thrown error", "Unreachable", "Error: socket hang up"],
    [
      "a row",
      "TimedOut",
      "{\"id\":\"a\",\"received\":\"2026-01-10T10:00:00Z\",\"source\":{\"kind\":\"response\",\"status\":408}}"
    ],
    [
      "an event stream with an error",
      "Overloaded",
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
    ],
    ["an event stream that broke off", "StreamCut", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":null}]}\n\n"],
    [
      "an event stream that failed with a stop reason",
      "GenerationMalformed",
      "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\n\n"
    ],
    [
      "a whole event stream",
      null,
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
    ],
    ["an event stream after a head", "StreamCut", "HTTP/1.1 200 OK\n\ndata: {\"choices\":[]}\n\n"],
    ["a good answer", null, "HTTP/1.1 200 OK\n\n{\"choices\":[{\"finish_reason\":\"length\"}]}"],
    ["a good answer without a status", null, "{\"choices\":[{\"finish_reason\":\"stop\"}]}"],
    [
      "lines of JSON that end",
      null,
      "{\"model\":\"l\",\"done\":false}\n{\"model\":\"l\",\"done\":true,\"done_reason\":\"stop\"}\n"
    ],
    [
      "lines of JSON that break off",
      "StreamCut",
      "{\"model\":\"l\",\"done\":false}\n{\"model\":\"l\",\"done\":false}\n"
    ],
    ["a form that was named", "Unrecognized", "{\"name\":\"x\",\"message\":\"y\"}", "--as", "thrown"]
  ]
  const plain = inputs.filter(([, , , ...args]) => args.length === 0)

  it("reads every form that it detects, one object a file", () => {
    const folder = mkdtempSync(join(tmpdir(), "recourse-explain-"))
    const files = plain.map(([form, , input]) => {
      const file = join(folder, form.replaceAll(" ", "-"))
      writeFileSync(file, input)
      return file
    })
    const { status, stdout } = run(["explain", "--json", ...files])
    rmSync(folder, { recursive: true })
    assert.strictEqual(status, 0)
    const tags = stdout.trim().split("\n").map((line) => JSON.parse(line).tag)
    assert.deepStrictEqual(
      plain.map(([form], i) => [form, tags[i]]),
      plain.map(([form, wanted]) => [form, wanted])
    )
  })

  it("reads standard input", () => {
    assert.strictEqual(tag([], plain[0]?.[2]), plain[0]?.[1])
  })

  for (const [form, wanted, input, ...args] of inputs) {
    if (args.length === 0) continue
    it(`reads ${form} as ${wanted ?? "no fault"}`, () => {
      assert.strictEqual(tag(args, input), wanted)
    })
  }

  it("takes options on either side of the files, and several files", async () => {
    const { status, stdout } = await inProcess([
      "explain",
      `${examples}/socket-reset.json`,
      "--policy",
      "brisk",
      `${examples}/gateway-502.http`
    ])
    assert.strictEqual(status, 0)
    assert.include(stdout, "socket-reset.json")
    assert.include(stdout, "an HTML page titled \"502 Bad Gateway\"")
    assert.include(stdout, "backing off from 750ms to 8s")
  })

  it("prints the readout, the remedy, the reset and every convention that it read or refused", async () => {
    const { stdout } = await inProcess(["explain", `${examples}/openai-429-minute.http`])
    for (
      const text of [
        "RateLimited",
        "rate_limit_exceeded",
        "retry after 20s",
        "x-ratelimit-reset-requests 20s: names a reset",
        "x-ratelimit-reset-tokens 165ms: the window has something left",
        "in 19s"
      ]
    ) {
      assert.include(stdout.replace(/in (?:19|20)s/, "in 19s"), text)
    }
    assert.notInclude(stdout, "\u001b")
    assert.notInclude(stdout, "org-Ab3dE6gH")
  })

  it("counts from --received, else from the date header", () => {
    const dated = "HTTP/1.1 429 x\ndate: Sat, 10 Jan 2026 10:00:00 GMT\nretry-after: 5\n\n"
    const at = (...args: ReadonlyArray<string>) =>
      JSON.parse(run(["explain", "--json", ...args], dated).stdout).resetsAt
    assert.strictEqual(at(), "2026-01-10T10:00:05.000Z")
    assert.strictEqual(at("--received", "2026-02-01T00:00:00Z"), "2026-02-01T00:00:05.000Z")
  })

  const wrong: ReadonlyArray<readonly [why: string, args: ReadonlyArray<string>, input: string, mend: RegExp]> = [
    ["no such file", ["explain", "nowhere.json"], "", /^nowhere\.json: no such file\n$/],
    ["a folder", ["explain", "."], "", /^\.: not a file/],
    ["one row of several", ["explain", "--as", "row"], "{\"source\":1}\n", /input: row 1, received/],
    ["nothing at all", ["explain"], " ", /empty.*--status/],
    ["half of a row", ["explain", "--as", "row"], "{\"id\":", /not JSON/],
    [
      "a row of no known kind",
      ["explain"],
      "{\"received\":\"2026-01-10T10:00:00Z\",\"source\":{\"kind\":\"rumour\"}}",
      /source\.kind: /
    ],
    [
      "a row without an instant",
      ["explain"],
      "{\"received\":\"soon\",\"source\":{\"kind\":\"response\"}}",
      /received: /
    ],
    ["a response without a status line", ["explain", "--as", "response"], "retry-after: 3\n\n", /status line/]
  ]
  it.each(wrong)("ends with status 2 and one line: %s", async (_, args, input, mend) => {
    const folder = mkdtempSync(join(tmpdir(), "recourse-explain-"))
    const file = join(folder, "input")
    writeFileSync(file, input)
    const { status, stderr, stdout } = await inProcess(input === "" ? args : [...args, file])
    rmSync(folder, { recursive: true })
    assert.strictEqual(status, 2)
    assert.strictEqual(stdout, "")
    assert.match(stderr, mend)
    assert.strictEqual(stderr.trim().split("\n").length, 1)
  })

  it("ends with status 2 where standard input cannot be read, and says that it was that", () => {
    const { status, stderr, stdout } = run(["explain"])
    assert.deepStrictEqual([status, stdout], [2, ""])
    assert.match(stderr, /^standard input: .*empty.*--status/)
  })

  const options: ReadonlyArray<readonly [args: ReadonlyArray<string>, mend: RegExp]> = [
    [["--policy", "hasty", "x"], /standard, brisk, persistent, cautious/],
    [["--status", "9000", "x"], /--status: a number from 100 to 599/],
    [["--status", "abc", "x"], /--status: a number from 100 to 599/],
    [["--received", "yesterday", "x"], /--received: an instant/],
    [["x", "--foo"], /--foo: there is no such option/],
    [["x", "--policy"], /--policy: it needs a value/]
  ]
  for (const [args, mend] of options) {
    it(`an option that cannot be ends with status 2 and its mend: ${args.join(" ")}`, async () => {
      const { status, stderr } = await inProcess(["explain", ...args])
      assert.strictEqual(status, 2)
      assert.match(stderr, mend)
    })
  }
})

describe("recourse explain --jsonl", () => {
  it("answers every row in order, and a bad line in its place", () => {
    const rows = readFileSync(corpus, "utf8").trim().split("\n").slice(0, 5)
    const { status, stdout } = run(
      ["explain", "--jsonl"],
      [rows[0], "{oops", "{\"id\":\"odd\"}", ...rows.slice(1)].join("\n")
    )
    const answers = stdout.trim().split("\n").map((line) => JSON.parse(line))
    assert.strictEqual(status, 2)
    assert.deepStrictEqual(
      answers.map(({ id }) => id),
      [JSON.parse(rows[0] ?? "").id, null, "odd", ...rows.slice(1).map((row) => JSON.parse(row).id)]
    )
    assert.match(answers[1].error, /^line 2: /)
    assert.match(answers[2].error, /^line 3: /)
    assert.deepStrictEqual(Object.keys(answers[0]), [
      "id",
      "tag",
      "remedy",
      "tier",
      "limit",
      "resetsAt",
      "waitMs",
      "because"
    ])
  })

  it("reads 100,000 rows in a heap that could not hold them", async () => {
    const rows = readFileSync(corpus, "utf8")
    const count = rows.trim().split("\n").length
    const child = spawn(process.execPath, ["--max-old-space-size=48", bin, "explain", "--jsonl"], {
      stdio: ["pipe", "pipe", "inherit"]
    })
    const times = Math.ceil(100_000 / count)
    const written = (async () => {
      for (let i = 0; i < times; i++) {
        if (!child.stdin.write(rows)) await new Promise((resolve) => child.stdin.once("drain", resolve))
      }
      child.stdin.end()
    })()
    let lines = 0
    for await (const chunk of child.stdout) for (const byte of chunk) if (byte === 10) lines++
    await written
    const status = await new Promise((resolve) =>
      child.exitCode === null ? child.once("exit", resolve) : resolve(child.exitCode)
    )
    assert.strictEqual(status, 0)
    assert.strictEqual(lines, times * count)
    assert.isAbove(rows.length * times, 48 * 1_024 * 1_024)
  }, 120_000)
})

describe("recourse alone", () => {
  it("plays its scenes, and prints a tour that shows every example", () => {
    const tour = execFileSync(process.execPath, [bin], { encoding: "utf8", env })
    assert.include(tour, "npm start -- explain")
    assert.strictEqual(readdirSync(examples).length, tour.split("├").length - 1)

    // before it, four calls that fail, one line an attempt, and nothing that only a terminal can show
    const [, ...scenes] = (tour.split("Recourse tells")[0] ?? "").split(/\n\d {2}/)
    assert.isFalse(tour.includes("\r") || tour.includes("\u001B"))
    assert.deepStrictEqual(
      scenes.map((scene) => [...scene.matchAll(/^ {3}(?:attempt \d|sibling) +(\S+)/gm)].map(([, what]) => what)),
      [["RateLimited", "“Here"], ["Overloaded", "Overloaded", "“Here"], ["“A"], ["RateLimited", "RateLimited"]]
    )
    assert.match(scenes[0] ?? "", /waits 2\.0s, as the provider asked/)
    assert.match(scenes[2] ?? "", /”\n +Unreachable +the stream ends as Stalled/)
    assert.match(scenes[3] ?? "", /sibling +RateLimited +answered by the hold/)
    assert.deepStrictEqual(
      scenes.map((scene) => /the provider saw (\d)/.exec(scene)?.[1]),
      ["2", "3", "1", "1"]
    )
    assert.strictEqual(tour.match(/^ {3}\d [━·×◐●○ ]+$/gm)?.length, 4)
  })
})

describe("colours", () => {
  const escaped = (colours: NodeJS.ProcessEnv): boolean => run(["plan"], "", colours).stdout.includes("\u001b")

  it("are for a terminal, and for whoever asks", () => {
    assert.isFalse(escaped({ CI: "1" }))
    assert.isTrue(escaped({ FORCE_COLOR: "1" }))
    assert.isFalse(escaped({ FORCE_COLOR: "0" }))
    assert.isFalse(escaped({ FORCE_COLOR: "1", NO_COLOR: "1" }))
  })
})

describe("recourse plan", () => {
  it("tells the waits of a run, as a table and as a plot", async () => {
    const { status, stdout } = await inProcess(["plan", "--policy", "brisk", "--faults", "429:20s,529,reset"])
    assert.strictEqual(status, 0)
    for (const text of ["brisk: 4 requests", "20s, named", "0 to 750ms", "answers", "attempt 4 │", "22s 250ms"]) {
      assert.include(stdout, text)
    }
    assert.notInclude(stdout, "\u001b")
  })

  it("shows the worst of each kind where no run is given", async () => {
    const { stdout } = await inProcess(["plan", "--policy", "persistent"])
    assert.include(stdout, "persistent: 10 requests")
    assert.include(stdout, "malformed, again and again\npersistent: 1 requests")
  })

  it("draws a second policy on the same axis", async () => {
    const { stdout } = await inProcess(["plan", "--versus", "cautious", "--faults", "529,429:5m"])
    assert.include(stdout, "standard attempt 2 │")
    assert.include(stdout, "cautious attempt 3 │")
    assert.include(stdout, "its reset is past the policy's patience")
  })

  it("refuses what is no failure, with its mend", async () => {
    for (const faults of ["429:soon", "teapot", "529,,"]) {
      const { status, stderr } = await inProcess(["plan", "--faults", faults])
      assert.strictEqual(status, 2)
      assert.match(stderr, /^--faults .*: /)
    }
  })
})
