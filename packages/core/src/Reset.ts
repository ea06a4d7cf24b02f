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

/** One reading of one piece of evidence: the fast one keeps the latest moment, the slow one every claim. */
abstract class Reader {
  readonly received: number
  readonly headers: Found
  #skew: number | undefined

  constructor(evidence: Evidence, received: number) {
    this.received = received
    this.headers = findIn(evidence._tag === "Response" ? rawOf(evidence).headers : undefined)
  }

  /** What to add to an instant of the server's clock to have it on ours. */
  get skew(): number {
    return this.#skew ??= skewOf(this.received, lookup(this.headers, "date"))
  }

  /** Whether anything has named a wait. */
  abstract readonly named: boolean

  abstract take(where: string, name: string, value: unknown, moment: Moment): void
}

const delta = (millis: number): Moment =>
  millis <= 0
    ? millis === 0 ? "zero names no wait" : "negative"
    : millis > ABSURD
    ? "more than 32 days"
    : { wait: Math.ceil(millis), named: "delta" }

/** How far our clock is ahead of the server's, by its `date`; nothing where they agree. */
const skewOf = (received: number, date: string | undefined): number => {
  const ahead = date === undefined ? 0 : received - httpMillis(date)
  return Math.abs(ahead) > SKEW ? ahead : 0
}

const instant = (reader: Reader, millis: number): Moment => {
  const wait = millis + reader.skew - reader.received
  return !Number.isFinite(wait)
    ? "no date"
    : wait <= 0
    ? "past"
    : wait > ABSURD
    ? "more than 32 days"
    : { wait: Math.ceil(wait), named: "instant" }
}

// No real wait is 31 years long, so the magnitude of a bare number tells what it counts.
const bare = (reader: Reader, n: number, unit: Unit): Moment =>
  !Number.isFinite(n)
    ? "not finite"
    : n >= 1e11
    ? instant(reader, n)
    : unit === "ms"
    ? delta(n)
    : n >= 1e9
    ? instant(reader, n * 1_000)
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

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** A Go or protobuf duration in milliseconds: `6m0s`, `250ms`, `33740.9s`; NaN for any other text. */
const compact = (text: string): number => {
  let total = 0
  for (let at = 0; at < text.length && !Number.isNaN(total);) {
    const from = at
    while (isDigit(text.charCodeAt(at)) || text.charCodeAt(at) === 46) at++
    // a unit of two letters ends with an s
    const to = at + (text.charCodeAt(at + 1) === 115 && text.charCodeAt(at) !== 115 ? 2 : 1)
    total += at === from ? Number.NaN : Number(text.slice(from, at)) * (units[text.slice(at, to)] ?? Number.NaN)
    at = to
  }
  return total
}

const words = new RegExp(`^(?:${part}[\\s,]{0,2}){1,6}$`, "i")
const iso = /^(\d{4}-\d\d-\d\d)(?:[Tt ]|\sat\s)(\d\d:\d\d(?::\d\d)?)(\.\d{1,9})?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?$/i
// RFC 9110 section 5.6.7 with its two obsolete forms; all are in GMT, whether they say so or not
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?\s[\w\s:-]{14,32}$/
const httpMillis = (text: string): number => {
  const fixed = text.length === 29 && text.endsWith(" GMT")
    ? utc(text, 12, months.get(text.slice(8, 11)) ?? Number.NaN, 5, 17)
    : Number.NaN
  if (!Number.isNaN(fixed)) return fixed
  return httpDate.test(text) ? Date.parse(/(?:GMT|UTC)$/.test(text) ? text : `${text} GMT`) : Number.NaN
}

const months: ReadonlyMap<string, number> = new Map(
  ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].map((name, i) => [name, i + 1])
)

/** The number of two digits that stand at an index; NaN if they are none. */
const two = (text: string, at: number): number => {
  const tens = text.charCodeAt(at) - 48
  const ones = text.charCodeAt(at + 1) - 48
  return tens >= 0 && tens < 10 && ones >= 0 && ones < 10 ? tens * 10 + ones : Number.NaN
}

/**
 * Epoch milliseconds of a date whose parts stand where the two forms have them that nearly all send, several times as
 * fast as an engine parses it; NaN for any other, which an engine may still know.
 */
const utc = (text: string, yearAt: number, month: number, dayAt: number, clockAt: number): number => {
  const century = two(text, yearAt)
  const day = two(text, dayAt)
  const hour = two(text, clockAt)
  const minute = two(text, clockAt + 3)
  const second = two(text, clockAt + 6)
  return century > 0 && month > 0 && month < 13 && day > 0 && day < 32 && hour < 24 && minute < 60 && second < 60 &&
      text.charCodeAt(clockAt + 2) === 58 && text.charCodeAt(clockAt + 5) === 58
    ? daysTo(century * 100 + two(text, yearAt + 2), month, day) * 86_400_000 + hour * 3_600_000 + minute * 60_000 +
      second * 1_000
    : Number.NaN
}

/** Days from 1970 to a day of the Gregorian calendar. The year is counted from March, so that a leap day ends it. */
const daysTo = (year: number, month: number, day: number): number => {
  const y = month > 2 ? year : year - 1
  const m = month > 2 ? month - 3 : month + 9
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + Math.floor((m * 153 + 2) / 5) + day -
    719_469
}

const isoForm = (text: string): number =>
  text.length === 20 && text.charCodeAt(4) === 45 && text.charCodeAt(7) === 45 && text.charCodeAt(10) === 84 &&
    text.charCodeAt(19) === 90
    ? utc(text, 0, two(text, 5), 8, 11)
    : Number.NaN

/** Epoch milliseconds of an ISO instant; without a zone it is read in `zone`. */
const isoMillis = (text: string, zone: string): number => {
  const [, day = "", time = "", fraction = "", offset] = iso.exec(text) ?? []
  const named = offset === undefined ? zone : /^[+-]/.test(offset) ? offset.replace(/^(...)(\d\d)$/, "$1:$2") : "Z"
  return Date.parse(`${day}T${time.length === 5 ? `${time}:00` : time}${fraction.slice(0, 4)}${named}`)
}

/** Any value that a structured field holds. */
const moment = (reader: Reader, value: unknown, unit: Unit): Moment => {
  if (typeof value === "number") return bare(reader, value, unit)
  if (typeof value !== "string") {
    // google.protobuf.Duration as an object
    const millis = numberOf(peek(value, "seconds")) * 1_000 + numberOf(peek(value, "nanos") ?? 0) / 1e6
    return Number.isFinite(millis) ? delta(millis) : "no time"
  }
  const text = value.trim()
  if (text === "") return "empty"
  if (text.length > VALUE_CAP) return "too long for a time"
  if (isDigit(text.charCodeAt(0))) {
    const at = isoForm(text)
    if (!Number.isNaN(at)) return instant(reader, at)
    const n = Number(text)
    // another base than ten is no number of anybody's
    if (!Number.isNaN(n)) return text.charCodeAt(1) > 64 && text.startsWith("0") ? "no time" : bare(reader, n, unit)
    const millis = compact(text)
    if (!Number.isNaN(millis)) return delta(millis)
  } else if (/^[+-]/.test(text) && !Number.isNaN(Number(text))) return bare(reader, Number(text), unit)
  if (words.test(text)) return delta(duration(text))
  if (iso.test(text)) return instant(reader, isoMillis(text, "Z"))
  if (httpDate.test(text)) return instant(reader, httpMillis(text))
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
    : !/retry-after|reset|rate-?limit|remaining|^x-codex-/.test(name)
    ? undefined
    : name.endsWith("retry-after-ms")
    ? "ms"
    : name.endsWith("retry-after") || name === "x-ratelimit-timeremaining"
    ? "s"
    : name === "ratelimit" || name === "x-ratelimit"
    ? "structured"
    : name.includes("reset") || name.endsWith("ratelimit-next")
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
const structured = (reader: Reader, where: string, name: string, value: string): void => {
  for (const item of value.includes(";") ? value.split(/,(?=\s*["\w-]+;)/) : [value]) {
    const reset = /(?:^|[;,\s])(?:t|reset)=(\d{1,20})/.exec(item)?.[1]
    const left = /(?:^|[;,\s])(?:r|remaining)=(\d{1,20})/.exec(item)?.[1]
    if (reset !== undefined) {
      reader.take(where, name, item.trim(), Number(left) > 0 ? LEFT : bare(reader, Number(reset), "s"))
    }
  }
}

const headerResets = (reader: Reader, found: Found, where: string): void => {
  for (let i = 0; i < found.names.length; i++) {
    const is = found.names[i]
    const value = found.values[i]
    if (is === undefined || value === undefined) continue
    switch (is.role) {
      case "ms":
      case "s":
        reader.take(where, is.name, value, moment(reader, value, is.role))
        break
      case "reset":
        reader.take(
          where,
          is.name,
          value,
          open(found, is) ? LEFT : moment(reader, value, is.name.endsWith("-ms") ? "ms" : "s")
        )
        break
      case "structured":
        structured(reader, where, is.name, value)
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

const bodyResets = (reader: Reader, answers: Answers): void => {
  for (const { key, node, unit, value } of answers.resets) {
    if (unit === undefined) {
      if (isRecord(value)) headerResets(reader, findIn(value), "relayed header")
    } else {
      const left = below(peek(node, "used_percent"), 100) || numberOf(peek(node, "remaining")) > 0
      reader.take("body", key, value, left ? LEFT : moment(reader, value, unit))
    }
  }
}

// --- prose -----------------------------------------------------------------------------------------------------------

const span = `((?:${part}(?:[\\s,]|and\\s){0,3}){1,5})`
const filler =
  "(?:(?:in|after|at|least|about|approximately|roughly|around|another|be|is|of|the|your|request|requests|again|once|delay)[\\s:~]{1,3}){0,5}"
const cue =
  "\\b(?:again|back|retry|wait(?: for)?|reset|resets|resetting|available|renews?|refresh(?:es)?|replenish(?:es|ed)?|lifted|(?:timed out|blocked|banned|suspended|paused) for)\\b[\\s:,~]{1,3}"
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
const clock =
  /\bresets?(?: at| on)? (?:(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} (\d{1,2}),? (?:at )?)?(\d{1,2})(?::(\d\d))?\s?(am|pm) \(([A-Za-z_]{2,32}(?:\/[A-Za-z_]{2,32}){0,2})\)/gi
const piped = /limit reached\|(\d{10,13})\b/g

/** The next time that a clock in a zone shows an hour, of a day of the year where one is named. */
const nextClock = (
  reader: Reader,
  day: { readonly month: number; readonly day: number } | undefined,
  hours: number,
  minutes: number,
  zone: string
): Moment => {
  const here = Option.flatMap(DateTime.make(reader.received), DateTime.setZoneNamed(zone))
  if (Option.isNone(here)) return "no time zone"
  if (Math.abs(reader.received) > 8e15) return "no date"
  const first = DateTime.setParts(here.value, { ...day, hours, minutes, seconds: 0, millis: 0 })
  const later = first.epochMillis > reader.received
    ? first
    : DateTime.add(first, day === undefined ? { days: 1 } : { years: 1 })
  return instant(reader, later.epochMillis)
}

const proseResets = (reader: Reader, prose: string, zone: string): void => {
  const text = prose.slice(0, PROSE_CAP)
  for (const [, found = ""] of text.matchAll(spans)) reader.take("text", "", found.trim(), delta(duration(found)))
  for (const [, found = ""] of text.matchAll(seconds)) {
    reader.take("text", "", found, bare(reader, Number(found), "s"))
  }
  for (const [, found = ""] of text.matchAll(dates)) {
    reader.take("text", "", found, instant(reader, isoMillis(found, zone)))
  }
  for (const [, found = "", unit = ""] of text.matchAll(chinese)) {
    reader.take("text", "", `${found} ${unit}`, delta(Number(found) * (chineseUnits[unit] ?? 0)))
  }
  for (const [, found = ""] of text.matchAll(protobuf)) {
    reader.take("text", "retry_delay", found, bare(reader, Number(found), "s"))
  }
  for (const [found, month, day, hour, minute, half = "", zone = ""] of text.matchAll(clock)) {
    reader.take(
      "text",
      "",
      found,
      nextClock(
        reader,
        month === undefined ? undefined : { month: months.get(month) ?? 1, day: Number(day) },
        (Number(hour) % 12) + (half.toLowerCase() === "pm" ? 12 : 0),
        Number(minute ?? 0),
        zone
      )
    )
  }
  for (const [, found = ""] of text.matchAll(piped)) reader.take("text", "", found, bare(reader, Number(found), "s"))
}

/** Tells the reader all that the evidence names; prose only where nothing else has named a wait. */
const readAll = (evidence: Evidence, reader: Reader): void => {
  if (evidence._tag !== "Response") return proseResets(reader, proseOf(evidence).text, "Z")
  headerResets(reader, reader.headers, "header")
  const answers = answersOf(evidence)
  bodyResets(reader, answers)
  if (reader.named) return
  if (answers.page !== undefined) return proseResets(reader, textOf(rawOf(evidence).body) ?? "", "Z")
  const seen = new Set<string>()
  for (const answer of answers.list) {
    // z.ai writes Beijing time without a zone
    const beijing = answer.codes.some((code) => code.startsWith("zai "))
    for (const text of answer.texts) {
      if (!seen.has(text)) proseResets(reader, text, beijing || /[\u4E00-\u9FFF]/.test(text) ? "+08:00" : "Z")
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

class AllClaims extends Reader {
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

class Latest extends Reader {
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
      const reader = new AllClaims(this.#evidence, this.#received)
      readAll(this.#evidence, reader)
      this.#claims = reader.claims
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
  const latest = new Latest(evidence, received)
  readAll(evidence, latest)
  const by = latest.name === "" ? latest.where : `${latest.where} ${latest.name}`
  return new Read(evidence, received, latest.named ? new Named(received, latest.wait, latest.as, by) : undefined)
}
