/**
 * How a reading is told: to a person as text, to a program as JSON.
 *
 * @since 0.1.0
 */
import * as Fault from "@recourse/core/Fault"
import * as Readout from "@recourse/core/Readout"
import * as Remedy from "@recourse/core/Remedy"
import type * as RetryPolicy from "@recourse/core/RetryPolicy"
import Table from "cli-table3"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Colors } from "picocolors/types.js"
import type { Reading } from "./Input.ts"

/**
 * Where it is printed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Screen {
  readonly colors: Colors
  /** In characters. */
  readonly width: number
  readonly now: Date
}

/**
 * A policy and the name by which it was asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Named {
  readonly name: string
  readonly policy: RetryPolicy.RetryPolicy
}

/**
 * A duration in its two largest units.
 *
 * @category conversions
 * @since 0.1.0
 */
export const span = (duration: Duration.DurationInput): string =>
  Duration.format(duration).split(" ").slice(0, 2).join(" ")

const local = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short"
})

/** An instant on the reader's clock, and how far it is from there. */
const instant = (at: DateTime.Utc, screen: Screen): string => {
  const left = at.epochMillis - screen.now.getTime()
  return `${local.format(DateTime.toDateUtc(at))} (${left > 0 ? `in ${span(left)}` : `${span(-left)} ago`})`
}

/**
 * What a policy makes of a fault, as a person would say it.
 *
 * @category conversions
 * @since 0.1.0
 */
export const remedy = (fault: Fault.Fault, { name, policy }: Named): string => {
  const found = Remedy.fromFault(fault, policy)
  switch (found._tag) {
    case "Surface":
      return Fault.isRetryable(fault._tag)
        ? `surface it: ${name} leaves this kind to you`
        : "surface it: asking again cannot help"
    case "Defer":
      return `defer: ${span(found.until.waitMillis)} is longer than ${name}'s patience of ${
        span(policy.patience)
      }; end now and say until when`
    case "Retry": {
      const tier = policy.tiers[found.tier]
      const counted = tier === undefined ? "" : ` (tier ${found.tier}, ${tier.attempts} attempts in all)`
      if (Option.isSome(found.wait)) {
        const { millis, reset } = found.wait.value
        return `retry after ${span(millis)}, ${
          millis < reset.waitMillis ? "as long as its patience allows" : "as the provider asked"
        }${counted}`
      }
      return tier === undefined || Duration.equals(tier.ceiling, Duration.zero)
        ? `retry at once${counted}`
        : `retry, backing off from ${span(tier.base)} to ${span(tier.ceiling)}${counted}`
    }
  }
}

/** Rows of columns without borders, the last one wrapped to what is left of the width. */
const columns = (rows: ReadonlyArray<ReadonlyArray<string>>, widths: ReadonlyArray<number>, screen: Screen): string => {
  const taken = widths.reduce((sum, width) => sum + width, 0)
  const blank = Object.fromEntries(
    [
      "top",
      "top-mid",
      "top-left",
      "top-right",
      "bottom",
      "bottom-mid",
      "bottom-left",
      "bottom-right",
      "left",
      "left-mid",
      "mid",
      "mid-mid",
      "right",
      "right-mid",
      "middle"
    ].map((name) => [name, ""])
  )
  const table = new Table({
    chars: blank,
    colWidths: [...widths, Math.max(24, Math.min(screen.width, 120) - taken)],
    wordWrap: true,
    wrapOnWordBoundary: true,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 1 }
  })
  for (const row of rows) table.push([...row])
  return table.toString().split("\n").map((line) => line.trimEnd()).join("\n")
}

const shade = (fault: Fault.Fault, { colors }: Screen): (text: string) => string =>
  Fault.isRetryable(fault._tag) ? colors.yellow : colors.red

/**
 * A reading for a person: the readout, the remedy, and every reset that was read or refused.
 *
 * @category conversions
 * @since 0.1.0
 */
export const text = ({ found }: Reading, named: Named, screen: Screen): string => {
  const { colors } = screen
  if (!Fault.isFault(found)) {
    return `${colors.green(colors.bold("No fault"))}: the answer ended with ${found.reason}${
      found._tag === "OutputCap" ? ", at its output limit; what there is of it is good" : ", as its protocol asks"
    }`
  }
  const { fields, headline } = Readout.fromFault(found)
  const told = fields.map(({ label, value }) => [
    colors.dim(`  ${label}`),
    typeof value === "string" ? value : instant(value, screen)
  ])
  const claims = found.because.slice(1).map(({ field, rule, value }) => [
    colors.dim(`  ${rule.startsWith("refused") ? "not" : "read"}`),
    `${field} ${value === "" ? "(empty)" : value}: ${rule.replace(/^refused: /, "")}`
  ])
  return [
    `${shade(found, screen)(colors.bold(found._tag))}: ${headline}`,
    columns([...told, [colors.dim("  remedy"), colors.bold(remedy(found, named))]], [15], screen),
    ...(claims.length === 0 ? [] : [colors.dim("  resets that it names"), columns(claims, [15], screen)])
  ].join("\n")
}

/**
 * A reading as one object with its file and its sentence: what `--json` prints.
 *
 * @category conversions
 * @since 0.1.0
 */
export const object = (reading: Reading, named: Named, file: string): object => ({
  file,
  ...json(reading, named),
  ...(Fault.isFault(reading.found) ? { message: reading.found.message } : {})
})

/**
 * A reading as one object: a line that `--jsonl` prints.
 *
 * @category conversions
 * @since 0.1.0
 */
export const json = ({ found, id }: Reading, { policy }: Named): object => {
  if (!Fault.isFault(found)) return { ...(id === undefined ? {} : { id }), tag: null, end: found }
  const decided = Remedy.fromFault(found, policy)
  return {
    ...(id === undefined ? {} : { id }),
    tag: found._tag,
    remedy: decided._tag.toLowerCase(),
    tier: decided._tag === "Retry" ? decided.tier : null,
    limit: found._tag === "RateLimited" ? found.limit : null,
    resetsAt: found.resetsAt === undefined ? null : DateTime.formatIso(found.resetsAt.at),
    waitMs: found.resetsAt?.waitMillis ?? null,
    because: found.because
  }
}
