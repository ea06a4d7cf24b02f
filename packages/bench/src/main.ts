import Table from "cli-table3"
import * as Bench from "./Bench.ts"
import * as Reading from "./Reading.ts"

const json = process.argv.includes("--json")

const shape = (nanos: number): string =>
  nanos < 1_000
    ? `${nanos.toFixed(0)} ns`
    : nanos < 1e6
    ? `${(nanos / 1_000).toFixed(2)} µs`
    : `${(nanos / 1e6).toFixed(2)} ms`

const verdict = (ratio: number, goal: number | undefined): string =>
  goal === undefined ? "" : `${ratio <= goal ? "met" : "missed"} (at most ${goal})`

const rows: Array<Bench.Row> = []
for (const group of Reading.groups) rows.push(...await Bench.group(group))

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
rows.push(...growth)

if (json) console.log(JSON.stringify({ node: process.version, rows }))
else {
  for (const group of new Set(rows.map((row) => row.group))) {
    const table = new Table({ head: [group, "time", "ratio", "goal"], style: { head: [], border: [] } })
    for (const row of rows) {
      if (row.group === group) {
        table.push([row.name, shape(row.nanos), row.ratio.toFixed(2), verdict(row.ratio, row.goal)])
      }
    }
    console.log(table.toString())
  }
}
