/**
 * What a policy would do about a run of failures, told beforehand: a table, and a plot with the band that jitter leaves.
 *
 * @since 0.1.0
 */
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import Table from "cli-table3"
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { type Named, type Screen, span } from "./Explain.ts"
import { InputInvalid } from "./Input.ts"

const received = 0

const words: { readonly [word: string]: () => Fault.Fault } = {
  reset: () => Diagnosis.fromUnknown({ message: "read ECONNRESET", code: "ECONNRESET" }, { received }),
  timeout: () => Diagnosis.fromUnknown({ name: "TimeoutError", message: "timed out" }, { received }),
  cut: () => Diagnosis.fromFrame({ choices: [{ delta: {}, finish_reason: null }] }, { received }),
  malformed: () => Diagnosis.fromFrame({ candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] }, { received })
}

const one = (text: string): Either.Either<Fault.Fault, InputInvalid> => {
  const invalid = (mend: string) => Either.left(new InputInvalid({ field: `--faults ${text}`, mend }))
  const word = Object.hasOwn(words, text) ? words[text] : undefined
  if (word !== undefined) return Either.right(word())
  const [, status, wait] = /^([1-5]\d\d)(?::(.+))?$/.exec(text) ?? []
  if (status === undefined) {
    return invalid(`a status, with or without a wait (429:20s), or one of ${Object.keys(words).join(", ")}`)
  }
  const fault = Diagnosis.fromResponse(
    { status: Number(status), headers: wait === undefined ? {} : { "retry-after": wait } },
    { received }
  )
  return wait !== undefined && fault.resetsAt === undefined
    ? invalid("not a wait; write 20s, 250ms or 6m0s, at most 32 days")
    : Either.right(fault)
}

/**
 * Reads a run of failures: `429:20s,529,reset`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const faults = (text: string): Either.Either<ReadonlyArray<Fault.Fault>, InputInvalid> =>
  Either.all(text.split(",").map((part) => one(part.trim())))

/** The worst of each kind that has a tier: the same failure until the tier is spent. */
const worst = (
  policy: RetryPolicy.RetryPolicy
): ReadonlyArray<readonly [title: string, run: ReadonlyArray<Fault.Fault>]> =>
  (["529", "429", "malformed"] as const).map((text) => {
    const fault = Either.getOrThrow(one(text))
    const most = Math.max(...Object.values(policy.tiers).map(({ attempts }) => attempts))
    return [`${text}, again and again`, Array.from({ length: most + 1 }, () => fault)]
  })

const range = (least: Duration.Duration, most: Duration.Duration): string =>
  Duration.equals(least, most) ? span(most) : `${span(least)} to ${span(most)}`

const endings: { readonly [E in RetryPolicy.Ended]: string } = {
  tag: "given back: the policy does not retry this kind",
  deferred: "given back at once: its reset is past the policy's patience",
  tier: "given back: its tier is spent",
  time: "given back: the total time would run out"
}

interface Lane {
  readonly label: string
  readonly least: number
  readonly most: number
}

/** One attempt a line: where on the axis it begins, at the least and at the most. */
const plot = (lanes: ReadonlyArray<Lane>, end: number, screen: Screen): ReadonlyArray<string> => {
  const label = Math.max(...lanes.map((lane) => lane.label.length))
  const width = Math.max(24, Math.min(screen.width, 110) - label - 5)
  const at = (millis: number): number => end === 0 ? 0 : Math.round(millis / end * (width - 1))
  const rows = lanes.map((lane) => {
    const from = at(lane.least)
    const to = at(lane.most)
    const band = to > from ? "░".repeat(to - from) : ""
    return `  ${screen.colors.dim(lane.label.padEnd(label))} │${" ".repeat(from)}${screen.colors.yellow(band)}${
      screen.colors.bold("●")
    }`
  })
  const right = span(end)
  return [
    ...rows,
    `  ${" ".repeat(label)} └${"─".repeat(width - right.length - 1)} ${right}`,
    `  ${screen.colors.dim("● at the latest, ░ as early as jitter may have it; attempts taken as taking no time")}`
  ]
}

const lanesOf = (timeline: RetryPolicy.Timeline, name: string): ReadonlyArray<Lane> => [
  { label: `${name} attempt 1`, least: 0, most: 0 },
  ...timeline.steps.map(({ begins }, i) => ({
    label: `${name} attempt ${i + 2}`,
    least: Duration.toMillis(begins.least),
    most: Duration.toMillis(begins.most)
  }))
]

const table = (run: ReadonlyArray<Fault.Fault>, timeline: RetryPolicy.Timeline, { policy }: Named): string => {
  const rows = new Table({
    head: ["attempt", "fails with", "tier", "wait", "the next begins after"],
    style: { head: [], border: [] }
  })
  timeline.steps.forEach(({ begins, fault, least, most, named, tier }, i) => {
    rows.push([
      String(i + 1),
      fault._tag,
      tier,
      `${range(least, most)}${
        named ? policy.tiers[tier]?.wait === "atLeast" ? ", named, at least the curve" : ", named" : ""
      }`,
      range(begins.least, begins.most)
    ])
  })
  const last = run[timeline.steps.length]
  const n = String(timeline.steps.length + 1)
  rows.push(
    timeline.ended === undefined || last === undefined
      ? [n, "answers", "", "", ""]
      : [n, last._tag, "", endings[timeline.ended], ""]
  )
  return rows.toString()
}

/**
 * The table and the plot of a run under one policy, or under two side by side on one axis. Without a run it shows the worst:
 * one kind of failure until its tier is spent.
 *
 * @category conversions
 * @since 0.1.0
 */
export const text = (
  policies: readonly [Named, ...ReadonlyArray<Named>],
  run: Option.Option<ReadonlyArray<Fault.Fault>>,
  screen: Screen
): string => {
  const runs = Option.match(run, {
    onNone: () => worst(policies[0].policy),
    onSome: (faults) => [["", faults] as const]
  })
  return runs.map(([title, faults]) => {
    const told = policies.map((named) => {
      const needed = Option.isSome(run) ? faults : worst(named.policy).find(([other]) => other === title)?.[1] ?? faults
      return { named, needed, timeline: RetryPolicy.timeline(named.policy, needed) }
    })
    const lanes = told.flatMap(({ named, timeline }) => lanesOf(timeline, policies.length > 1 ? named.name : ""))
      .map((lane) => ({ ...lane, label: lane.label.trim() }))
    const end = Math.max(...lanes.map(({ most }) => most))
    return [
      ...(title === "" ? [] : [screen.colors.bold(title)]),
      ...told.flatMap(({ named, needed, timeline }) => [
        `${screen.colors.bold(named.name)}: ${timeline.steps.length + 1} requests`,
        table(needed, timeline, named)
      ]),
      "",
      ...plot(lanes, end, screen),
      ""
    ].join("\n")
  }).join("\n")
}
