import { measure } from "mitata"

/** One thing that is measured, as a ratio to the base of its group. */
export interface Case {
  readonly name: string
  readonly run: () => unknown
  /** The most that the ratio may be, where a goal is set. */
  readonly goal?: number
}

export interface Group {
  readonly name: string
  readonly base: Case
  readonly cases: ReadonlyArray<Case>
}

export interface Row {
  readonly group: string
  readonly name: string
  /** Median over the rounds, in nanoseconds. */
  readonly nanos: number
  /** What is printed where the figure is no time. */
  readonly shown?: string
  /** The median of the rounds' own ratios to the base. */
  readonly ratio: number
  readonly goal: number | undefined
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] ?? 0 : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** Nanoseconds for which a case is run before it counts. */
const WARM_UP = 600_000_000

/**
 * Measures the cases of a group interleaved, round by round, so that whatever else the machine does falls on all of
 * them; each ratio is taken within its round.
 */
export const group = async ({ base, cases, name }: Group, rounds = 9): Promise<ReadonlyArray<Row>> => {
  const all = [base, ...cases]
  const nanos = all.map((): Array<number> => [])
  // an engine compiles what it has seen often enough, and more code takes it longer
  for (const { run } of all) await measure(run, { min_cpu_time: WARM_UP })
  for (let round = 0; round < rounds; round++) {
    for (const [i, { run }] of all.entries()) {
      const { p50 } = await measure(run, { min_cpu_time: 60_000_000, min_samples: 24 })
      nanos[i]?.push(p50)
    }
  }
  return all.map((one, i) => ({
    group: name,
    name: one.name,
    nanos: median(nanos[i] ?? []),
    ratio: median((nanos[i] ?? []).map((value, round) => value / (nanos[0]?.[round] ?? 1))),
    goal: one.goal
  }))
}
