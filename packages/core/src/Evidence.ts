/**
 * What reached us of a failed call: an answer, a broken transport, or something that can only be surfaced.
 *
 * Evidence is read by shape and never judged here: what it means is the business of `Diagnosis`. Only a redacted view
 * of it can be read; keys, prompts, cookies, ids and addresses are masked, and every text is capped.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { chain, isError } from "./internal/chain.ts"
import { codeOf } from "./internal/codes.ts"
import { answersOf, Response, Terminal, Transport } from "./internal/leaves.ts"
import { isList, isRecord, peek } from "./internal/peek.ts"
import { verdict } from "./internal/transport.ts"

export {
  /**
   * A provider's answer, over HTTP or inside a stream. Only a redacted view can be read, and it is made at the first
   * reading; the answer itself stays private.
   *
   * @category models
   * @since 0.1.0
   */
  Response,
  /**
   * Neither an answer nor a transport fault: a request that was built wrong, a certificate that is not trusted, a breach
   * of contract, text that is corrupt, or a shape that nobody knows.
   *
   * @category models
   * @since 0.1.0
   */
  Terminal,
  /**
   * The bytes did not arrive: connect, reset, timeout, a body that dropped, a socket that closed abnormally.
   *
   * @category models
   * @since 0.1.0
   */
  Transport
}

/**
 * One of three leaves. An unknown shape is `Terminal`.
 *
 * @category models
 * @since 0.1.0
 */
export type Evidence = Response | Transport | Terminal

/**
 * A provider's answer as a program has it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResponseInput {
  readonly status: number
  /** A plain object, `Headers`, a `Map` or a list of pairs, in any letter case. */
  readonly headers?: unknown
  /** Text, bytes, or JSON that was parsed already. */
  readonly body?: unknown
}

declare class TextDecoder {
  decode(bytes: ArrayBuffer | Uint8Array): string
}

const bodyOf = (body: unknown): unknown => {
  if (typeof body !== "object" || body === null) return body
  try {
    return body instanceof Uint8Array || body instanceof ArrayBuffer ? new TextDecoder().decode(body) : body
  } catch {
    return undefined
  }
}

/**
 * The evidence of an answer over HTTP, whatever its status. It takes the answer as it is: the body must have been read.
 *
 * @example
 * ```ts
 * import * as Evidence from "@recourse/core/Evidence"
 *
 * const evidence = Evidence.fromResponse({ status: 429, headers: { "retry-after": "20" }, body: "{\"error\":{}}" })
 * evidence.headers["retry-after"] // "20"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromResponse = (response: ResponseInput): Response =>
  new Response({
    status: httpStatus(response.status, 100, 999),
    headers: response.headers,
    body: bodyOf(response.body),
    origin: "http"
  })

/**
 * The evidence of a frame inside a stream: its payload as text or parsed JSON, or the raw tail of an SSE or NDJSON
 * body. A frame has no status of its own, and a tail that no terminal frame ends is an answer that broke off.
 *
 * @example
 * ```ts
 * import * as Evidence from "@recourse/core/Evidence"
 *
 * const evidence = Evidence.fromFrame({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })
 * evidence.message // "Overloaded"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromFrame = (frame: unknown): Response =>
  new Response({ status: undefined, headers: undefined, body: bodyOf(frame), origin: "frame" })

const text = (u: unknown): string | undefined => typeof u === "string" && u !== "" ? u : undefined

/** The first candidate that can be a body: text, bytes, a list or a record; no stream and no error. */
const firstBody = (...candidates: ReadonlyArray<unknown>): unknown => {
  for (const candidate of candidates) {
    const body = bodyOf(candidate)
    if (text(body) !== undefined || isList(body)) return body
    if (isRecord(body) && !isError(body) && peek(body, "getReader") === undefined && peek(body, "pipe") === undefined) {
      return body
    }
  }
  return undefined
}

const httpStatus = (u: unknown, least = 200, most = 599): number | undefined => {
  const n = typeof u === "string" && /^\d{3}$/.test(u) ? Number(u) : u
  return typeof n === "number" && Number.isInteger(n) && n >= least && n <= most ? n : undefined
}

/** Under which keys an error carries the answer that it was made of. */
const carried = (node: unknown): unknown =>
  peek(node, "response") ?? peek(node, "httpResponse") ?? peek(node, "$response")

/** Whether what an error carries is the model's answer, and no answer over HTTP. */
const isAnswer = (u: unknown): boolean =>
  isList(peek(u, "candidates")) || isList(peek(u, "choices")) || peek(u, "promptFeedback") !== undefined

const statusOf = (node: unknown): number | undefined =>
  httpStatus(peek(node, "status")) ?? httpStatus(peek(node, "statusCode")) ??
    httpStatus(peek(peek(node, "$metadata"), "httpStatusCode")) ?? httpStatus(peek(carried(node), "status")) ??
    httpStatus(peek(carried(node), "statusCode")) ?? httpStatus(peek(node, "httpStatus")) ??
    // gaxios puts the status into `code`
    httpStatus(peek(node, "code"))

/** The answer that one object of a chain carries, and how much it says. */
const answerOf = (
  node: unknown
):
  | { readonly response: Response; readonly says: "status" | "code" | "quote" | "words" | "2xx" | "nothing" }
  | undefined =>
{
  const status = statusOf(node)
  const from = carried(node)
  const message = typeof node === "string" ? node : text(peek(node, "message"))
  const own = firstBody(
    peek(node, "responseBody"),
    peek(node, "body"),
    peek(node, "error"),
    peek(node, "value"),
    peek(node, "data"),
    peek(from, "data"),
    peek(from, "body"),
    peek(node, "$responseBodyText"),
    isAnswer(from) ? from : undefined,
    // a model that wrote to its end says so beside what could not be made of it
    typeof peek(node, "finishReason") === "string" ? { message, finishReason: peek(node, "finishReason") } : undefined
  )
  const codes: Array<string> = []
  for (const key of ["code", "type", "errorCode", "lc_error_code"]) {
    const code = text(peek(node, key))
    if (
      code !== undefined && !code.startsWith("ERR_") &&
      (status !== undefined || /^[A-Za-z]+(?:_[A-Za-z0-9]+)+$/.test(code) || isDocumented(code)) &&
      verdict(code) === undefined
    ) {
      codes.push(code)
    }
  }
  // an AWS error is named by its code, and one of an SDK by what it found
  const name = text(peek(node, "name"))
  if (
    name !== undefined &&
    (peek(node, "$metadata") !== undefined || peek(node, "$fault") !== undefined || isDocumented(name))
  ) {
    codes.push(name)
  }
  const response = new Response({
    status,
    headers: peek(node, "responseHeaders") ?? peek(node, "headers") ?? peek(from, "headers"),
    body: own ?? message,
    origin: "thrown",
    carrier: {
      codes,
      status: undefined,
      texts: own === undefined || message === undefined ? [] : [message],
      exception: undefined
    }
  })
  if (status !== undefined && status >= 300) return { response, says: "status" }
  const { list } = answersOf(response)
  const known = list.some((answer) => answer.status !== undefined || answer.codes.some(isKnown))
  if (status !== undefined) return { response, says: known ? "2xx" : "nothing" }
  if (known) return { response, says: own === undefined ? "quote" : "code" }
  return list.some((answer) => answer.codes.length > 0) || (own !== undefined && response.message !== undefined)
    ? { response, says: "words" }
    : undefined
}

const isDocumented = (code: string): boolean => codeOf(code).known !== undefined

const isKnown = (code: string): boolean => {
  const { family, known, word } = codeOf(code)
  return known !== undefined || family !== undefined || word !== undefined
}

/** The code of a broken transport that an object names: an errno, a DOMException's name, a WebSocket close. */
const transportCode = (node: unknown): string | undefined => {
  const code = peek(node, "code")
  if (typeof code === "string" && verdict(code) !== undefined) return code
  if (
    typeof code === "number" && code >= 1_000 && code <= 1_015 &&
    (peek(node, "wasClean") !== undefined || peek(node, "type") === "close" || peek(node, "reason") === "Close")
  ) return `WS_${code}`
  for (const key of ["name", "type", "errno"]) {
    const name = peek(node, key)
    if (typeof name === "string" && verdict(name) !== undefined) return name
  }
  return undefined
}

/** How a platform or `@effect/ai` error without a status says that it failed. */
const effectReason = (node: unknown): "transport" | "terminal" | undefined => {
  switch (peek(node, "_tag")) {
    case "RequestError":
    case "HttpRequestError":
      return peek(node, "reason") === "Transport" ? "transport" : "terminal"
    case "ResponseError":
    case "HttpResponseError":
      return peek(node, "reason") === "StatusCode" ? undefined : "terminal"
    case "SocketError":
      return peek(node, "reason") === "Close" ? undefined : "transport"
    // the reasons of Effect 4
    case "TransportError":
      return "transport"
    case "EncodeError":
    case "InvalidUrlError":
    case "DecodeError":
    case "EmptyBodyError":
      return "terminal"
    default:
      return undefined
  }
}

// A wrapper that says only that something failed; its cause says what.
const generic =
  /^(?:fetch failed|connection error\.?|failed to fetch|terminated|an error has occurred|unknown error|)$/i

// The whole of what a client says of an answer that stopped in the middle of its body.
const broken =
  /^(?:(?:the )?(?:stream|response|body) (?:has been |was )?(?:aborted|closed|reset|terminated)|premature close)\.?$/i

/**
 * The evidence of anything that was thrown, and how many attempts its maker says to have made. The chain is walked
 * through causes, aggregates and Effect's own failures: an answer with a status speaks before a transport fault, a
 * transport fault before an answer without one, and the innermost that states a known code or status before those that
 * wrap it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromUnknown = (thrown: unknown): { readonly evidence: Evidence; readonly attempts: number } => {
  const nodes = chain(thrown)
  let attempts = 1
  let stated: Response | undefined
  let coded: Response | undefined
  let worded: Response | undefined
  let success: Response | undefined
  let hollow: Response | undefined
  let code: string | undefined
  let reason: "transport" | "terminal" | undefined
  let wrapped = ""
  const texts: Array<string> = []
  const names: Array<string> = []
  for (const node of nodes) {
    const answer = answerOf(node)
    if (answer?.says === "status") stated = answer.response
    else if (answer?.says === "code" && stated !== undefined) stated = answer.response
    else if (answer?.says === "code" || answer?.says === "quote") coded = answer.response
    else if (answer?.says === "words") worded ??= answer.response
    else if (answer?.says === "2xx") success = answer.response
    else if (answer?.says === "nothing") hollow = answer.response
    const named = transportCode(node)
    // a deadline that fired is what aborted, whichever of the two wraps the other
    if (named !== undefined && !(verdict(named) === "aborted" && code !== undefined && verdict(code) === "timedOut")) {
      code = named
    }
    reason ??= effectReason(node)
    const message = typeof node === "string" ? node : text(peek(node, "description")) ?? text(peek(node, "message"))
    if (message !== undefined) {
      if (generic.test(message)) wrapped = message
      else if (message !== "[object Object]") texts.unshift(message)
    }
    const name = text(peek(node, "name"))
    if (name !== undefined) names.unshift(name)
    const spent = peek(peek(node, "$metadata"), "attempts") ?? peek(node, "attemptNumber") ??
      (peek(node, "lastError") === undefined ? undefined : peek(peek(node, "errors"), "length"))
    if (typeof spent === "number" && Number.isSafeInteger(spent) && spent > attempts) attempts = spent
  }
  if (stated !== undefined) return { evidence: stated, attempts }
  // a wrapper that says nothing speaks only where it wraps nothing
  const detail = texts[0] ?? (wrapped === "" ? `a value of type ${thrown === null ? "null" : typeof thrown}` : wrapped)
  const prose = { detail, text: texts.length === 0 ? wrapped : texts.join("\n").slice(0, 8_192), names }
  const found = code === undefined ? undefined : verdict(code)
  if (code !== undefined && found !== undefined) {
    return { evidence: found === "terminal" ? new Terminal(prose, code) : new Transport(prose, code), attempts }
  }
  if (code !== undefined || reason === "terminal") return { evidence: new Terminal(prose, code), attempts }
  const answered = success ?? coded ?? worded
  if (answered !== undefined) return { evidence: answered, attempts }
  // a client that had a head, and says of the rest only that it broke
  if (reason === "transport" || texts.some((text) => broken.test(text))) {
    return { evidence: new Transport(prose, undefined), attempts }
  }
  return { evidence: hollow ?? new Terminal(prose, undefined), attempts }
}

/**
 * What a leaf looks like in a log: the redacted view.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Wire = Schema.Union(
  Schema.TaggedStruct("Response", {
    status: Schema.optionalWith(Schema.Int, { exact: true }),
    origin: Schema.Literal("http", "frame", "thrown"),
    headers: Schema.Record({ key: Schema.String, value: Schema.String }),
    message: Schema.optionalWith(Schema.String, { exact: true }),
    page: Schema.optionalWith(Schema.String, { exact: true }),
    text: Schema.optionalWith(Schema.String, { exact: true })
  }),
  Schema.TaggedStruct("Transport", {
    code: Schema.optionalWith(Schema.String, { exact: true }),
    detail: Schema.String
  }),
  Schema.TaggedStruct("Terminal", {
    code: Schema.optionalWith(Schema.String, { exact: true }),
    description: Schema.String
  })
)

/**
 * A leaf as a log has it.
 *
 * @category models
 * @since 0.1.0
 */
export type Wire = typeof Wire.Type

/**
 * The redacted view of a leaf, as it is written to a log.
 *
 * @category conversions
 * @since 0.1.0
 */
export const toWire = (evidence: Evidence): Wire => {
  switch (evidence._tag) {
    case "Response":
      return {
        _tag: "Response",
        origin: evidence.origin,
        headers: evidence.headers,
        ...(evidence.status === undefined ? {} : { status: evidence.status }),
        ...(evidence.message === undefined ? {} : { message: evidence.message }),
        ...(evidence.page === undefined ? {} : { page: evidence.page }),
        ...(evidence.text === undefined ? {} : { text: evidence.text })
      }
    case "Transport":
      return {
        _tag: "Transport",
        detail: evidence.detail,
        ...(evidence.code === undefined ? {} : { code: evidence.code })
      }
    case "Terminal":
      return {
        _tag: "Terminal",
        description: evidence.description,
        ...(evidence.code === undefined ? {} : { code: evidence.code })
      }
  }
}

/**
 * The leaf that was written to a log. It shows what was written and is masked no second time.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromWire = (wire: Wire): Evidence => {
  switch (wire._tag) {
    case "Response":
      return new Response({
        status: wire.status,
        headers: wire.headers,
        body: wire.text,
        origin: wire.origin,
        logged: { message: wire.message, page: wire.page }
      })
    case "Transport":
      return new Transport({ detail: wire.detail, text: wire.detail, names: [], logged: true }, wire.code)
    case "Terminal":
      return new Terminal({ detail: wire.description, text: wire.description, names: [], logged: true }, wire.code)
  }
}
