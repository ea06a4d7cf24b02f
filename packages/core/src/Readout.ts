/**
 * How a fault reads: one sentence, or a headline with ordered fields. Neutral about presentation: an instant stays an
 * instant, so that a renderer can localise it.
 *
 * Every text is masked and capped: a sentence of the provider at 300 characters in the summary and 1,024 in its field,
 * a body at 1,024. An HTML page is named by its title, never spilled.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import type { Evidence } from "./Evidence.ts"
import { pageOf } from "./internal/answers.ts"
import { isRequestId } from "./internal/leaves.ts"
import { cap, mask } from "./internal/mask.ts"
import { isList, isRecord, textOf } from "./internal/peek.ts"
import type { Reset } from "./Reset.ts"

/**
 * A field of the evidence, what stood in it, and the rule that read it so. Values are masked, at most 200 characters.
 *
 * @category models
 * @since 0.1.0
 */
export interface Because {
  readonly field: string
  readonly value: string
  readonly rule: string
}

interface Words {
  readonly headline: string
  readonly next: string
}

const words = {
  RateLimited: {
    headline: "Rate limited",
    next: "Wait for the reset, or back off, and retry; fewer calls at once or a higher limit keep it from coming back."
  },
  Overloaded: {
    headline: "The provider is overloaded",
    next: "Back off and retry; another model or provider answers sooner if this goes on."
  },
  Unavailable: {
    headline: "The provider is unavailable",
    next: "Back off and retry; if this goes on, look at the provider's status page."
  },
  Unreachable: {
    headline: "The provider could not be reached",
    next: "Retry; if this goes on, check the network, the proxy and the host of the base URL."
  },
  TimedOut: {
    headline: "The call timed out",
    next: "Retry; if this goes on, send a smaller request or allow more time."
  },
  StreamCut: {
    headline: "The answer broke off",
    next: "Retry while nothing of the answer has been shown; once some has, keep it and continue from there."
  },
  GenerationMalformed: {
    headline: "The model wrote what the provider could not parse",
    next: "Sample again at once; if this goes on, simplify the tool's schema."
  },
  CredentialRejected: {
    headline: "The credential was rejected",
    next: "Check the key, its permissions and the project that it belongs to; retrying cannot help."
  },
  QuotaExhausted: {
    headline: "There is nothing left to spend",
    next: "Add credit, raise the spending limit or change the plan; waiting does not refill it."
  },
  ContextOverflowed: {
    headline: "The input is too long for the model",
    next: "Compact or trim the input, ask for less output, or use a model with a larger window."
  },
  ContentRefused: {
    headline: "A content policy refused the request",
    next: "Change what is asked; the same request is refused again."
  },
  RequestRejected: {
    headline: "The request was rejected",
    next: "Change the request: its parameters, its size or the model that it names; the same request is rejected again."
  },
  Aborted: {
    headline: "The caller aborted the call",
    next: "Nothing: somebody asked for this."
  },
  Unrecognized: {
    headline: "The failure was not recognized",
    next: "Read what came back; if it is an error of a provider, teach its code to the diagnosis."
  }
} satisfies Record<string, Words>

/**
 * The kinds of fault: every tag that a fault can have.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = keyof typeof words

/**
 * What a readout is made from; every fault is one.
 *
 * @category models
 * @since 0.1.0
 */
export interface Subject {
  readonly _tag: Kind
  readonly evidence: Evidence
  readonly because: ReadonlyArray<Because>
  readonly received: DateTime.Utc
  readonly resetsAt?: Reset | undefined
  readonly attempts: number
  readonly limit?: "rate" | "allowance"
  readonly scope?: "account" | "model"
}

/**
 * A label and its value: text, or an instant for the renderer to localise.
 *
 * @category models
 * @since 0.1.0
 */
export interface Field {
  readonly label: string
  readonly value: string | DateTime.Utc
}

/**
 * A fault as a person reads it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Readout {
  readonly headline: string
  /** In the order in which a person wants them, what to do next last. */
  readonly fields: ReadonlyArray<Field>
}

const SENTENCE_CAP = 300
const BODY_CAP = 1_024
const ENTRIES = 32
const DEPTH = 16

/** Text that moves no cursor and turns no line around. */
const printable = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200E\u200F\u202A-\u202E\u2066-\u2069]/g, "")

const line = (text: string): string => printable(text.replace(/\s+/g, " ")).trim()

const statusOf = (evidence: Evidence): number | undefined => evidence._tag === "Response" ? evidence.status : undefined

/** Whose clock ran out, and which of its bounds. */
const clocks: ReadonlyMap<string, string> = new Map([
  ["RECOURSE_HEADERS_TIMEOUT", "Recourse's, to the headers"],
  ["RECOURSE_CHUNK_TIMEOUT", "Recourse's, from one chunk to the next"],
  ["UND_ERR_HEADERS_TIMEOUT", "undici's headersTimeout"],
  ["UND_ERR_BODY_TIMEOUT", "undici's bodyTimeout"],
  ["TimeoutError", "an AbortSignal.timeout of the caller's"]
])

/** What was said, in the words of whoever said it. */
const said = (evidence: Evidence): string => {
  switch (evidence._tag) {
    case "Response": {
      const page = evidence.page
      return page === undefined
        ? evidence.message ?? ""
        : page === ""
        ? "an HTML page without a title"
        : `an HTML page titled "${page}"`
    }
    case "Transport":
      return evidence.detail
    case "Terminal":
      return evidence.description
  }
}

const headline = (subject: Subject): string =>
  subject.limit === "allowance" ? "The plan's allowance is spent" : words[subject._tag].headline

const codeOf = (subject: Subject): string | undefined =>
  (subject.evidence._tag === "Response" ? undefined : subject.evidence.code) ??
    subject.because.find((because) => because.field === "code")?.value

/**
 * One sentence, the same wherever the fault is printed; a fault's `message` is this. Instants are in UTC.
 *
 * @category conversions
 * @since 0.1.0
 */
export const summary = (subject: Subject): string => {
  const marks = [statusOf(subject.evidence), codeOf(subject)].filter((mark) => mark !== undefined).join(", ")
  const words = cap(line(said(subject.evidence)).replace(/[.!]$/, ""), SENTENCE_CAP)
  const reset = subject.resetsAt === undefined ? "" : `; resets at ${DateTime.formatIso(subject.resetsAt.at)}`
  return `${headline(subject)}${marks === "" ? "" : ` (${marks})`}${words === "" ? "" : `: ${words}`}${reset}.`
}

/** The leaves of a parsed body as `path: value`, without what has been said already. */
const leaves = (value: unknown, path: string, told: ReadonlySet<string>, out: Array<string>, depth = 0): void => {
  if (out.length >= ENTRIES || depth > DEPTH || value === null || value === undefined || value === "") return
  if (isList(value)) value.slice(0, ENTRIES).forEach((item, i) => leaves(item, `${path}[${i}]`, told, out, depth + 1))
  else if (isRecord(value)) {
    for (const key in value) {
      leaves(value[key], path === "" ? key : `${path}.${key}`, told, out, depth + 1)
    }
  } else {
    const text = line(textOf(value) ?? "")
    if (!told.has(text)) out.push(`${path === "" ? "" : `${path}: `}${cap(text, 200)}`)
  }
}

const dump = (text: string, told: ReadonlySet<string>): string => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const plain = line(text)
    return told.has(plain) ? "" : cap(plain, BODY_CAP)
  }
  const out: Array<string> = []
  leaves(value, "", told, out)
  return cap(out.join("; "), BODY_CAP)
}

/**
 * A body as a message may quote it: masked, without control characters, at most 1,024 characters. A JSON body becomes
 * its leaves, an HTML page its title, and what the content type says is no text only its size.
 *
 * @example
 * ```ts
 * import * as Readout from "@recourse/core/Readout"
 *
 * Readout.body("<html><title>502 Bad Gateway</title></html>", "text/html") // an HTML page titled "502 Bad Gateway"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const body = (text: string, contentType?: string): string => {
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? ""
  if (/^(?:image|audio|video|font)\/|octet-stream|^application\/(?:zip|gzip|pdf)$/.test(type)) {
    return `${cap(type, 64)}, ${text.length} characters`
  }
  const page = pageOf(text)
  if (page !== undefined || type === "text/html") {
    return page === undefined || page === ""
      ? "an HTML page without a title"
      : `an HTML page titled "${mask(line(page), 256)}"`
  }
  return dump(mask(text), new Set())
}

/**
 * A headline and the fields below it. A body is dumped only as far as no other field says the same.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromFault = (subject: Subject): Readout => {
  const { evidence } = subject
  const status = statusOf(evidence)
  const code = codeOf(subject)
  const words_ = printable(said(evidence))
  const fields: Array<Field> = []
  const add = (label: string, value: string | DateTime.Utc | undefined): void => {
    if (value === undefined || value === "") return
    fields.push({ label, value: typeof value === "string" ? cap(printable(value), BODY_CAP) : value })
  }
  add("status", status === undefined ? undefined : String(status))
  add("code", code)
  add("said", words_)
  if (evidence._tag === "Transport" && evidence.code !== undefined) add("clock", clocks.get(evidence.code))
  if (subject.limit !== undefined) {
    add("limit", `${subject.limit === "rate" ? "a rate" : "a plan's allowance"}, per ${subject.scope ?? "model"}`)
  }
  add("resets at", subject.resetsAt?.at)
  if (subject.attempts !== 1) add("attempts", String(subject.attempts))
  const [decided] = subject.because
  add("decided by", decided === undefined ? undefined : `${decided.field} ${decided.value}: ${decided.rule}`)
  if (evidence._tag === "Response") {
    for (const [name, value] of Object.entries(evidence.headers)) if (isRequestId(name)) add(name, value)
    if (evidence.text !== undefined && evidence.page === undefined) {
      add("body", dump(evidence.text, new Set([line(words_), code ?? "", String(status), "error", "true", "false"])))
    }
  }
  add("next", words[subject._tag].next)
  return { headline: headline(subject), fields }
}
