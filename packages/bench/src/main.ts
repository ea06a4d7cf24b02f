import Table from "cli-table3"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Bench from "./Bench.ts"
import * as Holding from "./Holding.ts"
import * as Latency from "./Latency.ts"
import * as Reading from "./Reading.ts"
import * as Recovering from "./Recovering.ts"
import * as Sending from "./Sending.ts"
import type { Soaked } from "./soak.ts"
import * as Streaming from "./Streaming.ts"

const json = process.argv.includes("--json")

const shape = (nanos: number): string =>
  nanos < 1_000
    ? `${nanos.toFixed(0)} ns`
    : nanos < 1e6
    ? `${(nanos / 1_000).toFixed(2)} µs`
    : `${(nanos / 1e6).toFixed(2)} ms`

const verdict = (ratio: number, goal: number | undefined): string =>
  goal === undefined ? "" : `${ratio <= goal ? "met" : "missed"} (at most ${Number(goal.toFixed(2))})`

const all = async (groups: ReadonlyArray<Bench.Group>, rounds?: number): Promise<ReadonlyArray<Bench.Row>> => {
  const rows: Array<Bench.Row> = []
  for (const group of groups) rows.push(...await Bench.group(group, rounds))
  return rows
}

const waiting = (): ReadonlyArray<Bench.Row> => {
  const rows: Array<Bench.Row> = []
  const script = fileURLToPath(new URL("./waiters.js", import.meta.url))
  const kinds = ["Effect.sleep", "recover", "a hold's gate", "p-retry", "cockatiel"]
  const ROUNDS = 3
  const measured = kinds.map((kind) =>
    Array.from(
      { length: ROUNDS },
      (): { bytes: number; oneMicros: number; allMillis: number; releaseMillis?: number; leftBytes?: number } =>
        JSON.parse(execFileSync(process.execPath, ["--expose-gc", script, kind], { encoding: "utf8" }))
    )
  )
  const middle = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[1] ?? 0
  const waiting = [
    ["heap of a waiting caller, at 100,000", "bytes", 1, 5_000],
    ["cancelling one of 100,000 waiting callers", "oneMicros", 1_000, undefined],
    ["cancelling 100,000 waiting callers", "allMillis", 1e6, undefined]
  ] as const
  for (const [name, figure, unit, most] of waiting) {
    const base = middle((measured[0] ?? []).map((one) => one[figure]))
    for (const [i, kind] of kinds.entries()) {
      const value = middle((measured[i] ?? []).map((one) => one[figure]))
      const goal = kind !== "recover"
        ? undefined
        : most !== undefined
        ? most / base
        : figure === "allMillis"
        ? 1.2
        : undefined
      const shown = figure === "bytes" ? { shown: `${Math.round(value)} B` } : {}
      rows.push({ group: name, name: kind, nanos: value * unit, ratio: value / base, goal, ...shown })
    }
  }
  const gate = (figure: "releaseMillis" | "leftBytes"): number =>
    middle((measured[kinds.indexOf("a hold's gate")] ?? []).map((one) => one[figure] ?? 0))
  rows.push({
    group: "100,000 callers who wait at a hold's gate",
    name: "let go at once, all of them",
    nanos: gate("releaseMillis") * 1e6,
    ratio: gate("releaseMillis") / middle((measured[0] ?? []).map((one) => one.allMillis)),
    goal: undefined
  }, {
    group: "100,000 holds, each of a key of its own, once they have ended",
    name: "heap that is left, as a share of one waiting caller's each",
    nanos: 0,
    shown: `${Math.round(gate("leftBytes"))} B`,
    ratio: gate("leftBytes") / 100_000 / middle((measured[0] ?? []).map((one) => one.bytes)),
    goal: 0.01
  })
  return rows
}

const soaking = (): ReadonlyArray<Bench.Row> => {
  const rows: Array<Bench.Row> = []
  const soaked: Soaked = JSON.parse(
    execFileSync(process.execPath, ["--expose-gc", fileURLToPath(new URL("./soak.js", import.meta.url))], {
      encoding: "utf8"
    })
  )
  const { cut, failed, heap, interrupted, retries, sockets, streams, whole } = soaked
  const soak =
    `a minute of 200 streams at a time, whose requests fail at random: ${streams} streams, ${retries} retries, \
  ${whole} whole, ${cut} cut, ${failed} failed, ${interrupted} given up on`
  for (
    const [name, count] of [
      ["streams with a wrong text", soaked.wrong],
      ["unhandled rejections", soaked.unhandled],
      ["sockets that are left", Math.max(0, sockets.after - sockets.before)]
    ] as const
  ) rows.push({ group: soak, name, nanos: 0, shown: String(count), ratio: count, goal: 0 })
  rows.push({
    group: soak,
    name: "heap after it, beside the heap after the first seconds",
    nanos: 0,
    shown: `${(heap.after / 1e6).toFixed(1)} MB`,
    ratio: heap.after / heap.before,
    goal: 1.1
  })
  return rows
}

const growing = async (): Promise<ReadonlyArray<Bench.Row>> => {
  const growth: Array<Bench.Row> = []
  for (const { at, name } of Reading.growth) {
    const ratios: Array<number> = []
    let nanos = 0
    for (const group of at) {
      const [, row] = await Bench.group(group, 3)
      ratios.push(row?.ratio ?? 0)
      nanos = row?.nanos ?? 0
    }
    growth.push({
      group: "a hostile body: its ratio to JSON.parse at 1 MiB over the one at 64 KiB",
      name: `${name}: ${ratios.map((ratio) => ratio.toFixed(3)).join(", ")}`,
      nanos,
      ratio: (ratios.at(-1) ?? 0) / (ratios[0] ?? 1),
      goal: 1.5
    })
  }
  return growth
}

/** What is measured, each part in a process of its own: what one has had compiled is not what another runs on. */
const parts: { readonly [name: string]: () => Promise<ReadonlyArray<Bench.Row>> } = {
  recovering: () => all(Recovering.groups),
  waiting: () => Promise.resolve(waiting()),
  sending: async () => [...await Sending.goodPath(), ...await Sending.aborting()],
  streaming: () => all(Streaming.groups, 3),
  latency: () => Latency.rows(),
  soaking: () => Promise.resolve(soaking()),
  holding: async () => all(await Holding.groups()),
  reading: () => all(Reading.groups),
  growing
}

const part = process.argv[2]
const own = part === undefined ? undefined : parts[part]
if (own !== undefined) {
  // what was measured may hold timers
  process.stdout.write(JSON.stringify(await own()), () => process.exit(0))
} else {
  const rows: ReadonlyArray<Bench.Row> = Object.keys(parts).flatMap((name): ReadonlyArray<Bench.Row> =>
    JSON.parse(execFileSync(process.execPath, ["--expose-gc", fileURLToPath(import.meta.url), name], {
      encoding: "utf8",
      maxBuffer: 2 ** 26
    }))
  )
  if (json) console.log(JSON.stringify({ node: process.version, rows }))
  else {
    for (const group of new Set(rows.map((row) => row.group))) {
      const table = new Table({ head: [group, "time", "ratio", "goal"], style: { head: [], border: [] } })
      for (const row of rows) {
        if (row.group === group) {
          table.push([row.name, row.shown ?? shape(row.nanos), row.ratio.toFixed(2), verdict(row.ratio, row.goal)])
        }
      }
      console.log(table.toString())
    }
  }
}
