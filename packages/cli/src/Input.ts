/**
 * From a saved failure in any of the forms in which people have one, to its fault.
 *
 * @since 0.1.0
 */
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as StreamEnd from "@recourse/core/StreamEnd"
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { createParser } from "eventsource-parser"

/**
 * The forms that an input can have: an answer as `curl -i` prints it, a body alone, a row of the corpus, a thrown error
 * as JSON, and the transcript of an event stream.
 *
 * @category models
 * @since 0.1.0
 */
export const forms = ["response", "body", "row", "thrown", "sse"] as const

/**
 * @category models
 * @since 0.1.0
 */
export type Form = (typeof forms)[number]

/**
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The form; detected if it is left out. */
  readonly as?: Form | undefined
  /** The status of a body that comes without one. */
  readonly status?: number | undefined
  /** When it was received; the answer's `date` header if it is left out, else `now`. */
  readonly received?: Date | undefined
  readonly now: Date
}

/**
 * What one input says: a fault, or an answer that ended as its protocol asks.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reading {
  readonly id: string | number | undefined
  readonly form: Form
  readonly found: Fault.Fault | StreamEnd.StreamEnd
}

/**
 * An input that cannot be read: which part of it, and what would mend it.
 *
 * @category errors
 * @since 0.1.0
 */
export class InputInvalid extends Data.TaggedError("InputInvalid")<{ readonly field: string; readonly mend: string }> {
  override get message(): string {
    return `${this.field}: ${this.mend}`
  }
}

const Row = Schema.Struct({
  id: Schema.optional(Schema.Union(Schema.String, Schema.Number)),
  received: Schema.Union(Schema.DateFromString, Schema.DateFromNumber).pipe(
    Schema.validDate({ message: () => "an instant: ISO text, or epoch milliseconds" })
  ).annotations({ message: () => "an instant: ISO text, or epoch milliseconds" }),
  source: Schema.Struct({
    kind: Schema.Literal("response", "body_2xx", "stream_frame", "transport", "thrown").annotations({
      message: () => "one of response, body_2xx, stream_frame, transport, thrown"
    }),
    status: Schema.optional(Schema.NullOr(Schema.Number)),
    headers: Schema.optional(Schema.Unknown),
    body: Schema.optional(Schema.Unknown),
    error: Schema.optional(Schema.Unknown)
  })
})

const decodeRow = Schema.decodeUnknownEither(Row)

const isRecord = (u: unknown): u is { readonly [key: string]: unknown } =>
  typeof u === "object" && u !== null && !Array.isArray(u)

/** An error with lists of causes, outermost first, as the chains that were thrown. */
const chained = (error: unknown): unknown => {
  if (Array.isArray(error)) return error.map(chained)
  if (!isRecord(error)) return error
  const { causes, ...own } = error
  const thrown = Object.fromEntries(Object.entries(own).map(([key, value]) => [key, chained(value)]))
  if (!Array.isArray(causes)) return thrown
  const list: ReadonlyArray<unknown> = causes
  const cause = list.reduceRight<unknown>(
    (below, outer) => isRecord(outer) && below !== undefined ? { ...outer, cause: below } : outer,
    undefined
  )
  return cause === undefined ? thrown : { ...thrown, cause }
}

/**
 * Reads one row of the corpus: `{ id, source, received }`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromRow = (row: unknown): Either.Either<Reading, InputInvalid> =>
  Either.mapBoth(decodeRow(row), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      const field = issue?.path.join(".") ?? ""
      return new InputInvalid({
        field: field === "" ? "row" : field,
        mend: issue?.message ?? "a row has id, source and received"
      })
    },
    onRight: ({ id, received, source }) => ({
      id,
      form: "row",
      found: source.kind === "stream_frame"
        ? Diagnosis.fromFrame(source.body, { received })
        : source.kind === "response" || source.kind === "body_2xx"
        ? Diagnosis.fromResponse(
          { status: source.status ?? 0, headers: source.headers, body: source.body ?? undefined },
          { received }
        )
        : Diagnosis.fromUnknown(chained(source.error), { received })
    })
  })

const parse = (text: string): Option.Option<unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return Option.some(value)
  } catch {
    return Option.none()
  }
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: string
}

const statusLine = /^HTTP\/\d(?:\.\d)?\s+(\d{3})\b[^\n]*(?:\n|$)/

/** An answer as `curl -i` prints it. Interim answers, redirects and a proxy's own come first; the last one counts. */
const headOf = (text: string): Head | undefined => {
  let rest = text.replace(/^\uFEFF?\s*/, "")
  let head: Head | undefined
  for (let line = statusLine.exec(rest); line !== null; line = statusLine.exec(rest)) {
    rest = rest.slice(line[0].length)
    const headers: Array<readonly [string, string]> = []
    // a value may go on in lines that begin with a blank
    const field = /^([^\s:]+):[ \t]*([^\r\n]*(?:\r?\n[ \t]+[^\r\n]+)*)\r?(?:\n|$)/
    for (let header = field.exec(rest); header !== null; header = field.exec(rest)) {
      headers.push([header[1] ?? "", (header[2] ?? "").replace(/\s+/g, " ").trim()])
      rest = rest.slice(header[0].length)
    }
    rest = rest.replace(/^\r?\n/, "")
    head = { status: Number(line[1]), headers, body: rest }
  }
  return head
}

const dateOf = (headers: Head["headers"]): Date | undefined => {
  const date = headers.find(([name]) => name.toLowerCase() === "date")?.[1]
  return date === undefined || Number.isNaN(Date.parse(date)) ? undefined : new Date(date)
}

const erred = (frame: unknown, event: string | undefined): boolean =>
  event === "error" || (isRecord(frame) && (frame["type"] === "error" || (frame["error"] ?? undefined) !== undefined))

/** A transcript: the frame that reports a failure, else how the stream ended, else an answer that broke off. */
const fromTranscript = (text: string, received: Date): Reading["found"] => {
  let end: StreamEnd.StreamEnd | undefined
  let failed: unknown
  const parser = createParser({
    onEvent: ({ data, event }) => {
      const frame = Option.getOrElse(parse(data), () => data)
      const ends = StreamEnd.fromFrame(frame)
      if (
        failed === undefined &&
        (erred(frame, event) || (ends !== undefined && ends._tag !== "Complete" && ends._tag !== "OutputCap"))
      ) {
        failed = frame
      }
      // an output cap is told before the frame that closes the stream
      if (end === undefined || end._tag === "Complete") end = ends ?? end
    }
  })
  parser.feed(asEvents(text.replace(/^\uFEFF/, "")))
  // the last event of a transcript may lack its blank line
  parser.feed("\n\n")
  return failed === undefined
    ? end ?? Diagnosis.fromFrame(text, { received })
    : Diagnosis.fromFrame(failed, { received })
}

/** Lines of JSON, as Ollama streams them, become events; an event stream stays as it is. */
const asEvents = (text: string): string =>
  text.trimStart().startsWith("{") ? text.split(/\r?\n/).map((line) => `data: ${line}\n\n`).join("") : text

const isTranscript = (text: string): boolean => {
  if (/^\s*(?:event|data|id|retry|):/.test(text)) return true
  const first = parse(text.trimStart().split("\n", 1)[0] ?? "")
  return text.trim().includes("\n") && Option.isSome(first) && isRecord(first.value) &&
    (typeof first.value["done"] === "boolean" || "choices" in first.value || "candidates" in first.value)
}

const isThrown = (value: unknown): boolean =>
  isRecord(value) && value["error"] === undefined && (
    ["stack", "cause", "causes", "errno", "syscall", "statusCode", "responseBody", "$metadata", "$fault", "lastError"]
      .some((key) => key in value) || ("name" in value && "message" in value)
  )

const isSaved = (
  value: unknown
): value is { readonly status: number; readonly headers?: unknown; readonly body?: unknown } =>
  isRecord(value) && typeof value["status"] === "number" && ("headers" in value || "body" in value) &&
  !("message" in value)

const detect = (text: string): Form => {
  if (statusLine.test(text.trimStart())) return "response"
  if (isTranscript(text)) return "sse"
  const value = parse(text)
  if (Option.isSome(value)) {
    const one: unknown = Array.isArray(value.value) ? value.value[0] : value.value
    if (isRecord(one) && isRecord(one["source"])) return "row"
    if (isSaved(value.value)) return "response"
    return isThrown(value.value) ? "thrown" : "body"
  }
  const first = parse(text.trimStart().split("\n", 1)[0] ?? "")
  return Option.isSome(first) && isRecord(first.value) && isRecord(first.value["source"]) ? "row" : "body"
}

/** A success that ended as its protocol asks is no fault. */
const unlessGood = (status: number, body: string, fault: () => Fault.Fault): Reading["found"] => {
  const value = parse(body)
  const end = status >= 200 && status < 300 && Option.isSome(value) && !erred(value.value, undefined)
    ? StreamEnd.fromFrame(value.value)
    : undefined
  return end !== undefined && (end._tag === "Complete" || end._tag === "OutputCap") ? end : fault()
}

const rowsOf = (text: string): ReadonlyArray<Option.Option<unknown>> => {
  const whole = parse(text)
  if (Option.isSome(whole)) return Array.isArray(whole.value) ? whole.value.map(Option.some) : [whole]
  return text.split("\n").filter((line) => line.trim() !== "").map(parse)
}

const noJson = new InputInvalid({ field: "input", mend: "not JSON; save the whole object, or name the form with --as" })

/**
 * Reads a whole input. A file of rows gives a reading for each; every other form gives one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const read = (text: string, options: Options): Either.Either<ReadonlyArray<Reading>, InputInvalid> => {
  if (text.trim() === "" && options.status === undefined) {
    return Either.left(
      new InputInvalid({ field: "input", mend: "it is empty; name its status with --status if the answer was" })
    )
  }
  const form = options.as ?? detect(text)
  const received = options.received ?? options.now
  const one = (found: Reading["found"]): Either.Either<ReadonlyArray<Reading>> =>
    Either.right([{ id: undefined, form, found }])
  switch (form) {
    case "row":
      return Either.all(
        rowsOf(text).map((row, i) =>
          Either.mapLeft(
            Option.match(row, { onNone: () => Either.left(noJson), onSome: fromRow }),
            ({ field, mend }) => new InputInvalid({ field: `row ${i + 1}, ${field}`, mend })
          )
        )
      )
    case "thrown":
      return Option.match(parse(text), {
        onNone: () => one(Diagnosis.fromUnknown(text.trim(), { received })),
        onSome: (value) => one(Diagnosis.fromUnknown(chained(value), { received }))
      })
    case "sse":
      return one(fromTranscript(text, received))
    case "response": {
      const saved = parse(text)
      const head = Option.isSome(saved) && isSaved(saved.value)
        ? {
          status: saved.value.status,
          headers: saved.value.headers,
          body: typeof saved.value.body === "string" ? saved.value.body : JSON.stringify(saved.value.body ?? ""),
          date: undefined
        }
        : Option.map(Option.fromNullable(headOf(text)), (found) => ({ ...found, date: dateOf(found.headers) })).pipe(
          Option.getOrUndefined
        )
      if (head === undefined) {
        return Either.left(
          new InputInvalid({
            field: "input",
            mend: "no status line; save it with curl -i, or use --as body --status N"
          })
        )
      }
      const at = options.received ?? head.date ?? options.now
      return one(
        head.status < 300 && isTranscript(head.body)
          ? fromTranscript(head.body, at)
          : unlessGood(head.status, head.body, () => Diagnosis.fromResponse(head, { received: at }))
      )
    }
    case "body": {
      const { status } = options
      return one(
        status === undefined
          ? Option.isSome(parse(text))
            ? unlessGood(200, text, () => Diagnosis.fromFrame(text, { received }))
            : Diagnosis.fromUnknown(text.trim(), { received })
          : unlessGood(status, text, () => Diagnosis.fromResponse({ status, body: text }, { received }))
      )
    }
  }
}
