import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as FastCheck from "effect/FastCheck"
import { codeOf, families, groups } from "../src/internal/codes.ts"
import * as Markers from "../src/internal/markers.ts"

const at = { received: Date.parse("2026-01-10T10:00:00Z") }

const http = (status: number, body?: unknown, headers?: unknown) =>
  Diagnosis.fromResponse({ status, body, headers }, at)
const frame = (body: unknown) => Diagnosis.fromFrame(body, at)
const thrown = (error: unknown) => Diagnosis.fromUnknown(error, at)
const said = (status: number, message: string) => http(status, { error: { message } })

describe("Diagnosis by status alone", () => {
  const rows: ReadonlyArray<readonly [tag: string, ...statuses: ReadonlyArray<number>]> = [
    ["RequestRejected", 400, 404, 405, 409, 410, 413, 415, 418, 422, 424, 425, 431, 451, 499, 501, 505, 511],
    ["CredentialRejected", 401, 403],
    ["QuotaExhausted", 402],
    ["TimedOut", 408],
    ["RateLimited", 429],
    ["Unavailable", 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 530, 599],
    ["Overloaded", 529],
    ["Unrecognized", 100, 204, 302, 304, 999, Number.NaN]
  ]
  for (const [tag, ...statuses] of rows) {
    it(tag, () => {
      for (const status of statuses) assert.strictEqual(http(status)._tag, tag, String(status))
    })
  }
})

describe("Diagnosis, what outranks what", () => {
  it("a code outranks the status", () => {
    assert.strictEqual(http(401, { error: { type: "CreditsError" } })._tag, "QuotaExhausted")
    assert.strictEqual(
      http(429, { error: { code: "insufficient_quota" } }, { "retry-after": "1" })._tag,
      "QuotaExhausted"
    )
    assert.strictEqual(http(400, { error: { code: "overloaded_error" } })._tag, "Overloaded")
  })

  it("the status outranks a word that only repeats its family", () => {
    for (
      const word of ["invalid_request_error", "api_error", "INTERNAL", "UNAVAILABLE", "BadRequestError", "server_error"]
    ) {
      assert.strictEqual(http(429, { error: { type: word } })._tag, "RateLimited", word)
      assert.notStrictEqual(frame({ error: { type: word } })._tag, "Unrecognized", word)
    }
  })

  it("a purse outranks a throttle in one answer", () => {
    assert.strictEqual(
      http(429, { error: { code: "rate_limit_exceeded", type: "insufficient_quota" } })._tag,
      "QuotaExhausted"
    )
  })

  it("the innermost answer's status outranks the relay's", () => {
    assert.strictEqual(
      http(400, { error: { code: 400, message: "upstream: {\"error\":{\"code\":\"429\"}}" } })._tag,
      "RateLimited"
    )
    assert.strictEqual(
      http(502, { error: { metadata: { raw: "{\"error\":{\"code\":401}}" } } })._tag,
      "CredentialRejected"
    )
  })

  it("a malformed generation is read before the status", () => {
    assert.strictEqual(
      http(200, { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] })._tag,
      "GenerationMalformed"
    )
    assert.strictEqual(
      http(400, { error: { code: "tool_use_failed", type: "invalid_request_error" } })._tag,
      "GenerationMalformed"
    )
  })

  it("a string code in a frame implies no status, a number is one", () => {
    assert.strictEqual(frame({ error: { code: "server_error" } })._tag, "Unavailable")
    assert.strictEqual(frame({ error: { code: 503, message: "The model is overloaded" } })._tag, "Overloaded")
    assert.strictEqual(
      frame({ error: { status: 500, message: "upstream authentication service" } })._tag,
      "Unavailable"
    )
  })

  it("case, separators and namespaces of a code do not matter", () => {
    for (const code of ["rate_limit_exceeded", "RateLimitExceeded", "RATE-LIMIT-EXCEEDED", "rateLimitExceeded"]) {
      assert.strictEqual(http(400, { error: { code } })._tag, "RateLimited", code)
    }
    assert.strictEqual(
      http(400, {}, { "x-amzn-errortype": "ThrottlingException:http://internal/" })._tag,
      "RateLimited"
    )
    assert.strictEqual(http(400, { __type: "com.amazon.coral.service#ThrottlingException" })._tag, "RateLimited")
  })

  it("but for two that differ in nothing else", () => {
    const volcengine = http(429, { error: { code: "AccountQuotaExceeded" } })
    assert.isTrue(volcengine._tag === "RateLimited" && volcengine.limit === "allowance")
    assert.strictEqual(http(429, { error: { code: "account_quota_exceeded" } })._tag, "QuotaExhausted")
  })

  it("a header's code speaks before the status that the body repeats, and after the body's own code", () => {
    const headers = { "x-amzn-errortype": "ModelErrorException" }
    assert.strictEqual(http(424, { message: "the model failed", originalStatusCode: 424 }, headers)._tag, "Unavailable")
    assert.strictEqual(http(424, { code: "overloaded_error", originalStatusCode: 424 }, headers)._tag, "Overloaded")
  })

  it("a model that is full outranks the throttle that tells of it", () => {
    const error = { __type: "com.amazon.x#ThrottlingException", reason: "INSUFFICIENT_MODEL_CAPACITY" }
    assert.strictEqual(http(429, error)._tag, "RateLimited")
    assert.strictEqual(http(429, { code: "rate_limit_exceeded", type: "overloaded_error" })._tag, "Overloaded")
  })

  it("a gateway's 504 is a clock's where a code says so", () => {
    assert.strictEqual(http(504, { fault: { detail: { reason: "TARGET_READ_TIMEOUT" } } })._tag, "TimedOut")
    assert.strictEqual(http(504, "x", { "x-vercel-error": "FUNCTION_INVOCATION_TIMEOUT" })._tag, "TimedOut")
    assert.strictEqual(http(504)._tag, "Unavailable")
    assert.strictEqual(http(503, { code: "acme_upstream_timeout" })._tag, "Unavailable")
  })

  it("sentences in a list, beside a name that is their code", () => {
    const body = (name: string, sentence: string) => ({ id: "1", name, errors: [sentence] })
    assert.strictEqual(http(403, body("content_moderation", "no"))._tag, "ContentRefused")
    assert.strictEqual(http(403, body("x", "flagged by our content moderation system"))._tag, "ContentRefused")
    assert.strictEqual(http(403, { name: "content_moderation" })._tag, "CredentialRejected")
  })

  it("a house number of Spark's, and its stop by the clock of Cohere's", () => {
    const spark = (code: number) => frame({ header: { code, message: "x", sid: "1" } })._tag
    assert.deepStrictEqual([10_907, 11_202, 10_110].map(spark), ["ContextOverflowed", "RateLimited", "Overloaded"])
    assert.strictEqual(frame({ type: "message-end", delta: { finish_reason: "TIMEOUT" } })._tag, "TimedOut")
    assert.strictEqual(
      frame("{\"is_finished\":false,\"text\":\"a\"}\n{\"is_finished\":false,\"text\":\"b\"}\n")._tag,
      "StreamCut"
    )
  })

  it("what a model wrote wrong is asked for again, whatever the status under which it is told", () => {
    assert.strictEqual(said(400, "Model response did not respect the required format.")._tag, "GenerationMalformed")
    for (const status of [424, 500]) {
      assert.strictEqual(said(status, "error parsing tool call: raw='{', err=EOF")._tag, "GenerationMalformed")
    }
    // a request can hold such a call as well, which is malformed however often it is sent
    assert.strictEqual(said(400, "failed to parse tool call arguments")._tag, "RequestRejected")
    assert.strictEqual(said(401, "error parsing tool call")._tag, "CredentialRejected")
  })

  it("who is shut out is shut out, whatever for", () => {
    const error = {
      type: "user_blocked",
      message: "Your access has been restricted due to repeated policy violations."
    }
    assert.strictEqual(http(403, { error })._tag, "CredentialRejected")
    assert.strictEqual(said(403, "blocked due to repeated policy violations")._tag, "ContentRefused")
  })

  it("a pool in the name of a code is empty where the status rejects, and a throttle's where it throttles", () => {
    const pool = (status: number) => http(status, { errors: [{ code: "acme_token_quota_reached" }] })._tag
    assert.deepStrictEqual([403, 400, 429, 503].map(pool), [
      "QuotaExhausted",
      "QuotaExhausted",
      "RateLimited",
      "Unavailable"
    ])
  })

  it("words say why a stream ended where its stop reason says only that it failed", () => {
    const failed = (message?: string) =>
      frame({ choices: [{ finish_reason: "error" }], error: message === undefined ? {} : { message } })._tag
    assert.strictEqual(failed(), "Unavailable")
    assert.strictEqual(failed("Upstream idle timeout exceeded"), "TimedOut")
  })

  it("a house number means something only in its envelope", () => {
    assert.strictEqual(http(400, { error: { code: "1261", message: "too much" } })._tag, "ContextOverflowed")
    assert.strictEqual(http(200, { base_resp: { status_code: 1008, status_msg: "no" } })._tag, "QuotaExhausted")
    assert.strictEqual(http(400, { object: "error", code: "3051" })._tag, "ContextOverflowed")
    assert.strictEqual(http(400, { object: "error", code: "1261" })._tag, "RequestRejected")
    assert.strictEqual(http(400, { success: false, errors: [{ code: 3036 }] })._tag, "RateLimited")
  })

  it("a caller's own codes come first, numbers too", () => {
    const codes = { gateway_melted: "Overloaded", "4711": "RateLimited:allowance", slow_down: "Unavailable" } as const
    const own = (code: unknown) => Diagnosis.fromResponse({ status: 400, body: { error: { code } } }, { ...at, codes })
    assert.strictEqual(own("gateway_melted")._tag, "Overloaded")
    assert.strictEqual(own("slow_down")._tag, "Unavailable")
    const fault = own(4711)
    assert.isTrue(fault._tag === "RateLimited" && fault.limit === "allowance")
    assert.strictEqual(own("toString")._tag, "RequestRejected")
  })

  it("an undocumented code is known by its words, but turns no surfaced status into a retry", () => {
    assert.strictEqual(frame({ error: { type: "acme_rate_limit_hit" } })._tag, "RateLimited")
    assert.strictEqual(http(400, { error: { type: "acme_rate_limit_hit" } })._tag, "RequestRejected")
    assert.strictEqual(http(429, { error: { type: "acme_credit_exhausted" } })._tag, "QuotaExhausted")
    assert.strictEqual(http(500, { error: { type: "acme_authentication_error" } })._tag, "Unavailable")
  })
})

describe("Diagnosis, what may not speak", () => {
  it("an exception that a sentence names ranks with the text", () => {
    assert.strictEqual(said(400, "ThrottlingException: slow")._tag, "RequestRejected")
    assert.strictEqual(said(400, "litellm.ContextWindowExceededError: too much")._tag, "ContextOverflowed")
    assert.strictEqual(thrown(new Error("litellm.RateLimitError: slow"))._tag, "RateLimited")
    // what a relay makes of anything says less than the words that it relays
    const relayed = (words: string) => thrown(new Error(`litellm.InternalServerError: ${words}`))._tag
    assert.strictEqual(relayed("it broke"), "Unavailable")
    assert.strictEqual(relayed("[Errno 101] Network is unreachable"), "Unreachable")
  })

  it("an object that a sentence quotes, unless it reports an error", () => {
    assert.strictEqual(http(400, { error: { message: "Invalid value: '{\"status\": 503}'" } })._tag, "RequestRejected")
    assert.strictEqual(
      http(401, { error: { message: "no tool {\"name\":\"slow_down\",\"message\":\"x\"}" } })._tag,
      "CredentialRejected"
    )
  })

  it("a house number outside its envelope", () => {
    assert.strictEqual(http(400, { detail: { code: 1302, msg: "bad field" } })._tag, "RequestRejected")
    assert.strictEqual(http(400, { code: 50505 })._tag, "RequestRejected")
  })

  it("a line that begins with a brace, in a body that is no stream", () => {
    assert.strictEqual(http(200, "Error\n{\"error\":{\"type\":\"overloaded_error\"}}")._tag, "Unrecognized")
  })

  it("an error of the engine's own", () => {
    assert.strictEqual(thrown({ name: "InternalError", message: "too much recursion" })._tag, "Unrecognized")
    assert.strictEqual(
      thrown(Object.assign(new Error("x"), { code: "ERR_SCRIPT_EXECUTION_TIMEOUT" }))._tag,
      "Unrecognized"
    )
    assert.strictEqual(thrown(new Error("the query returned 500 rows"))._tag, "Unrecognized")
  })

  it("no code of the tables is read as another one, by what else it is like", () => {
    for (const group of [...Object.values(groups), families]) {
      for (const [meaning, codes] of Object.entries(group)) {
        for (const code of codes ?? []) {
          const { family, known } = codeOf(code)
          assert.strictEqual((group === families ? known ?? family : known)?.meaning, meaning, code)
        }
      }
    }
  })
})

describe("Diagnosis, what speaks however it is wrapped", () => {
  it("a message that is an answer as a whole", () => {
    const message = JSON.stringify({
      type: "exceeded_limit",
      resetsAt: at.received / 1_000 + 7_200,
      claim: "five_hour"
    })
    const fault = http(429, { error: { type: "rate_limit_error", message } })
    assert.isTrue(fault._tag === "RateLimited" && fault.limit === "allowance")
    assert.strictEqual(fault.resetsAt?.waitMillis, 7_200_000)
  })

  it("an answer whose keys begin with capitals, or that stands in a header", () => {
    const body = { Response: { Error: { Code: "AuthFailure.SignatureExpire", Message: "no" }, RequestId: "1" } }
    assert.strictEqual(http(200, body)._tag, "CredentialRejected")
    assert.strictEqual(http(200, { header: { code: 1, message: "余额不足" } })._tag, "QuotaExhausted")
  })

  it("a line of an event stream that is an error by its field", () => {
    const chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
    const line = "error: {\"code\":500,\"message\":\"context size exceeded\",\"type\":\"server_error\"}\n\n"
    assert.strictEqual(frame(chunk + line)._tag, "ContextOverflowed")
    assert.strictEqual(frame(chunk)._tag, "StreamCut")
  })

  it("a stream that broke off, whatever it is made of", () => {
    const piece = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a, {b}\"}]}}]}"
    const cut = [
      `[${piece}\n,\r\n`,
      `[${piece},${piece.slice(0, -9)}`,
      ": keep-alive\n\n: keep-alive\n\n",
      ": keep-alive",
      "event: content-delta\ndata: {\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}\n\n"
    ]
    for (const text of cut) assert.strictEqual(frame(text)._tag, "StreamCut", text)
    assert.strictEqual(frame(`[${piece},{"error":{"code":503}},`)._tag, "Unavailable")
    assert.strictEqual(frame(`[${piece},{"candidates":[{"finishReason":"SAFETY"}]},`)._tag, "ContentRefused")
    assert.strictEqual(frame(": keep-alive\n\ndata: {\"error\":{\"code\":503}}\n\n")._tag, "Unavailable")
    assert.strictEqual(http(400, `[${piece},`)._tag, "RequestRejected")
  })

  it("an answer that an error carries under another key", () => {
    const carriers = [
      { httpResponse: { status: 502, body: "" } },
      { $response: { statusCode: 502, headers: {} }, $responseBodyText: "<html>" },
      { reason: { _tag: "StatusCodeError", response: { status: 502, headers: {} } } }
    ]
    for (const carrier of carriers) assert.strictEqual(thrown({ message: "failed", ...carrier })._tag, "Unavailable")
    const waits = thrown({
      message: "x",
      reason: { _tag: "E", response: { status: 429, headers: { "retry-after": "7" } } }
    })
    assert.strictEqual(waits.resetsAt?.waitMillis, 7_000)
    const blocked = { message: "Candidate was blocked", response: { candidates: [{ finishReason: "RECITATION" }] } }
    assert.strictEqual(thrown(blocked)._tag, "ContentRefused")
    assert.strictEqual(
      thrown({ message: "no", _tag: "HttpClientError", reason: { _tag: "TransportError" } })._tag,
      "Unreachable"
    )
    assert.strictEqual(
      thrown({ message: "no", _tag: "HttpClientError", reason: { _tag: "EncodeError" } })._tag,
      "Unrecognized"
    )
  })

  it("an answer of which nothing could be made: how it ended says why", () => {
    const unmade = (finishReason: string) =>
      thrown({
        name: "AI_NoObjectGeneratedError",
        message: "No object generated: could not parse the response.",
        finishReason,
        cause: { name: "AI_JSONParseError", message: "JSON parsing failed: Text: {\"a\":\"read ECONNRESET, HTTP 429" }
      })._tag
    assert.deepStrictEqual(["stop", "length", "content-filter"].map(unmade), [
      "GenerationMalformed",
      "Unrecognized",
      "ContentRefused"
    ])
  })

  it("a code that only its name or a sentence tells", () => {
    assert.strictEqual(
      thrown({ name: "AI_NoSuchToolError", message: "unavailable tool 'x'" })._tag,
      "GenerationMalformed"
    )
    assert.strictEqual(thrown({ name: "LanguageModelError", code: "NoPermissions" })._tag, "CredentialRejected")
    const words = (text: string) => thrown(new Error(text))._tag
    assert.strictEqual(words("received 3000 (registered) invalid_request_error.invalid_api_key"), "CredentialRejected")
    assert.strictEqual(
      words("An error occurred (ValidationException) when calling the Converse operation: x"),
      "RequestRejected"
    )
    assert.strictEqual(
      words("An error occurred (serviceUnavailableException) when calling the X operation"),
      "Unavailable"
    )
    assert.strictEqual(words("set max_tokens and slow_down, then api_error"), "Unrecognized")
  })

  it("an answer with a head whose client says only that its body broke", () => {
    const broke = (message: string) =>
      thrown({ name: "AxiosError", code: "ERR_BAD_RESPONSE", status: 200, message })._tag
    assert.strictEqual(broke("stream has been aborted"), "Unreachable")
    assert.strictEqual(broke("the model wrote: stream has been aborted"), "Unrecognized")
  })

  it("the last frame of a long transcript", () => {
    const frames = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".repeat(300)
    assert.strictEqual(
      frame(`${frames}data: {"error":{"code":"context_length_exceeded"}}\n\n`)._tag,
      "ContextOverflowed"
    )
  })

  it("a code below a status, in its cause", () => {
    assert.strictEqual(thrown({ status: 500, cause: { error: { code: "insufficient_quota" } } })._tag, "QuotaExhausted")
    assert.strictEqual(
      thrown({ statusCode: 200, responseBody: "partial", cause: { error: { code: "insufficient_quota" } } })._tag,
      "QuotaExhausted"
    )
  })

  it("text refines what text has decided", () => {
    assert.strictEqual(
      thrown(new Error("Error code: 400 - maximum context length is 8192 tokens"))._tag,
      "ContextOverflowed"
    )
    assert.strictEqual(thrown(new Error("Rate limit reached: Limit 6000, Requested 6294"))._tag, "RequestRejected")
    assert.strictEqual(
      said(429, "Your requested batch is too large for the tier that you are currently on. Limit 6000, Requested 6294.")
        ._tag,
      "RequestRejected"
    )
  })
})

describe("Diagnosis inside a success", () => {
  it("what would retry is not recognized", () => {
    assert.strictEqual(http(200, { error: { code: 502 } })._tag, "Unrecognized")
    assert.strictEqual(http(200, { error: { code: "rate_limit_exceeded" } })._tag, "Unrecognized")
  })

  it("what surfaces keeps its tag", () => {
    assert.strictEqual(http(200, { error: { code: 400, type: "exceed_context_size_error" } })._tag, "ContextOverflowed")
    assert.strictEqual(http(200, { promptFeedback: { blockReason: "SAFETY" } })._tag, "ContentRefused")
  })

  it("an empty body, a page, half of a JSON document and a good answer are not recognized", () => {
    for (
      const body of [
        "",
        "<html><title>Sign in</title></html>",
        "{\"choices\":[{\"message\":{\"content\":\"rate limit exceeded",
        "{\"id\":1}"
      ]
    ) {
      assert.strictEqual(http(200, body)._tag, "Unrecognized", body)
    }
  })

  it("a stream's text is read as its frames are", () => {
    const text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n"
    assert.strictEqual(http(200, text)._tag, "StreamCut")
    assert.strictEqual(http(200, `${text}data: {"error":{"type":"overloaded_error"}}\n\n`)._tag, "Overloaded")
    assert.strictEqual(frame(text)._tag, "StreamCut")
    assert.strictEqual(frame(`${text}data: [DONE]\n\n`)._tag, "Unrecognized")
    assert.strictEqual(
      frame("{\"done\":false}\n{\"error\":\"an error was encountered while running the model\"}\n")._tag,
      "Unavailable"
    )
  })
})

describe("Diagnosis, what text may do", () => {
  it("refines one surfaced tag into another on a 4xx", () => {
    assert.strictEqual(said(400, "prompt is too long: 203921 tokens > 200000 maximum")._tag, "ContextOverflowed")
    assert.strictEqual(said(400, "Your credit balance is too low")._tag, "QuotaExhausted")
    assert.strictEqual(said(400, "API key not valid. Please pass a valid API key.")._tag, "CredentialRejected")
    assert.strictEqual(said(400, "Output blocked by content filtering policy")._tag, "ContentRefused")
    assert.strictEqual(
      said(403, "Your input was flagged for violence. No credits were charged.")._tag,
      "ContentRefused"
    )
  })

  it("tells an overload from an outage on a 503 only", () => {
    assert.strictEqual(said(503, "The engine is currently overloaded")._tag, "Overloaded")
    assert.strictEqual(said(500, "The engine is currently overloaded")._tag, "Unavailable")
  })

  it("finds an overflow inside a 5xx, unless a throttle quotes it", () => {
    assert.strictEqual(said(500, "This model's maximum context length is 8192 tokens")._tag, "ContextOverflowed")
    assert.strictEqual(said(500, "Rate limit exceeded while checking the maximum context length")._tag, "Unavailable")
    assert.strictEqual(said(400, "rate limit reached: prompt is too long")._tag, "RequestRejected")
  })

  it("never turns a surfaced answer into a retry", () => {
    for (
      const text of [
        "rate limit exceeded",
        "overloaded, try again",
        "timed out",
        "socket hang up",
        "please retry in 5s"
      ]
    ) {
      for (const status of [400, 404, 409, 422]) assert.strictEqual(said(status, text)._tag, "RequestRejected", text)
    }
  })

  it("leaves a quota 429 a throttle, whatever it says of money", () => {
    assert.strictEqual(
      said(429, "You exceeded your current quota, please check your plan and billing details.")._tag,
      "RateLimited"
    )
    assert.strictEqual(said(429, "prompt is too long")._tag, "RateLimited")
  })

  it("rejects a throttle whose own numbers say that the request can never fit", () => {
    const limited = (limit: string, requested: string) =>
      http(429, {
        error: { code: "rate_limit_exceeded", message: `on TPM: Limit ${limit}, Requested ${requested}, please reduce` }
      })._tag
    assert.strictEqual(limited("6000", "6294"), "RequestRejected")
    assert.strictEqual(limited("6,000", "60,294"), "RequestRejected")
    assert.strictEqual(limited("6000", "6000"), "RateLimited")
    assert.strictEqual(limited("0", "10"), "RateLimited")
    assert.strictEqual(
      said(429, "Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s.")._tag,
      "RateLimited"
    )
  })

  it.prop("and only then: two numbers that stand apart, or a request that fits, are a throttle", [
    FastCheck.record({
      limit: FastCheck.integer({ min: 0, max: 99_999 }),
      used: FastCheck.option(FastCheck.integer({ min: 0, max: 99_999 })),
      requested: FastCheck.integer({ min: 0, max: 99_999 }),
      head: FastCheck.constantFrom("", "on TPM: ", "a limit of your tier, ", "limit 1. "),
      separator: FastCheck.constantFrom(" ", ": ", "=", " = ", " of "),
      between: FastCheck.constantFrom(", ", "; and it ", " in 60 s, ", "\n", " a sentence that is longer than that, "),
      comma: FastCheck.boolean(),
      tail: FastCheck.constantFrom("", ".", ". Limits are raised on request.", " tokens, you requested less before.")
    })
  ], ([{ between, comma, head, limit, requested, separator, tail, used }]) => {
    const figure = (n: number) => comma ? n.toLocaleString("en-US") : String(n)
    const numbers = [["limit", limit], ...(used === null ? [] : [["used", used]]), ["requested", requested]] as const
    const message = head + numbers.map(([word, n]) => `${word}${separator}${figure(Number(n))}`).join(between) + tail
    const joined = ![" in 60 s, ", "\n", " a sentence that is longer than that, "].includes(between)
    assert.strictEqual(
      http(429, { error: { code: "rate_limit_exceeded", message } })._tag,
      limit > 0 && requested > limit && joined && separator !== " of " ? "RequestRejected" : "RateLimited",
      message
    )
  }, { fastCheck: { numRuns: 500 } })

  it("an HTML page at 403 is an edge, elsewhere its status speaks", () => {
    const page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>"
    assert.strictEqual(http(403, page)._tag, "Unavailable")
    assert.strictEqual(http(401, page)._tag, "CredentialRejected")
    assert.strictEqual(http(502, page)._tag, "Unavailable")
  })

  it("a number in prose decides nothing, a stated status does", () => {
    assert.strictEqual(thrown(new Error("429"))._tag, "Unrecognized")
    assert.strictEqual(thrown(new Error("prompt has 142950 tokens, 503 of them bad"))._tag, "Unrecognized")
    assert.strictEqual(thrown(new Error("Request failed with status code 503"))._tag, "Unavailable")
    assert.strictEqual(thrown(new Error("HTTP 401"))._tag, "CredentialRejected")
    assert.strictEqual(thrown(new Error("API Error: 402 budget pool"))._tag, "QuotaExhausted")
    assert.strictEqual(thrown(new Error("Code Assist API error (429): capacity"))._tag, "RateLimited")
    assert.strictEqual(thrown(new Error("Reason: Server error: 502"))._tag, "Unavailable")
  })
})

describe("Diagnosis, the closed list of phrases", () => {
  // by marker: what it is known by, and what comes near and is not it
  const phrases: Record<string, { readonly hits: ReadonlyArray<string>; readonly misses: ReadonlyArray<string> }> = {
    "a request that can never work": {
      hits: [
        "redirect count exceeded",
        "Invalid URL",
        "self-signed certificate in certificate chain",
        "bad port",
        "client error (Connect): invalid peer certificate: UnknownIssuer",
        "net::ERR_CERT_DATE_INVALID",
        "tunneling socket could not be established, statusCode=407"
      ],
      misses: ["the certificate of achievement", "redirecting", "a peer certificate"]
    },
    "a sample that cannot be used": {
      hits: [
        "Model produced invalid sequence as part of ToolUse",
        "Model response did not respect the required format",
        "Exceeded maximum retries (1) for output validation"
      ],
      misses: ["the model response is long", "output validation is a topic", "invalid model"]
    },
    "a client's own clock": {
      hits: ["The request was canceled due to the configured HttpClient.Timeout of 100 seconds elapsing."],
      misses: ["a time of 100 seconds elapsing"]
    },
    "a malformed generation": {
      hits: [
        "Malformed function call: call:default_api",
        "error parsing tool call: raw='1'",
        "Unable to parse tool parameter JSON from model",
        "Malformed tool call"
      ],
      misses: ["the function call was fine", "malformed header"]
    },
    "a throttle": {
      hits: [
        "Rate limit exceeded",
        "You have been rate limited",
        "Too many requests",
        "google.api: Resource exhausted",
        "Concurrency limit exceeded for account, please retry later",
        "Upstream error from x: Request rate increased too quickly",
        "授权错误：秒级流控超限"
      ],
      misses: ["unknown parameter rate_limit", "rate limits are described in the docs", "at a high rate, limitless"]
    },
    "an overflow": {
      hits: [
        "maximum context length is 8192 tokens",
        "Prompt tokens too long",
        "input exceeds the context window of this model",
        "total number of tokens (prompt and prediction) cannot exceed 2048",
        "`inputs` must have less than 4096 tokens. Given: 4545",
        "number of input tokens must be no more than 7400, got 8123",
        "The sum of prompt length (50857.0), query length (0) should not exceed max_num_tokens",
        "token数量超过上限"
      ],
      misses: [
        "the context menu is long",
        "maximum number of tokens per minute",
        "a long prompt",
        "tokens cannot exceed 40000 per minute"
      ]
    },
    "an empty purse": {
      hits: [
        "Your credit balance is too low",
        "Insufficient balance",
        "You're out of extra usage",
        "余额不足",
        "token quota is not enough, token remain quota: 0",
        "Key limit exceeded (weekly limit)",
        "Third-party apps now draw from your extra usage",
        "Your current account balance is negative. Please top up to continue",
        "Budget exhausted for this API key",
        "You have 0 credits remaining"
      ],
      misses: ["No credits were charged", "balance the load", "see the billing page", "the quota is enough"]
    },
    "a bad key": {
      hits: [
        "Incorrect API key provided",
        "OAuth token has expired",
        "Unauthorized",
        "invalid x-api-key",
        "Could not load the default credentials",
        "Could not resolve authentication method",
        "Reauthentication is needed.",
        "Organization has been restricted"
      ],
      misses: [
        "the key of the map",
        "token count expired budget",
        "an API key starts with sk",
        "could not load the model",
        "the project has blockers"
      ]
    },
    "a content policy": {
      hits: [
        "blocked by content filtering policy",
        "your prompt was flagged as potentially violating our usage policy",
        "Opus has safety measures that flagged this message",
        "Content Exists Risk"
      ],
      misses: ["content_filter parameter must be a boolean", "the content is empty", "retry policy"]
    },
    "a request that nobody can serve": {
      hits: [
        "models/gemini-9 is not found for API version v1beta",
        "'file part audio/ogg' functionality not supported.",
        "Streaming is required for operations that may take longer than 10 minutes",
        "Unexpected endpoint or method. (POST /v1/messages)"
      ],
      misses: ["the model is not here", "streaming is fun", "a supported format"]
    },
    "an abort": {
      hits: [
        "user-cancelled",
        "All fibers interrupted without errors.",
        "1 CANCELLED: Cancelled on client",
        "Post \"https://api.example.com/v1\": context canceled",
        "Request aborted when fetching x: This operation was aborted",
        "Request was aborted.",
        "This operation was aborted",
        "The user aborted a request."
      ],
      misses: ["the model talked about an aborted mission", "abort codes: 12", "fibers interrupted"]
    },
    "an overload": {
      hits: [
        "Overloaded",
        "The server is busy",
        "currently experiencing high demand",
        "no available capacity",
        "stubs::OVERLOADED_TOO_MANY_RETRIES",
        "Too many connections, please wait",
        "Request dropped due to backpressure",
        "Exceeds maximum queue size",
        "服务忙，请稍后再试"
      ],
      misses: ["operator overloads", "busy signal", "the capacity of the glass"]
    },
    "a stream without its end": {
      hits: [
        "Incomplete JSON segment at the end",
        "request ended without sending any chunks",
        "stream closed before response.completed",
        "stream ended unexpectedly",
        "missing finish_reason",
        "Did not receive done or success response in stream.",
        "Failed to parse stream"
      ],
      misses: ["stream opened", "upstream of the dam", "failed to parse streams of thought"]
    },
    "a provider's failure": {
      hits: [
        "Provider finish_reason: error",
        "Internal server error",
        "502 Bad Gateway",
        "Gateway Time-out",
        "Something went wrong, please try again later",
        "Prediction interrupted; please retry (code: PA)",
        "Request failed during generation: Server error: CUDA error: an illegal memory access",
        "Prediction failed: Director: unexpected error handling prediction (E9243)",
        "The model has crashed without additional information. (Exit code: 1)"
      ],
      misses: ["finish_reason: stop", "an error in your code", "retry with other words"]
    },
    "an abnormal close": {
      hits: ["websocket: close 1011 (internal server error): keepalive ping timeout", "closed with code 1006"],
      misses: ["close 1010 windows", "a close call"]
    },
    "a connect timeout": {
      hits: [
        "Connect Timeout Error (attempted address: api.example.com:443)",
        "connection timed out",
        "Connection timed out after 5001 milliseconds",
        "dial tcp 203.0.113.7:443: i/o timeout",
        "net/http: TLS handshake timeout"
      ],
      misses: ["connect the dots"]
    },
    "a timeout": {
      hits: [
        "Request timed out.",
        "timeout",
        "deadline exceeded",
        "deadline of 30000 ms exceeded",
        "Connection timed out after 120000 ms",
        "read tcp 203.0.113.7:443: i/o timeout"
      ],
      misses: ["timeout must be a number", "two timelines"]
    },
    "a broken connection": {
      hits: [
        "socket hang up",
        "fetch failed",
        "terminated",
        "connection reset by peer",
        "ECONNREFUSED 127.0.0.1",
        "Network request failed",
        "Error in input stream",
        "net::ERR_HTTP2_PROTOCOL_ERROR",
        "http2 request did not get a response",
        "Connection broken: IncompleteRead(512 bytes read)",
        "WebSocket closed",
        "dial tcp: lookup api.example.com: no such host",
        "Post \"https://api.example.com/v1\": EOF",
        "remote error: tls: bad record MAC",
        "request to https://api.example.com/v1 failed, reason: ",
        "java.io.IOException: unexpected end of stream on https://api.example.com/...",
        "Response payload is not completed: <TransferEncodingError: 400, message='x'>"
      ],
      misses: [
        "the contract was terminated early",
        "a connection between ideas",
        "WebSocket closed: 1008 no",
        "WebSocket closed: 4001"
      ]
    }
  }

  it("has both for every marker", () => {
    assert.deepStrictEqual(Object.keys(phrases).sort(), Markers.prose.map(({ name }) => name).sort())
  })

  for (const { kind, name } of Markers.prose) {
    it(name, () => {
      for (const hit of phrases[name]?.hits ?? []) assert.strictEqual(thrown(new Error(hit))._tag, kind, hit)
      for (const miss of phrases[name]?.misses ?? []) {
        assert.strictEqual(thrown(new Error(miss))._tag, "Unrecognized", miss)
      }
    })
  }

  const words: Record<string, readonly [hit: string, miss: string]> = {
    "a purse in its name": ["acme_credit_exhausted", "acme_creditor"],
    "an overflow in its name": ["acme_context_length_error", "acme_context_menu"],
    "a content policy in its name": ["acme_moderation_block", "acme_mode"],
    "a credential in its name": ["acme_bad_api_key", "extra_forbidden"],
    "an overload in its name": ["acme_model_overloaded", "acme_load"],
    "a throttle in its name": ["acme_throttled", "acme_rate"],
    "a timeout in its name": ["acme_upstream_timeout", "acme_time"],
    "a provider's failure in its name": ["acme_not_ready", "acme_ready"],
    "a cut in its name": ["acme_stream_incomplete", "acme_streaming"]
  }

  it("has both for every word in a code", () => {
    const free = Markers.codeWords.filter((word) => word !== Markers.pool)
    assert.deepStrictEqual(Object.keys(words).sort(), free.map(({ name }) => name).sort())
  })

  for (const { kind, name } of Markers.codeWords.filter((word) => word !== Markers.pool)) {
    it(name, () => {
      const [hit, miss] = words[name] ?? ["", ""]
      assert.strictEqual(frame({ error: { type: hit } })._tag, kind)
      assert.strictEqual(frame({ error: { type: miss } })._tag, "Unrecognized")
    })
  }

  it("a client's own clock and a connect's are told apart whatever name they go by", () => {
    const named = (name: string, message: string, code?: string) => thrown({ name, message, code })._tag
    assert.strictEqual(named("TimeoutError", "The operation was aborted due to timeout"), "TimedOut")
    assert.strictEqual(
      named("TimeoutError", "Socket timed out without establishing a connection within 3100 ms"),
      "Unreachable"
    )
    assert.strictEqual(named("AxiosError", "timeout of 60000ms exceeded", "ECONNABORTED"), "TimedOut")
    assert.strictEqual(named("TimeoutError", "Timeout awaiting 'request' for 30000ms", "ETIMEDOUT"), "TimedOut")
    assert.strictEqual(named("TimeoutError", "Timeout awaiting 'connect' for 30000ms", "ETIMEDOUT"), "Unreachable")
    assert.strictEqual(named("TimeoutError", "Connection timed out after 120000 ms"), "TimedOut")
    assert.strictEqual(
      named("Error", "tunneling socket could not be established, statusCode=407", "ECONNRESET"),
      "Unrecognized"
    )
    assert.strictEqual(
      thrown({ code: 1_000, wasClean: true, message: "WebSocket closed before response.completed" })._tag,
      "StreamCut"
    )
    assert.strictEqual(thrown({ code: 1_000, wasClean: true, message: "WebSocket closed" })._tag, "Unrecognized")
    assert.strictEqual(named("Error", "connect ETIMEDOUT 203.0.113.7:443", "ETIMEDOUT"), "Unreachable")
    assert.strictEqual(
      thrown({ message: "Request timed out.", cause: { name: "AbortError", message: "This operation was aborted" } })
        ._tag,
      "TimedOut"
    )
  })
})

describe("Diagnosis, which limit and whose", () => {
  const limit = (body: unknown, headers?: unknown) => {
    const fault = http(429, body, headers)
    return fault._tag === "RateLimited" ? `${fault.limit} ${fault.scope}` : fault._tag
  }
  const rows: ReadonlyArray<readonly [string, unknown, unknown?]> = [
    ["rate model", { error: { message: "Rate limit reached on requests per min (RPM)" } }],
    ["allowance account", { error: { message: "on tokens per day (TPD): Limit 100000" } }],
    ["allowance account", { message: "limited to 1000 API calls / month" }],
    ["allowance account", { error: { message: "Rate limit exceeded: free-models-per-day" } }],
    ["allowance account", { error: { message: "Rate limit exceeded: limit_rpd/acme/model" } }],
    ["allowance account", { error: { message: "Rate limit exceeded for the 5h bucket" } }],
    ["allowance account", { error: { message: "All accounts have exhausted their quota" } }],
    ["allowance account", { error: { message: "Your quota will reset after 12h34m16s." } }],
    ["allowance account", { error: { message: "Rate limit of 50 per 86400s exceeded for UserByModelByDay." } }],
    ["allowance account", { error: { code: "user_weekly_rate_limited" } }],
    ["allowance account", { error: {} }, {
      "anthropic-ratelimit-unified-reset": "1768050000",
      "anthropic-ratelimit-unified-status": "rejected"
    }],
    ["allowance account", {}, { "x-ratelimit-reset-requests-day": "3600", "x-ratelimit-remaining-requests-day": "0" }],
    ["rate model", {}, {
      "x-ratelimit-reset-requests-day": "3600",
      "x-ratelimit-remaining-requests-day": "12",
      "retry-after": "3"
    }],
    ["allowance model", {
      error: { details: [{ violations: [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] }] }
    }],
    ["rate model", {
      error: { details: [{ violations: [{ quotaId: "GenerateRequestsPerMinutePerProjectPerModel" }] }] }
    }],
    ["rate account", { error: { details: [{ violations: [{ quotaId: "GenerateRequestsPerMinutePerProject" }] }] } }],
    ["rate model", { error: { message: "10 requests per minute. Upgrade your plan" } }],
    ["rate model", { error: { message: "please wait a while today" } }]
  ]
  it.each(rows)("%s: %j %j", (wanted, body, headers) => {
    assert.strictEqual(limit(body, headers), wanted)
  })
})

describe("Diagnosis, how it says why", () => {
  it("names the field, its value and the rule, then every reset", () => {
    const fault = http(429, { error: { code: "rate_limit_exceeded" } }, {
      "retry-after": "soon",
      "retry-after-ms": "1500"
    })
    assert.deepStrictEqual(fault.because, [
      { field: "code", value: "rate_limit_exceeded", rule: "a code of openai" },
      { field: "header retry-after", value: "soon", rule: "refused: no time" },
      { field: "header retry-after-ms", value: "1500", rule: "names a reset" }
    ])
  })

  it("an instant of receipt that is none counts as the epoch", () => {
    const fault = Diagnosis.fromResponse({ status: 500 }, { received: new Date(Number.NaN) })
    assert.strictEqual(fault.received.epochMillis, 0)
  })
})

describe("Diagnosis.fromAnswer", () => {
  const tag = (status: number, body: unknown) => Diagnosis.fromAnswer({ status, body }, { received: 0 })?._tag

  it("lets pass what its provider stands by", () => {
    for (
      const body of [
        { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] },
        { choices: [{ finish_reason: "content_filter" }], error: null },
        { type: "message", content: [], stop_reason: "max_tokens" },
        { object: "response", status: "completed", error: null },
        { data: [{ embedding: [0] }] },
        [{ candidates: [{ finishReason: "STOP" }] }]
      ]
    ) {
      assert.isUndefined(tag(200, body))
      assert.isUndefined(tag(201, JSON.stringify(body)))
    }
  })

  it("reads a 2xx that breaks its contract", () => {
    assert.strictEqual(tag(200, ""), "Unrecognized")
    assert.strictEqual(tag(200, "{\"choices\":[{\"mess"), "Unrecognized")
    assert.strictEqual(tag(200, "<html>Please sign in"), "Unrecognized")
    assert.strictEqual(tag(200, "\"text\""), "Unrecognized")
    assert.strictEqual(tag(200, { error: { code: "insufficient_quota" } }), "QuotaExhausted")
    assert.strictEqual(tag(200, { type: "error", error: null, message: "x" }), "Unrecognized")
    assert.strictEqual(tag(200, { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] }), "GenerationMalformed")
    assert.strictEqual(tag(200, [{ error: { code: 429, status: "RESOURCE_EXHAUSTED" } }]), "Unrecognized")
  })

  it("reads every other status, whatever its body", () => {
    assert.strictEqual(tag(429, { choices: [] }), "RateLimited")
    assert.strictEqual(tag(302, "{}"), "Unrecognized")
  })
})
