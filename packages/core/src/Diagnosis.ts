/**
 * From what reached us to what it means: one pure, total function, whatever it is handed.
 *
 * The innermost structured answer speaks before its relays. Of what it says, a provider's code outranks the status, the
 * status a word that only repeats its family, and prose decides only where nothing typed speaks.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Evidence from "./Evidence.ts"
import * as Fault from "./Fault.ts"
import { type Answer, type Answers, exceptionIn, parse } from "./internal/answers.ts"
import { chain } from "./internal/chain.ts"
import { codeOf, type Meaning } from "./internal/codes.ts"
import { eachHeader } from "./internal/headers.ts"
import { answersOf, proseOf, rawOf } from "./internal/leaves.ts"
import * as Markers from "./internal/markers.ts"
import { mask } from "./internal/mask.ts"
import { isList, isRecord, peek } from "./internal/peek.ts"
import { verdict } from "./internal/transport.ts"
import type { Because, Kind } from "./Readout.ts"
import * as Reset from "./Reset.ts"
import * as StreamEnd from "./StreamEnd.ts"

export type {
  /**
   * What a code means: a kind, and for a throttle which limit was met where the code itself says so.
   *
   * @category models
   * @since 0.1.0
   */
  Meaning
}

/**
 * What a diagnosis is told beside the evidence.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** When it reached us; a number is epoch milliseconds. A delta counts from here. */
  readonly received: DateTime.Utc | Date | number
  /** Codes of a private gateway, each as it is sent, and what they mean; they outrank the built-in table. */
  readonly codes?: { readonly [code: string]: Meaning }
}

interface Decision {
  readonly meaning: Meaning
  readonly because: Because
  /** Whether a documented code decided, which prose may not refine. */
  readonly firm: boolean
}

const decision = (meaning: Meaning, field: string, value: string, rule: string, firm = false): Decision => ({
  meaning,
  because: { field, value, rule },
  firm
})

const kindOf = (meaning: Meaning): Kind =>
  meaning === "RateLimited:rate" || meaning === "RateLimited:allowance" ? "RateLimited" : meaning

// --- codes and statuses ------------------------------------------------------------------------------------------------

/**
 * What the codes of one answer mean. A purse outranks a throttle, since plans and prepaid pools share the 429; so does a
 * model that has no room for anybody.
 */
const fromCodes = (codes: ReadonlyArray<string>, own: Options["codes"]): Decision | undefined => {
  let found: Decision | undefined
  for (const code of codes) {
    if (own !== undefined) {
      const raw = code.replace(/^\w{1,16} (?=\d)/, "")
      const taught = Object.hasOwn(own, raw) ? own[raw] : undefined
      if (taught !== undefined) return decision(taught, "code", raw, "a code of yours", true)
    }
    const { known } = codeOf(code)
    if (known === undefined) continue
    const next = (): Decision => decision(known.meaning, "code", code, `a code of ${known.source}`, true)
    if (found === undefined) found = next()
    else if (
      kindOf(found.meaning) === "RateLimited" && (known.meaning === "QuotaExhausted" || known.meaning === "Overloaded")
    ) return next()
  }
  return found
}

/** What an undocumented code is by its name. It may turn no answer that a status surfaces into a retry. */
const fromCodeWords = (codes: ReadonlyArray<string>, status: number | undefined): Decision | undefined => {
  for (const code of codes) {
    const { word } = codeOf(code)
    if (word === undefined) continue
    const speaks = status === undefined
      ? word !== Markers.pool
      : status >= 500 || status === 429 || status === 408
      ? word.kind === "Overloaded" || (word.kind === "TimedOut" && status === 504) ||
        (word.kind === "QuotaExhausted" && status === 429 && word !== Markers.pool)
      : !Fault.isRetryable(word.kind)
    // who is shut out for what was asked before is shut out, whatever is asked
    if (speaks) return decision(word.kind, "code", code, word.name, word.kind === "CredentialRejected")
  }
  return undefined
}

const fromFamilies = (codes: ReadonlyArray<string>): Decision | undefined => {
  for (const code of codes) {
    const { family } = codeOf(code)
    if (family !== undefined) return decision(family.meaning, "code", code, `a word for ${family.source}`)
  }
  return undefined
}

const kindOfStatus = (status: number): Kind => {
  switch (status) {
    case 401:
    case 403:
      return "CredentialRejected"
    case 402:
      return "QuotaExhausted"
    case 408:
      return "TimedOut"
    case 429:
      return "RateLimited"
    case 501:
    case 505:
    case 511:
      return "RequestRejected"
    case 529:
      return "Overloaded"
    default:
      return status >= 500 && status < 600
        ? "Unavailable"
        : status >= 400 && status < 500
        ? "RequestRejected"
        : "Unrecognized"
  }
}

const fromStatus = (status: number, page: string | undefined): Decision =>
  status === 403 && page !== undefined
    ? decision("Unavailable", "status", "403", "an HTML page at 403 is an edge, not the provider")
    : decision(kindOfStatus(status), "status", String(status), "its status")

const errorHeader = /^x-(?:amzn-errortype|ms-error-code|vercel-error)$/i

/** The error class that AWS, Azure and Vercel put into a header. */
const headerCodes = (headers: unknown): ReadonlyArray<string> => {
  const codes: Array<string> = []
  eachHeader(headers, (name, value) => {
    if (errorHeader.test(name)) codes.push(value.slice(0, 256))
  })
  return codes
}

// --- prose -------------------------------------------------------------------------------------------------------------

const PROSE_CAP = 8_192

const proseOfAnswers = (answers: Answers): string => {
  if (answers.page !== undefined) return ""
  let prose = ""
  for (const { texts } of answers.list) {
    for (const text of texts) {
      if (prose.length >= PROSE_CAP * 2) return prose
      const cut = text.slice(0, PROSE_CAP)
      if (prose === "") prose = cut
      else if (!prose.includes(cut)) prose += `\n${cut}`
    }
  }
  return prose
}

const matched = (marker: Markers.Marker, prose: string): string | undefined => marker.pattern.exec(prose)?.[0]

const fromMarker = (marker: Markers.Marker, found: string): Decision =>
  decision(marker.kind, "text", found, `a phrase for ${marker.name}`)

/** What prose alone says, where nothing typed does; with the status that it states, if it states one. */
const fromProse = (
  prose: string,
  exceptions: ReadonlyArray<string>
): { readonly decided: Decision; readonly status: number | undefined } | undefined => {
  if (prose === "") return undefined
  const status = Markers.statusInProse.exec(prose)?.[1]
  if (status !== undefined) {
    return {
      decided: decision(kindOfStatus(Number(status)), "text", status, "a status that the text states"),
      status: Number(status)
    }
  }
  const named = fromException(exceptions)
  const decided = telling(named) ?? fromQuoted(prose) ?? firstOf(prose, Markers.prose) ?? named
  return decided === undefined ? undefined : { decided, status: undefined }
}

/** What the exception is that a sentence begins with. */
const fromException = (exceptions: ReadonlyArray<string>): Decision | undefined => {
  for (const exception of exceptions) {
    const { family, known } = codeOf(exception)
    const found = known ?? family
    if (found !== undefined) return decision(found.meaning, "text", exception, "an exception that the text names")
  }
  return undefined
}

/** What a name decides; not where it says only that a server failed, which a relay makes of anything: words say more. */
const telling = (named: Decision | undefined): Decision | undefined =>
  named === undefined || kindOf(named.meaning) === "Unavailable" ? undefined : named

/** What a code means that the text quotes. */
const fromQuoted = (prose: string): Decision | undefined => {
  for (const [, named, bare = ""] of prose.matchAll(Markers.quotedCode)) {
    const code = named ?? bare
    const { family, known } = codeOf(code)
    const found = known ?? (named === undefined ? undefined : family)
    if (found !== undefined) return decision(found.meaning, "text", code, "a code that the text quotes")
  }
  return undefined
}

const firstOf = (prose: string, markers: ReadonlyArray<Markers.Marker>): Decision | undefined => {
  for (const marker of markers) {
    const found = matched(marker, prose)
    if (found !== undefined) return fromMarker(marker, found)
  }
  return undefined
}

/** An overflow phrase that is quoted inside a throttle is a throttle's. */
const overflowIn = (prose: string): Decision | undefined =>
  Markers.throttle.pattern.test(prose) ? undefined : firstOf(prose, [Markers.overflow])

/** The number that stands behind a word which ends at `at`; NaN if none does. */
const behind = (prose: string, at: number): number => {
  let from = at
  while (from < at + 3 && isSeparator(prose.charCodeAt(from))) from++
  let n = 0
  let to = from
  for (let c = prose.charCodeAt(to); (c >= 48 && c <= 57) || c === 44; c = prose.charCodeAt(++to)) {
    if (c !== 44) n = n * 10 + c - 48
  }
  return to === from || from === at || to > from + 16 ? Number.NaN : n
}

const isSeparator = (c: number): boolean => c === 32 || c === 58 || c === 61

/**
 * The words in which a throttle says that a request is larger than its limit. Its numbers are compared before anything
 * is made of the words between them, since nearly all throttles state a request that fits.
 */
const tooLarge = (prose: string): string | undefined => {
  for (let at = prose.indexOf("quested"); at >= 0; at = prose.indexOf("quested", at + 7)) {
    const requested = behind(prose, at + 7)
    if (requested > 0) return limitedBelow(prose, requested, at)
  }
  return undefined
}

const limitedBelow = (prose: string, requested: number, at: number): string | undefined => {
  const from = Math.max(0, at - 96)
  const before = prose.slice(from, at)
  for (let word = before.indexOf("imit"); word >= 0; word = before.indexOf("imit", word + 4)) {
    const limit = behind(before, word + 4)
    if (limit > 0 && limit < requested) {
      const said = Markers.stated.exec(prose.slice(Math.max(0, from + word - 1), at + 32))?.[0]
      if (said !== undefined) return said
    }
  }
  return undefined
}

/** A decision that surfaces; prose never makes a retry of what something typed surfaces. */
const surfacing = (decided: Decision | undefined): Decision | undefined =>
  decided === undefined || Fault.isRetryable(kindOf(decided.meaning)) ? undefined : decided

/** What prose may make of a decision that something typed has made. */
const refined = (
  decided: Decision,
  status: number | undefined,
  prose: string,
  exceptions: ReadonlyArray<string>
): Decision => {
  const kind = kindOf(decided.meaning)
  switch (kind) {
    case "RateLimited": {
      const said = tooLarge(prose)
      return said === undefined
        ? decided
        : decision("RequestRejected", "text", said, "a request larger than the limit that refuses it")
    }
    case "RequestRejected":
      return (decided.firm || (status !== undefined && status >= 500)
        ? undefined
        : overflowIn(prose) ?? firstOf(prose, [Markers.purse, Markers.credential, Markers.refusal]) ??
          surfacing(fromException(exceptions))) ??
        firstOf(prose, status === 424 ? [Markers.sampled, Markers.malformed] : [Markers.sampled]) ?? decided
    case "CredentialRejected":
      return (decided.firm ? undefined : overflowIn(prose) ?? firstOf(prose, [Markers.purse, Markers.refusal])) ??
        decided
    case "Unavailable":
    case "Overloaded":
    case "TimedOut":
      return firstOf(prose, [Markers.sampled, Markers.malformed]) ??
        (status !== undefined && status >= 500 ? overflowIn(prose) : undefined) ??
        (kind === "Unavailable" && status === 503 ? firstOf(prose, [Markers.overload]) : undefined) ?? decided
    default:
      return decided
  }
}

// --- leaves ------------------------------------------------------------------------------------------------------------

const unrecognized = (field: string, value: string, rule: string): Decision =>
  decision("Unrecognized", field, value, rule)

/** What the structured answers say, innermost first, and the status under which it was said. */
const fromAnswers = (
  list: ReadonlyArray<Answer>,
  outer: number | undefined,
  page: string | undefined,
  headers: unknown,
  own: Options["codes"]
): { readonly decided: Decision | undefined; readonly status: number | undefined } => {
  const last = list[list.length - 1]
  for (const answer of list) {
    const { codes, status } = answer
    const stated = status ?? outer
    const decided = fromCodes(codes, own) ?? fromCodeWords(codes, stated)
    if (decided !== undefined) return { decided, status: stated }
    if (status !== undefined) {
      const named = answer === last && codes.length === 0 ? fromCodes(headerCodes(headers), own) : undefined
      return { decided: named ?? fromStatus(status, page), status }
    }
  }
  const decided = fromCodes(headerCodes(headers), own) ?? (outer === undefined ? undefined : fromStatus(outer, page))
  return { decided, status: outer }
}

const cutShort = decision(
  "StreamCut",
  "frames",
  "none of them ends the stream",
  "the bytes ended before the protocol did"
)

const exceptionsOf = (list: ReadonlyArray<Answer>): ReadonlyArray<string> => {
  let found: Array<string> | undefined
  for (const { exception } of list) if (exception !== undefined) (found ??= []).push(exception)
  return found ?? none
}

const none: ReadonlyArray<string> = []

const fromResponseLeaf = (response: Evidence.Response, own: Options["codes"]): Decision => {
  const raw = rawOf(response)
  const answers = answersOf(response)
  const { broken, cut, end, framed, list, page } = answers
  if (end?._tag === "Malformed") {
    return decision(
      "GenerationMalformed",
      "stop reason",
      end.reason,
      "the provider could not parse what the model wrote",
      true
    )
  }
  const good = raw.status !== undefined && raw.status >= 200 && raw.status < 300
  const { decided, status } = fromAnswers(list, good ? undefined : raw.status, page, raw.headers, own)
  // the words of an answer that broke off are the model's, not the provider's
  if (good && broken) return unrecognized("body", "JSON that breaks off", "no answer that a success promises")
  const prose = proseOfAnswers(answers)
  // nothing could be made of an answer: how it ended says why
  const unmade = decided !== undefined && kindOf(decided.meaning) === "GenerationMalformed"
  if (unmade && end?._tag === "OutputCap") {
    return unrecognized("stop reason", end.reason, "as long as its cap: asked again, it is cut again")
  }
  let found = unmade && end?._tag === "Refused" ? undefined : decided
  if (found === undefined && end !== undefined) {
    if (end._tag === "Refused") {
      found = decision("ContentRefused", "stop reason", end.reason, "a content policy ended the answer")
    } else if (end._tag === "Overloaded") {
      found = decision("Overloaded", "stop reason", end.reason, "the provider ran out of room")
    }
  }
  for (let i = 0; found === undefined && i < list.length; i++) found = fromFamilies(list[i]?.codes ?? [])
  const said = found === undefined ? fromProse(prose, exceptionsOf(list)) : undefined
  found ??= said?.decided
  if (found === undefined && end?._tag === "Failed") {
    found = fromCodes([end.reason], own) ??
      decision("Unavailable", "stop reason", end.reason, "the provider ended the answer with an error")
  }
  if (found === undefined && cut) {
    found = cutShort
  }
  found = found === undefined ? undefined : refined(found, status ?? said?.status, prose, exceptionsOf(list))
  if (
    good && !framed &&
    (found === undefined || kindOf(found.meaning) !== "GenerationMalformed" && Fault.isRetryable(kindOf(found.meaning)))
  ) {
    return unrecognized(
      "status",
      String(raw.status),
      found === undefined
        ? "no answer that a success promises"
        : `a fault inside a success (${found.because.value}) is not retried on a guess`
    )
  }
  return found ??
    unrecognized(
      "body",
      page === undefined ? "no known code" : "an HTML page",
      "nothing typed or written that is known"
    )
}

const transportKinds = {
  unreachable: "Unreachable",
  timedOut: "TimedOut",
  aborted: "Aborted",
  terminal: "Unrecognized"
} as const

const clocks = {
  unreachable: [Markers.hopeless, Markers.deadline],
  timedOut: [Markers.connecting],
  aborted: [Markers.hopeless, Markers.timeout],
  terminal: [Markers.cut]
}

const proseOfLeaf = (leaf: Evidence.Evidence): string => leaf._tag === "Response" ? "" : proseOf(leaf).text

const fromProseLeaf = (leaf: Evidence.Transport | Evidence.Terminal, own: Options["codes"]): Decision => {
  const { names, text } = proseOf(leaf)
  if (leaf.code !== undefined) {
    const found = verdict(leaf.code) ?? "terminal"
    // a client's own deadline aborts its request, and one clock's name serves for all
    return firstOf(text, clocks[found]) ??
      decision(transportKinds[found], "code", leaf.code, "the transport's own code", true)
  }
  const exceptions = text.split("\n").flatMap((line) => exceptionIn(line) ?? [])
  const said = fromProse(text, exceptions)
  const spoken = said === undefined ? undefined : refined(said.decided, said.status, text, exceptions)
  if (leaf._tag === "Transport") {
    return spoken !== undefined && ["TimedOut", "Aborted", "Unrecognized"].includes(spoken.meaning)
      ? spoken
      : decision("Unreachable", "transport", "no code", "the bytes did not arrive")
  }
  const distinct = names.filter((name) => !engineNames.has(name))
  const named = fromFamilies(distinct)
  return fromCodes(distinct, own) ?? telling(named) ?? spoken ?? named ??
    unrecognized("text", "no known phrase", "nothing typed or written that is known")
}

/** Names that an engine gives to errors of its own. */
const engineNames = new Set(["InternalError", "SystemError"])

// --- the fault ---------------------------------------------------------------------------------------------------------

const millisOf = (at: Options["received"]): number => {
  const millis = DateTime.isDateTime(at) ? at.epochMillis : at instanceof Date ? at.getTime() : at
  return Math.abs(millis) <= 8.64e15 ? millis : 0
}

const claimed = ({ by, refused, value }: Reset.Claim): Because => ({
  field: by,
  value,
  rule: refused === undefined ? "names a reset" : `refused: ${refused}`
})

/** Windows that only a plan has. */
const planned = /unified|x-codex|[-_](?:day|week|month)s?\b/

// what only a person or a hold asks is worked out when it is asked
class Diagnosed implements Fault.LimitFields {
  readonly evidence: Evidence.Evidence
  readonly attempts: number
  readonly resetsAt: Reset.Reset | undefined
  readonly #received: number
  readonly #decided: Decision
  readonly #reading: Reset.Reading

  constructor(evidence: Evidence.Evidence, received: number, decided: Decision, attempts: number) {
    this.evidence = evidence
    this.attempts = attempts
    this.#received = received
    this.#decided = decided
    this.#reading = Reset.read(evidence, received)
    this.resetsAt = this.#reading.reset
  }

  get received(): DateTime.Utc {
    return DateTime.unsafeMake(this.#received)
  }

  get because(): ReadonlyArray<Because> {
    const { field, rule, value } = this.#decided.because
    return [{ field, value: mask(value, 200), rule }, ...this.#reading.claims.map(claimed)]
  }

  get limit(): "rate" | "allowance" {
    const { meaning } = this.#decided
    if (meaning !== "RateLimited") return meaning === "RateLimited:allowance" ? "allowance" : "rate"
    const answers = this.evidence._tag === "Response" ? answersOf(this.evidence) : undefined
    return this.#reading.claims.some(({ by, waitMillis }) => waitMillis !== undefined && planned.test(by)) ||
        (answers !== undefined && answers.quotas.some((id) => Markers.allowance.test(id))) ||
        Markers.allowance.test(answers === undefined ? proseOfLeaf(this.evidence) : proseOfAnswers(answers))
      ? "allowance"
      : "rate"
  }

  get scope(): "account" | "model" {
    const quotas = this.evidence._tag === "Response" ? answersOf(this.evidence).quotas : []
    return (quotas.length > 0 ? quotas.some((id) => /model/i.test(id)) : this.limit === "rate") ? "model" : "account"
  }
}

const make = (evidence: Evidence.Evidence, options: Options, attempts: number): Fault.Fault => {
  const decided = evidence._tag === "Response"
    ? fromResponseLeaf(evidence, options.codes)
    : fromProseLeaf(evidence, options.codes)
  const fields = new Diagnosed(evidence, millisOf(options.received), decided, attempts)
  const kind = kindOf(decided.meaning)
  return kind === "RateLimited" ? new Fault.RateLimited(fields) : new Fault.plain[kind](fields)
}

/**
 * The fault that a piece of evidence means. Total: whatever the evidence holds, it gives a fault and never throws.
 *
 * @category conversions
 * @since 0.1.0
 */
export const diagnose = (evidence: Evidence.Evidence, options: Options): Fault.Fault => make(evidence, options, 1)

/**
 * The fault that an answer over HTTP means. The body must have been read.
 *
 * @example
 * ```ts
 * import { Diagnosis } from "@recourse/core"
 *
 * const fault = Diagnosis.fromResponse({ status: 529, body: "{\"error\":{\"type\":\"overloaded_error\"}}" }, { received: 0 })
 * fault._tag // "Overloaded"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromResponse = (response: Evidence.ResponseInput, options: Options): Fault.Fault =>
  diagnose(Evidence.fromResponse(response), options)

/**
 * The fault of a whole answer over HTTP, if there is one: every status but a 2xx is one, and so is a 2xx that is no JSON, holds
 * an error, or ended by failing. An answer that a cap or a content policy ended is one that its provider stands by, and none.
 *
 * It takes a text for what it claims to be: whether all of its bytes arrived is for whoever read them to say.
 *
 * @example
 * ```ts
 * import { Diagnosis } from "@recourse/core"
 *
 * Diagnosis.fromAnswer({ status: 200, body: "{\"choices\":[{\"finish_reason\":\"stop\"}]}" }, { received: 0 }) // undefined
 * Diagnosis.fromAnswer({ status: 200, body: "<html>Please sign in" }, { received: 0 })?._tag // "Unrecognized"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromAnswer = (response: Evidence.ResponseInput, options: Options): Fault.Fault | undefined => {
  const evidence = Evidence.fromResponse(response)
  return isGood(rawOf(evidence)) ? undefined : diagnose(evidence, options)
}

const isGood = ({ body, status }: ReturnType<typeof rawOf>): boolean => {
  if (status === undefined || status < 200 || status > 299) return false
  const answer = typeof body === "string" ? parse(body) : body
  const one = isList(answer) ? answer[0] : answer
  if (!isRecord(one)) return false
  const error = peek(one, "error")
  if ((error !== undefined && error !== null) || peek(one, "type") === "error") return false
  const end = StreamEnd.fromFrame(one)
  return end === undefined || end._tag === "Complete" || end._tag === "OutputCap" || end._tag === "Refused"
}

/**
 * The fault that a frame inside a stream means; the raw tail of a stream is read as the answer that broke off there.
 *
 * @example
 * ```ts
 * import { Diagnosis } from "@recourse/core"
 *
 * Diagnosis.fromFrame({ error: { code: "server_error", message: "upstream error" } }, { received: 0 })._tag // "Unavailable"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromFrame = (frame: unknown, options: Options): Fault.Fault => diagnose(Evidence.fromFrame(frame), options)

/**
 * The fault of a stream whose bytes ended in order before its protocol did.
 *
 * @example
 * ```ts
 * import { Diagnosis } from "@recourse/core"
 *
 * Diagnosis.fromCut({ received: Date.now() })._tag // "StreamCut"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromCut = (options: Options): Fault.StreamCut =>
  new Fault.StreamCut(new Diagnosed(Evidence.fromFrame(undefined), millisOf(options.received), cutShort, 1))

/**
 * The fault that anything thrown means: an SDK's error, a socket's, a DOMException, Effect's own failures, a string. A
 * fault of ours inside it comes back as it is; attempts that its maker says to have made are counted.
 *
 * @example
 * ```ts
 * import { Diagnosis } from "@recourse/core"
 *
 * const thrown = new TypeError("fetch failed", { cause: Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }) })
 * Diagnosis.fromUnknown(thrown, { received: Date.now() })._tag // "Unreachable"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromUnknown = (thrown: unknown, options: Options): Fault.Fault => {
  const ours = chain(thrown).find(Fault.isFault)
  if (ours !== undefined) return ours
  const { attempts, evidence } = Evidence.fromUnknown(thrown)
  return make(evidence, options, attempts)
}
