/**
 * Until when a provider refuses, by every convention in which providers name it: headers, bodies, prose.
 *
 * A reset sets the pace of a retry and never whether there is one. Nothing that a server sends can throw, overflow a
 * timer or take more than time linear in its length; a value that is refused keeps its reason.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { Evidence } from "./Evidence.ts"
import type { Answers, Unit } from "./internal/answers.ts"
import { eachHeader } from "./internal/headers.ts"
import { answersOf, proseOf, rawOf } from "./internal/leaves.ts"
import { mask } from "./internal/mask.ts"
import { isRecord, numberOf, peek, textOf } from "./internal/peek.ts"

/**
 * Until when a provider refuses.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reset {
  /** Milliseconds from receipt to the reset: whole, more than zero, at most 32 days. */
  readonly waitMillis: number
  readonly at: DateTime.Utc
  /** A `delta` counts from receipt and ends by elapsed time; an `instant` ends by the wall clock. */
  readonly named: "delta" | "instant"
  /** The convention that named it: `header retry-after`, `body resets_at`, `text`. */
  readonly by: string
}

/**
 * One place where a reset was looked for and something stood: it names a wait, or it was refused for a reason.
 *
 * @category models
 * @since 0.1.0
 */
export interface Claim {
  readonly by: string
  /** As sent, masked, at most 64 characters. */
  readonly value: string
  /** Milliseconds from receipt, where the value was read. */
  readonly waitMillis: number | undefined
  readonly refused: string | undefined
}

/**
 * All that a piece of evidence says about its reset: the one that governs, and every claim.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reading {
  readonly reset: Reset | undefined
  readonly claims: ReadonlyArray<Claim>
}

/**
 * A reset `waitMillis` after `received`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: {
    readonly received: number
    readonly waitMillis: number
    readonly named: Reset["named"]
    readonly by: string
  }
): Reset => new Named(options.received, options.waitMillis, options.named, options.by)

// the instant is made at the first look, since a retry in place never looks at it
class Named implements Reset {
  readonly waitMillis: number
  readonly named: Reset["named"]
  readonly by: string
  readonly #received: number
  #at: DateTime.Utc | undefined

  constructor(received: number, waitMillis: number, named: Reset["named"], by: string) {
    this.#received = received
    this.waitMillis = waitMillis
    this.named = named
    this.by = by
  }

  get at(): DateTime.Utc {
    return this.#at ??= DateTime.unsafeMake(Math.min(this.#received + this.waitMillis, 8.64e15))
  }
}

/** A wait of more than 32 days is absurd and counts as not named: no window of any provider is longer than a month. */
const ABSURD = 32 * 86_400_000
/** Two clocks that differ by less than this agree. */
const SKEW = 2_000
const VALUE_CAP = 64
const PROSE_CAP = 8_192
const CLAIMS = 64
const FOUND = 128
const NAME_CAP = 64
const LEFT = "the window has something left"

/** What a value names: milliseconds from receipt, or why it names none. */
type Moment = { readonly wait: number; readonly named: Reset["named"] } | string

/** Whoever listens to the reading: the fast one keeps the latest, the slow one every claim. */
interface Sink {
  readonly take: (where: string, name: string, value: unknown, moment: Moment) => void
  /** Whether anything has named a wait. */
  readonly named: boolean
}

interface Scope {
  readonly received: number
  /** What to add to an instant of the server's clock to have it on ours. */
  readonly skew: () => number
  readonly sink: Sink
}

const delta = (millis: number): Moment =>
  millis <= 0
    ? millis === 0 ? "zero names no wait" : "negative"
    : millis > ABSURD
    ? "more than 32 days"
    : { wait: Math.ceil(millis), named: "delta" }

/** How far our clock is ahead of the server's, by its `date`; nothing where they agree. */
const skewOf = (received: number, date: string | undefined): number => {
  const ahead = date !== undefined && httpDate.test(date) ? received - httpMillis(date) : 0
  return Math.abs(ahead) > SKEW ? ahead : 0
}

const instant = (scope: Scope, millis: number): Moment => {
  const wait = millis + scope.skew() - scope.received
  return !Number.isFinite(wait)
    ? "no date"
    : wait <= 0
    ? "past"
    : wait > ABSURD
    ? "more than 32 days"
    : { wait: Math.ceil(wait), named: "instant" }
}

// No real wait is 31 years long, so the magnitude of a bare number tells what it counts.
const bare = (scope: Scope, n: number, unit: Unit): Moment =>
  !Number.isFinite(n)
    ? "not finite"
    : n >= 1e11
    ? instant(scope, n)
    : unit === "ms"
    ? delta(n)
    : n >= 1e9
    ? instant(scope, n * 1_000)
    : delta(n * 1_000)

const units: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000
}

const figure = "\\d{1,20}(?:\\.\\d{1,20})?|(?:an?|one)(?=\\s)"
const unit =
  "ns|us|µs|milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d|weeks?|w"
const parts = new RegExp(`(${figure})\\s{0,2}(${unit})(?![a-z])`, "gi")
const part = `(?:${figure})\\s{0,2}(?:${unit})(?![a-z])`

const millisOf = (n: string, unit: string): number => {
  const name = unit.toLowerCase()
  const key = name.startsWith("ms") || name.startsWith("mill")
    ? "ms"
    : units[name] === undefined
    ? name.charAt(0)
    : name
  return (/^\d/.test(n) ? Number(n) : 1) * (units[key] ?? 0)
}

/** A duration in words, in milliseconds. */
const duration = (text: string): number => {
  let total = 0
  for (const [, n = "", unit = ""] of text.matchAll(parts)) total += millisOf(n, unit)
  return total
}

/** A Go or protobuf duration in milliseconds: `6m0s`, `250ms`, `33740.9s`; NaN for any other text. */
const compact = (text: string): number => {
  let total = 0
  let at = 0
  while (at < text.length) {
    const from = at
    while (at < text.length && (isDigit(text.charCodeAt(at)) || text.charCodeAt(at) === 46)) at++
    const n = at === from ? Number.NaN : Number(text.slice(from, at))
    const unit = text.charAt(at + 1) === "s" && /[mnuµ]/.test(text.charAt(at))
      ? text.slice(at, at + 2)
      : text.charAt(at)
    total += n * (units[unit] ?? Number.NaN)
    at += unit.length
    if (Number.isNaN(total)) return total
  }
  return total
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

const words = new RegExp(`^(?:${part}[\\s,]{0,2}){1,6}$`, "i")
const iso = /^(\d{4}-\d\d-\d\d)(?:[Tt ]|\sat\s)(\d\d:\d\d(?::\d\d)?)(\.\d{1,9})?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?$/i
// RFC 9110 section 5.6.7 with its two obsolete forms; all are in GMT, whether they say so or not
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?\s[\w\s:-]{14,32}$/
const httpMillis = (text: string): number => Date.parse(/(?:GMT|UTC)$/.test(text) ? text : `${text} GMT`)

/** Epoch milliseconds of an ISO instant; without a zone it is read in `zone`. */
const isoMillis = (text: string, zone: string): number => {
  const [, day = "", time = "", fraction = "", offset] = iso.exec(text) ?? []
  const named = offset === undefined ? zone : /^[+-]/.test(offset) ? offset.replace(/^(...)(\d\d)$/, "$1:$2") : "Z"
  return Date.parse(`${day}T${time.length === 5 ? `${time}:00` : time}${fraction.slice(0, 4)}${named}`)
}

/** Any value that a structured field holds. */
const moment = (scope: Scope, value: unknown, unit: Unit): Moment => {
  if (typeof value === "number") return bare(scope, value, unit)
  if (typeof value !== "string") {
    // google.protobuf.Duration as an object
    const millis = numberOf(peek(value, "seconds")) * 1_000 + numberOf(peek(value, "nanos") ?? 0) / 1e6
    return Number.isFinite(millis) ? delta(millis) : "no time"
  }
  const text = value.trim()
  if (text === "") return "empty"
  if (text.length > VALUE_CAP) return "too long for a time"
  if (isDigit(text.charCodeAt(0))) {
    // the form that engines parse fastest, and the one that nearly all send
    const at = text.length === 20 && text.charCodeAt(19) === 90 ? Date.parse(text) : Number.NaN
    if (!Number.isNaN(at)) return instant(scope, at)
    const n = Number(text)
    if (!Number.isNaN(n)) return /^0[xob]/i.test(text) ? "no time" : bare(scope, n, unit)
    const millis = compact(text)
    if (!Number.isNaN(millis)) return delta(millis)
  } else if (/^[+-]/.test(text) && !Number.isNaN(Number(text))) return bare(scope, Number(text), unit)
  if (words.test(text)) return delta(duration(text))
  if (iso.test(text)) return instant(scope, isoMillis(text, "Z"))
  if (httpDate.test(text)) return instant(scope, httpMillis(text))
  return "no time"
}

// --- headers ---------------------------------------------------------------------------------------------------------

type Role = "ms" | "s" | "structured" | "reset" | "left" | "date"

/** What a header name is to a reader of resets. */
interface Name {
  readonly name: string
  readonly role: Role | undefined
  /** Beside a reset, the names under which its bucket says whether something is left. */
  readonly remaining: string
  readonly used: string
  readonly utilization: string
  readonly status: string
}

const roleOf = (name: string): Role | undefined =>
  name === "date"
    ? "date"
    : !/retry-after|reset|rate-?limit|^x-codex-/.test(name)
    ? undefined
    : name.endsWith("retry-after-ms")
    ? "ms"
    : name.endsWith("retry-after") || name === "x-ratelimit-timeremaining"
    ? "s"
    : name === "ratelimit" || name === "x-ratelimit"
    ? "structured"
    : name.includes("reset")
    ? "reset"
    : /remaining|used-percent|utilization|status/.test(name)
    ? "left"
    : undefined

const describe = (held: string): Name => {
  const name = held.toLowerCase()
  const at = name.indexOf("reset")
  const head = name.slice(0, Math.max(0, at))
  const tail = name.slice(at + 5).replace(/^-(?:at|after-seconds|after|in|ms)$/, "")
  const beside = (word: string): string => `${head}${word}${tail}`
  return {
    name,
    role: roleOf(name),
    remaining: beside("remaining"),
    used: beside("used-percent"),
    utilization: beside("utilization"),
    status: beside("status")
  }
}

// Providers send the same few names with every answer; a server that makes up new ones is read without the memory.
const MEMORY = 512
const names = new Map<string, Name>()

const nameOf = (held: string): Name => {
  const known = names.get(held)
  if (known !== undefined) return known
  const name = describe(held)
  if (names.size < MEMORY) names.set(held, name)
  return name
}

/** The headers that have a role, each name beside its value: two lists of what is there cost no object per header. */
interface Found {
  readonly names: ReadonlyArray<Name>
  readonly values: ReadonlyArray<string>
}

const lookup = ({ names, values }: Found, name: string): string | undefined => {
  for (let i = 0; i < names.length; i++) if (names[i]?.name === name) return values[i]
  return undefined
}

const below = (u: unknown, limit: number): boolean => u !== "" && numberOf(u) < limit

/** Whether the bucket that a reset belongs to says that something is left in it. */
const open = (found: Found, reset: Name): boolean => {
  const left = lookup(found, reset.remaining)
  if (left !== undefined) return Number(left) > 0
  return below(lookup(found, reset.used), 100) || below(lookup(found, reset.utilization), 1) ||
    lookup(found, reset.status)?.startsWith("allowed") === true
}

/** The RateLimit field of the IETF drafts: `limit=100, remaining=0, reset=9` to -07, `"api";r=0;t=55` since. */
const structured = (scope: Scope, where: string, name: string, value: string): void => {
  for (const item of value.includes(";") ? value.split(/,(?=\s*["\w-]+;)/) : [value]) {
    const reset = /(?:^|[;,\s])(?:t|reset)=(\d{1,20})/.exec(item)?.[1]
    const left = /(?:^|[;,\s])(?:r|remaining)=(\d{1,20})/.exec(item)?.[1]
    if (reset !== undefined) {
      scope.sink.take(where, name, item.trim(), Number(left) > 0 ? LEFT : bare(scope, Number(reset), "s"))
    }
  }
}

const headerResets = (scope: Scope, found: Found, where: string): void => {
  for (const [i, is] of found.names.entries()) {
    const value = found.values[i] ?? ""
    switch (is.role) {
      case "ms":
      case "s":
        scope.sink.take(where, is.name, value, moment(scope, value, is.role))
        break
      case "reset":
        scope.sink.take(
          where,
          is.name,
          value,
          open(found, is) ? LEFT : moment(scope, value, is.name.endsWith("-ms") ? "ms" : "s")
        )
        break
      case "structured":
        structured(scope, where, is.name, value)
        break
      default: // what is left in a bucket, and the date, are looked up from beside
    }
  }
}

const findIn = (headers: unknown): Found => {
  const names: Array<Name> = []
  const values: Array<string> = []
  eachHeader(headers, (name, value) => {
    if (name.length > NAME_CAP || names.length >= FOUND) return
    const is = nameOf(name)
    if (is.role === undefined) return
    names.push(is)
    values.push(value)
  })
  return { names, values }
}

// --- bodies ----------------------------------------------------------------------------------------------------------

const bodyResets = (scope: Scope, answers: Answers): void => {
  for (const { key, node, unit, value } of answers.resets) {
    if (unit === undefined) {
      if (isRecord(value)) headerResets(scope, findIn(value), "relayed header")
    } else {
      const left = below(peek(node, "used_percent"), 100) || numberOf(peek(node, "remaining")) > 0
      scope.sink.take("body", key, value, left ? LEFT : moment(scope, value, unit))
    }
  }
}

// --- prose -----------------------------------------------------------------------------------------------------------

const span = `((?:${part}(?:[\\s,]|and\\s){0,3}){1,5})`
const filler =
  "(?:(?:in|after|at|least|about|approximately|roughly|around|another|be|is|of|the|your|request|requests|again|once|delay)[\\s:~]{1,3}){0,5}"
const cue =
  "\\b(?:again|back|retry|wait(?: for)?|reset|resets|resetting|available|renews?|refresh(?:es)?|replenish(?:es|ed)?|lifted)\\b[\\s:,~]{1,3}"
const spans = new RegExp(`${cue}${filler}${span}`, "gi")
const seconds = /\bretry[- _]after["']?\s{0,2}[:=]?\s{0,2}["']?(\d{1,12}(?:\.\d{1,9})?)(?![\d.]|\s{0,2}[a-z])/gi
const dates =
  /(?:\b(?:resets?|again|access|until|available|retry|restored|after)\b[^\d\n]{0,32}|将[于在]\s{0,2})(\d{4}-\d\d-\d\d(?:[Tt ]|\sat\s)\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)/gi
const chinese = /(\d{1,9}(?:\.\d{1,9})?)\s{0,2}(毫秒|秒|分钟|小时|天)(?:之?后|再)/g
const chineseUnits: Readonly<Record<string, number>> = {
  毫秒: 1,
  秒: 1_000,
  分钟: 60_000,
  小时: 3_600_000,
  天: 86_400_000
}
const protobuf = /retry_delay\s{0,4}\{\s{0,8}seconds:\s{0,4}(\d{1,12})/g
const clock = /\bresets?(?: at)? (\d{1,2})(?::(\d\d))?\s?(am|pm) \(([A-Za-z_]{2,32}(?:\/[A-Za-z_]{2,32}){0,2})\)/gi
const piped = /limit reached\|(\d{10,13})\b/g

/** The next time that a clock in a zone shows an hour. */
const nextClock = (scope: Scope, hour: number, minute: number, zone: string): Moment => {
  const here = Option.flatMap(DateTime.make(scope.received), DateTime.setZoneNamed(zone))
  if (Option.isNone(here)) return "no time zone"
  if (Math.abs(scope.received) > 8e15) return "no date"
  const today = DateTime.setParts(here.value, { hours: hour, minutes: minute, seconds: 0, millis: 0 })
  const at = today.epochMillis > scope.received ? today : DateTime.add(today, { days: 1 })
  return instant(scope, at.epochMillis)
}

const proseResets = (scope: Scope, prose: string, zone: string): void => {
  const text = prose.slice(0, PROSE_CAP)
  for (const [, found = ""] of text.matchAll(spans)) scope.sink.take("text", "", found.trim(), delta(duration(found)))
  for (const [, found = ""] of text.matchAll(seconds)) {
    scope.sink.take("text", "", found, bare(scope, Number(found), "s"))
  }
  for (const [, found = ""] of text.matchAll(dates)) {
    scope.sink.take("text", "", found, instant(scope, isoMillis(found, zone)))
  }
  for (const [, found = "", unit = ""] of text.matchAll(chinese)) {
    scope.sink.take("text", "", `${found} ${unit}`, delta(Number(found) * (chineseUnits[unit] ?? 0)))
  }
  for (const [, found = ""] of text.matchAll(protobuf)) {
    scope.sink.take("text", "retry_delay", found, bare(scope, Number(found), "s"))
  }
  for (const [found, hour, minute, half = "", zone = ""] of text.matchAll(clock)) {
    scope.sink.take(
      "text",
      "",
      found,
      nextClock(scope, (Number(hour) % 12) + (half.toLowerCase() === "pm" ? 12 : 0), Number(minute ?? 0), zone)
    )
  }
  for (const [, found = ""] of text.matchAll(piped)) scope.sink.take("text", "", found, bare(scope, Number(found), "s"))
}

/** Tells the sink all that the evidence names; prose only where `named` says that nothing else did. */
const readAll = (evidence: Evidence, received: number, sink: Sink): void => {
  if (evidence._tag !== "Response") return proseResets({ received, skew: () => 0, sink }, proseOf(evidence).text, "Z")
  const found = findIn(rawOf(evidence).headers)
  let skew: number | undefined
  const scope = { received, skew: () => skew ??= skewOf(received, lookup(found, "date")), sink }
  const answers = answersOf(evidence)
  headerResets(scope, found, "header")
  bodyResets(scope, answers)
  if (sink.named || answers.page !== undefined) return
  const seen = new Set<string>()
  for (const answer of answers.list) {
    // z.ai writes Beijing time without a zone
    const beijing = answer.codes.some((code) => code.startsWith("zai "))
    for (const text of answer.texts) {
      if (!seen.has(text)) proseResets(scope, text, beijing || /[\u4E00-\u9FFF]/.test(text) ? "+08:00" : "Z")
      seen.add(text)
    }
  }
}

/** Only what is made of digits and units can be shown as it is. */
const harmless = /^[\dTZdhms:.,+ -]{1,40}$/

const shown = (value: unknown): string => {
  const text = textOf(value) ?? "no text"
  return harmless.test(text) ? text : mask(text, VALUE_CAP)
}

class AllClaims implements Sink {
  readonly claims: Array<Claim> = []
  named = false

  take(where: string, name: string, value: unknown, moment: Moment): void {
    if (this.claims.length >= CLAIMS) return
    const by = name === "" ? where : `${where} ${name}`
    if (typeof moment === "string") {
      this.claims.push({ by, value: shown(value), waitMillis: undefined, refused: moment })
    } else {
      this.named = true
      this.claims.push({ by, value: shown(value), waitMillis: moment.wait, refused: undefined })
    }
  }
}

class Latest implements Sink {
  wait = 0
  as: Reset["named"] = "delta"
  where = ""
  name = ""
  named = false

  take(where: string, name: string, _: unknown, moment: Moment): void {
    if (typeof moment !== "string" && moment.wait > this.wait) {
      this.named = true
      this.wait = moment.wait
      this.as = moment.named
      this.where = where
      this.name = name
    }
  }
}

class Read implements Reading {
  readonly reset: Reset | undefined
  readonly #evidence: Evidence
  readonly #received: number
  #claims: ReadonlyArray<Claim> | undefined

  constructor(evidence: Evidence, received: number, reset: Reset | undefined) {
    this.#evidence = evidence
    this.#received = received
    this.reset = reset
  }

  // made at the first look: a reset is read for every fault, its claims only for a person
  get claims(): ReadonlyArray<Claim> {
    if (this.#claims === undefined) {
      const sink = new AllClaims()
      readAll(this.#evidence, this.#received, sink)
      this.#claims = sink.claims
    }
    return this.#claims
  }
}

/**
 * Reads the reset that a piece of evidence names, counted from `received` in epoch milliseconds. The latest instant
 * governs among the windows that refused; a window that says that something is left does not count. Prose is read only
 * where no header and no field answers. An instant of the server's clock is corrected by its `date` header when the
 * clocks differ by over 2 s.
 *
 * It does not judge: a reset beside a fault that no wait cures is read all the same.
 *
 * @example
 * ```ts
 * import { Evidence, Reset } from "@recourse/core"
 *
 * const evidence = Evidence.fromResponse({ status: 429, headers: { "x-ratelimit-reset-tokens": "6m0s" } })
 * Reset.read(evidence, Date.now()).reset?.waitMillis // 360000
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const read = (evidence: Evidence, received: number): Reading => {
  const sink = new Latest()
  readAll(evidence, received, sink)
  const by = sink.name === "" ? sink.where : `${sink.where} ${sink.name}`
  return new Read(evidence, received, sink.named ? new Named(received, sink.wait, sink.as, by) : undefined)
}
