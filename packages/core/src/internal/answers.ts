import * as StreamEnd from "../StreamEnd.ts"
import { copyOf, isList, isObject, isRecord, numberOf, peek } from "./peek.ts"

/** One structured answer: an error object, or one that it relays. */
export interface Answer {
  /** What its code, type, reason and kin say, as sent, the most specific first. */
  readonly codes: ReadonlyArray<string>
  /** The status from 400 to 599 that it states. */
  readonly status: number | undefined
  /** Its sentences, the best first. */
  readonly texts: ReadonlyArray<string>
  /** The exception that its sentence begins with: `litellm.RateLimitError: …`. It ranks with the text that it stands in. */
  readonly exception: string | undefined
}

/** What a bare number of a field counts. */
export type Unit = "s" | "ms"

/** A field that may name a reset, and the object that it stands in. Without a unit it holds headers that were relayed. */
interface Named {
  readonly key: string
  readonly value: unknown
  readonly unit: Unit | undefined
  readonly node: object
}

/** What a body says, unwrapped. */
export interface Answers {
  /** Innermost first: a relayed answer speaks before its relay. */
  readonly list: ReadonlyArray<Answer>
  /** The fields that may name a reset. */
  readonly resets: ReadonlyArray<Named>
  /** How the body says that a generation ended. */
  readonly end: StreamEnd.StreamEnd | undefined
  /** The body began as JSON and is none. */
  readonly broken: boolean
  /** The body was a stream's text, so that a status of 200 says nothing about it. */
  readonly framed: boolean
  /** A streamed answer that broke off: frames, and none of them ends it. */
  readonly cut: boolean
  /** The title of an HTML page, empty if it has none. */
  readonly page: string | undefined
  /** The ids of the quotas that a google.rpc.QuotaFailure names. */
  readonly quotas: ReadonlyArray<string>
}

const DEPTH = 16
const NODES = 256
const ITEMS = 16
const EMBEDDED_CAP = 262_144
const ABYSS = 512
const ABYSS_FROM = 8_192

type Role =
  | Unit
  | "headers"
  | "end"
  | "code"
  | "type"
  | "status"
  | "message"
  | "detail"
  | "error"
  | "inside"
  | "choices"
  | "violations"

const roles: ReadonlyMap<string, Role> = new Map(
  Object.entries(
    {
      code: "code",
      error_code: "code",
      errorCode: "code",
      err_code: "code",
      error_name: "code",
      reason: "code",
      lc_error_code: "code",
      Code: "code",
      ErrorCode: "code",
      errcode: "code",
      type: "type",
      __type: "type",
      error_type: "type",
      errorType: "type",
      name: "type",
      exception: "type",
      ":exception-type": "type",
      status: "status",
      status_code: "status",
      statusCode: "status",
      http_code: "status",
      http_status: "status",
      httpStatus: "status",
      raw_status_code: "status",
      originalStatusCode: "status",
      httpStatusCode: "status",
      message: "message",
      Message: "message",
      msg: "message",
      error_message: "message",
      errorMessage: "message",
      error_msg: "message",
      error_description: "message",
      status_msg: "message",
      status_message: "message",
      ErrorMessage: "message",
      errmsg: "message",
      originalMessage: "message",
      detail: "detail",
      details: "detail",
      title: "detail",
      description: "detail",
      raw: "detail",
      finishMessage: "detail",
      error: "error",
      err: "error",
      errors: "error",
      Error: "error",
      response: "inside",
      Response: "inside",
      header: "inside",
      innererror: "inside",
      inner_error: "inside",
      innerError: "inside",
      metadata: "inside",
      cause: "inside",
      last_error: "inside",
      lastError: "inside",
      status_details: "inside",
      base_resp: "inside",
      body: "inside",
      data: "inside",
      fault: "inside",
      upstream_error: "inside",
      provider_error: "inside",
      original_error: "inside",
      output: "inside",
      rate_limit: "inside",
      incomplete_details: "inside",
      finish_reason: "end",
      finishReason: "end",
      stop_reason: "end",
      stopReason: "end",
      candidates: "end",
      promptFeedback: "end",
      delta: "end",
      done: "end",
      messageStop: "end",
      choices: "choices",
      violations: "violations",
      headers: "headers",
      response_headers: "headers",
      resets_at: "s",
      reset_at: "s",
      resetsAt: "s",
      resetAt: "s",
      reset_time: "s",
      resetTime: "s",
      retry_at: "s",
      retryAt: "s",
      reset: "s",
      resets_in_seconds: "s",
      reset_in_seconds: "s",
      resetsInSeconds: "s",
      resets_in: "s",
      resetsIn: "s",
      reset_in: "s",
      reset_after: "s",
      reset_after_seconds: "s",
      resetAfterSeconds: "s",
      retry_after: "s",
      retryAfter: "s",
      "retry-after": "s",
      retry_after_seconds: "s",
      retryAfterSeconds: "s",
      retry_in_seconds: "s",
      retry_in: "s",
      wait_seconds: "s",
      retryDelay: "s",
      retry_delay: "s",
      quotaResetDelay: "s",
      quotaResetTimeStamp: "s",
      retry_after_ms: "ms",
      retryAfterMs: "ms",
      "retry-after-ms": "ms",
      retry_after_millis: "ms",
      retryAfterMillis: "ms",
      resets_in_ms: "ms",
      reset_after_ms: "ms",
      resetAfterMs: "ms",
      wait_ms: "ms"
    } satisfies Record<string, Role>
  )
)

interface Walk {
  /** Whether the body was parsed here, so that no getter and no proxy hides in it. */
  readonly parsed: boolean
  list: Array<Answer> | undefined
  /** How many objects and lists were met. */
  met: number
  /** Those that were met, where one may stand within itself. */
  readonly nodes: Array<object>
  readonly resets: Array<Named>
  readonly quotas: Array<string>
  end: StreamEnd.StreamEnd | undefined
}

/** Whether brackets nest deeper than any answer does; parsing them costs far more than their length. */
const isAbyss = (text: string): boolean => {
  if (text.length <= ABYSS_FROM) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 34) {
      for (i++; i < text.length && text.charCodeAt(i) !== 34; i++) if (text.charCodeAt(i) === 92) i++
    } else if (c === 91 || c === 123) {
      if (++depth > ABYSS) return true
    } else if (c === 93 || c === 125) depth--
  }
  return false
}

/** The value that a text is as JSON; nothing if it is none, or nests too deep to be worth its parsing. */
export const parse = (text: string): unknown => {
  if (isAbyss(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/** Where the bracket that opens at `start` closes, strings skipped; -1 if it never does. */
const closing = (text: string, start: number): number => {
  let depth = 0
  let quote = ""
  for (let i = start; i < text.length; i++) {
    const c = text.charAt(i)
    if (quote !== "") {
      if (c === "\\") i++
      else if (c === quote) quote = ""
    } // an apostrophe opens a string only where a Python repr can open one
    else if (c === "\"" || (c === "'" && /[{[,:(]\s?$/.test(text.slice(Math.max(start, i - 2), i)))) quote = c
    else if (c === "{" || c === "[") depth++
    else if ((c === "}" || c === "]") && --depth === 0) return i
  }
  return -1
}

const python: Readonly<Record<string, string>> = { None: "null", True: "true", False: "false" }

/** A Python repr as JSON. */
const fromRepr = (repr: string): string =>
  repr.replace(
    /b?'((?:[^'\\]|\\.)*)(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$)|\b(?:None|True|False)\b/gs,
    (whole, single: string | undefined) =>
      single === undefined
        ? python[whole] ?? whole
        : `"${single.replace(/\\'/g, "'").replace(/"/g, "\\\"").replace(/\\x([0-9a-f]{2})/gi, "\\u00$1")}"`
  )

/** Whether an object reports an error, and is no value that a sentence happens to quote. */
const isEnvelope = (value: unknown): boolean =>
  isRecord(value) &&
  ["error", "errors", "message", "msg", "detail", "status_message", "error_message", "error_msg", "body"].some((key) =>
    Object.hasOwn(value, key)
  )

/** The answer that a text quotes after a prefix, as JSON or as a Python repr, or that it is as a whole. */
const quoted = (text: string): unknown => {
  if (text.startsWith("{")) {
    const whole = parse(text)
    if (isRecord(whole)) return whole
  }
  let from = 0
  for (let tries = 0; tries < 3; tries++) {
    const curly = text.indexOf("{", from)
    if (curly < 0) return undefined
    const square = text.lastIndexOf("[", curly)
    const start = square >= from && text.slice(square + 1, curly).trim() === "" ? square : curly
    const end = closing(text, start)
    if (end > start) {
      const region = text.slice(start, end + 1)
      if (isAbyss(region)) return undefined
      const value = parse(region) ?? parse(fromRepr(region))
      if (isEnvelope(isList(value) ? value[0] : value)) return value
    }
    from = curly + 1
  }
  return undefined
}

const statusOf = (item: unknown): number | undefined => {
  const n = typeof item === "number"
    ? item
    : typeof item === "string" && item.length === 3 && /^[45]\d\d$/.test(item)
    ? Number(item)
    : 0
  return n >= 400 && n <= 599 && Number.isInteger(n) ? n : undefined
}

/** Of the letters of a code, those that it can end with, and those that it cannot. */
const letters = Array.from({ length: 128 }, (_, c) => {
  const letter = String.fromCharCode(c)
  return /\w/.test(letter) ? "last" : /[.:#/@ -]/.test(letter) ? "inner" : undefined
})

/** Whether a string names a thing, as a code does: no sentence, no URL. */
const isCode = (item: string): boolean => {
  if (item.length > 128) return false
  let letter: "last" | "inner" | undefined
  for (let i = 0; i < item.length; i++) {
    const c = item.charCodeAt(i)
    letter = letters[c]
    if (letter === undefined || (c === 47 && item.charCodeAt(i + 1) === 47)) return false
  }
  return letter === "last"
}

const isHouseNumber = (item: string): boolean =>
  (item.length === 4 || item.length === 5) && item.charCodeAt(0) < 58 && /^\d+$/.test(item)

/** A house number means nothing by itself, so it is read with the envelope that it came in, where that is a known one. */
const house = (node: Readonly<Record<string, unknown>>, key: string, under: string, code: string): string => {
  const text = typeof peek(node, key) === "string"
  const envelope = under === "base_resp"
    ? "minimax"
    : under === "header"
    ? "spark"
    : peek(node, "object") === "error"
    ? "mistral"
    : key === "error_code" && peek(node, "error_msg") !== undefined
    ? "baidu"
    : !text && (under === "errors" || under === "error")
    ? "cloudflare"
    : !text && under === "" && "data" in node
    ? "siliconflow"
    : text && under === "error"
    ? "zai"
    : undefined
  return envelope === undefined ? code : `${envelope} ${code}`
}

/** The exception that a sentence begins with: `litellm.RateLimitError: …`, `openai.BadRequestError - …`. */
export const exceptionIn = (text: string): string | undefined => {
  const space = text.indexOf(" ")
  const colon = text.charCodeAt(space - 1) === 58
  if (space < 4 || space > 256 || !(colon || text.charCodeAt(space + 1) === 45)) return undefined
  return /^(?:[A-Za-z_]\w{0,40}\.){0,5}([A-Z]\w{1,60}(?:Error|Exception|Exhausted|Unavailable|Exceeded|Behavior)|Timeout):?$/
    .exec(text.slice(0, space))?.[1]
}

/** How many items of a list are looked at. */
const itemsOf = (list: unknown): number => Math.min(ITEMS, numberOf(peek(list, "length")) || 0)

/** A list with one more item, begun with its first: one that begins empty takes room for seventeen. */
const added = <A>(list: Array<A> | undefined, item: A): Array<A> => {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

const none: ReadonlyArray<string> = []

const joined = (
  first: ReadonlyArray<string> | undefined,
  then: ReadonlyArray<string> | undefined
): ReadonlyArray<string> => first === undefined ? then ?? none : then === undefined ? first : [...first, ...then]

const visit = (walk: Walk, value: unknown, under: string, depth: number): void => {
  if (typeof value === "string") {
    if (value.length <= EMBEDDED_CAP && depth < DEPTH && value.includes("{")) {
      const inner = quoted(value)
      if (inner !== undefined) visit(walk, inner, under, depth + 1)
    }
    return
  }
  if (!isObject(value) || depth > DEPTH || walk.met >= NODES) return
  if (!walk.parsed) {
    if (walk.nodes.includes(value)) return
    walk.nodes.push(value)
  }
  walk.met++
  if (isList(value)) {
    const items = itemsOf(value)
    for (let i = 0; i < items; i++) visit(walk, peek(value, String(i)), under, depth + 1)
    return
  }

  let status: number | undefined
  // most objects have few of these or none
  let codes: Array<string> | undefined
  let texts: Array<string> | undefined
  let types: Array<string> | undefined
  let details: Array<string> | undefined
  let ends = false
  const fields = walk.parsed ? value : copyOf(value)
  // an engine reads what it enumerates far faster than what a list of names asks for
  for (const key in fields) {
    const role = roles.get(key) ?? (key.endsWith("Exception") ? "error" : undefined)
    if (role === undefined) continue
    const item = fields[key]
    if (item === null || item === undefined) continue
    switch (role) {
      case "code":
      case "type":
      case "status": {
        const stated = statusOf(item)
        if (stated !== undefined) status ??= stated
        else if (typeof item === "number" || (typeof item === "string" && role !== "status" && isHouseNumber(item))) {
          codes = added(codes, house(value, key, under, String(item)))
        } else if (typeof item === "string" && item !== "error" && item !== "") {
          if (!isCode(item)) {
            if (key === "reason") details = added(details, item)
          } else if (role === "code") codes = added(codes, item)
          else if (key === "name" && !/(?:Error|Exception)$/.test(item) && !isList(fields["errors"])) break
          else {
            types = added(types, item)
            ends ||= StreamEnd.byType.has(item)
          }
        } else visit(walk, item, key, depth + 1)
        break
      }
      case "message":
      case "detail":
        if (typeof item === "string") {
          if (role === "message") texts = added(texts, item)
          else details = added(details, item)
        }
        visit(walk, item, key, depth + 1)
        break
      case "error":
        if (typeof item === "string") {
          texts = added(texts, item)
          if (isCode(item) && !item.includes(" ")) codes = added(codes, item)
        } else if (isList(item)) {
          for (let i = 0, items = itemsOf(item); i < items; i++) {
            const said = peek(item, String(i))
            if (typeof said === "string") texts = added(texts, said)
          }
        } else if (key.endsWith("Exception")) types = added(types, key)
        visit(walk, item, key, depth + 1)
        break
      case "s":
      case "ms":
        walk.resets.push({ key, value: item, unit: role, node: value })
        break
      case "headers":
        walk.resets.push({ key, value: item, unit: undefined, node: value })
        visit(walk, item, key, depth + 1)
        break
      case "inside":
        visit(walk, item, key, depth + 1)
        break
      case "end":
        ends = true
        break
      case "choices":
        ends = true
        visit(walk, peek(peek(item, "0"), "error"), key, depth + 1)
        break
      case "violations":
        for (let i = 0, items = itemsOf(item); i < items; i++) {
          const quota = peek(peek(item, String(i)), "quotaId")
          if (typeof quota === "string") walk.quotas.push(quota)
        }
    }
  }
  if (ends) walk.end ??= StreamEnd.fromFrame(value)
  const named = joined(codes, types)
  const said = joined(texts, details)
  const first = said[0]
  if (named.length > 0 || status !== undefined || first !== undefined) {
    const exception = first === undefined ? undefined : exceptionIn(first)
    walk.list = added(walk.list, { codes: named, status, texts: said, exception })
  }
}

/** The title of a page if a text is HTML. */
export const pageOf = (text: string): string | undefined => {
  const head = text.slice(0, 4_096)
  return /^[\s\uFEFF]{0,64}(?:<!--[^>]{0,512}-->\s{0,64})?<(?:!doctype\s{1,8}html|html|head|body|center|h1|title)\b/i
      .test(head)
    ? (/<title[^>]{0,256}>([^<]{0,256})/i.exec(head)?.[1] ?? "").trim().replace(/\s+/g, " ")
    : undefined
}

/** The payloads of raw SSE or NDJSON text; none if it is neither. */
const payloads = (text: string): ReadonlyArray<{ readonly line: string; readonly payload: string }> =>
  text.slice(-EMBEDDED_CAP).split(/\r\n|\n|\r/).flatMap((line) =>
    line.startsWith("data:")
      ? [{ line, payload: line.slice(5).trim() }]
      : line.startsWith("error:")
      ? [{ line, payload: line.slice(6).trim() }]
      : line.startsWith("{")
      ? [{ line, payload: line }]
      : []
  )

/** Whether a text is a stream that has kept its connection alive and nothing else. */
const isSilence = (text: string): boolean => text.startsWith(":") && /^(?::[^\r\n]*(?:[\r\n]+|$))+$/.test(text)

/** The pieces of a JSON array that broke off, as Gemini streams it without SSE. */
const arrayed = (text: string): ReadonlyArray<unknown> => {
  const pieces: Array<unknown> = []
  for (let from = text.indexOf("{"); from >= 0 && pieces.length < ITEMS; from = text.indexOf("{", from)) {
    const end = closing(text, from)
    const piece = end < 0 ? undefined : parse(text.slice(from, end + 1))
    if (piece === undefined) return pieces
    pieces.push(piece)
    from = end
  }
  return pieces
}

const chunk =
  /^(?:message_start|message_delta|content_block_|ping$|response\.|(?:message|content|tool-call|tool-plan|citation)-(?:start|delta|end)$)/

/** Whether a value is a piece of a streamed answer, in any dialect. */
const isChunk = (value: unknown): boolean => {
  const type = peek(value, "type")
  return isList(peek(value, "choices")) || isList(peek(value, "candidates")) || peek(value, "done") === false ||
    peek(value, "is_finished") === false ||
    (typeof type === "string" && chunk.test(type))
}

/**
 * What a body says: text, or a value that was parsed already. `frame` says that it came inside a stream, where a piece
 * of an answer with nothing after it is an answer that broke off; `carrier` is what the object that carried the body
 * says about itself, which comes last.
 */
export const unwrap = (body: unknown, frame: boolean, carrier?: Answer): Answers => {
  const walk: Walk = {
    parsed: typeof body === "string",
    list: undefined,
    met: 0,
    nodes: [],
    resets: [],
    quotas: [],
    end: undefined
  }
  let page: string | undefined
  let pieces = false
  let framed = frame
  let broken = false
  if (typeof body === "string") {
    const first = body.charCodeAt(0) <= 32 ? body.trimStart().charAt(0) : body.charAt(0)
    const value = first === "{" || first === "[" || first === "\"" ? parse(body) : undefined
    if (typeof value === "string") return unwrap(value, frame, carrier)
    if (value !== undefined && value !== null) {
      visit(walk, value, "", 0)
      pieces = frame && isChunk(value)
    } else {
      page = first === "<" || first === "\uFEFF" ? pageOf(body) : undefined
      broken = first === "{" || first === "["
      for (const { line, payload } of page === undefined ? payloads(body) : []) {
        const piece = parse(payload) ?? (payload === "[DONE]" ? payload : undefined)
        if (piece === undefined) continue
        framed ||= payload !== line || isChunk(piece)
        broken = false
        walk.met = 0
        pieces ||= isChunk(piece)
        walk.end ??= StreamEnd.fromFrame(piece)
        visit(walk, piece, "", 0)
      }
      if (frame && broken && first === "[") {
        for (const piece of arrayed(body.slice(-EMBEDDED_CAP))) {
          walk.met = 0
          pieces ||= isChunk(piece)
          walk.end ??= StreamEnd.fromFrame(piece)
          visit(walk, piece, "", 0)
        }
      }
      if (isSilence(body)) {
        framed = true
        pieces = true
      }
      if (page === undefined && !pieces && walk.list === undefined) {
        visit(walk, body, "", 0)
        if (body !== "") {
          walk.list = added(walk.list, { codes: none, status: undefined, texts: [body], exception: exceptionIn(body) })
        }
      }
    }
  } else {
    visit(walk, body, "", 0)
    pieces = frame && isChunk(body)
  }
  if (carrier !== undefined) walk.list = added(walk.list, carrier)
  return {
    list: walk.list ?? [],
    resets: walk.resets,
    quotas: walk.quotas,
    end: walk.end,
    framed,
    broken,
    cut: pieces && walk.end === undefined,
    page
  }
}
