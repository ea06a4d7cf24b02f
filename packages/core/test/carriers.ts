// Errors made by the libraries themselves, with the tag that each must have. It is bundled and minified too.
import * as Anthropic from "@anthropic-ai/sdk"
import { AiError } from "@effect/ai"
import { HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import * as Google from "@google/genai"
import { ServiceException } from "@smithy/core/client"
import * as Ai from "ai"
import { Cause, Effect, FiberId, Runtime } from "effect"
import { createServer } from "node:net"
import * as OpenAI from "openai"
import { errors as undici } from "undici"

export interface Carrier {
  readonly thrown: unknown
  readonly tag: string
  readonly waitMillis?: number
  readonly attempts?: number
  readonly leaf: "Response" | "Transport" | "Terminal"
}

const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
const limited = { error: { message: "Rate limit reached", type: "tokens", code: "rate_limit_exceeded" } }
const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104, syscall: "read" })
const failed = new TypeError("fetch failed", { cause: reset })
const url = "https://api.example.com/v1/messages"

const call = (options: Partial<ConstructorParameters<typeof Ai.APICallError>[0]>) =>
  new Ai.APICallError({ message: "failed", url, requestBodyValues: { prompt: "a secret" }, ...options })

const request = HttpClientRequest.post(url)
const response = (status: number, body: string | null, headers: Record<string, string> = {}) =>
  HttpClientResponse.fromWeb(request, new Response(body, { status, headers }))

const requestError = (reason: "Transport" | "Encode" | "InvalidUrl", cause?: unknown) =>
  new HttpClientError.RequestError({ request, reason, cause })

const responseError = (reason: "StatusCode" | "Decode" | "EmptyBody", status: number, cause?: unknown) =>
  new HttpClientError.ResponseError({
    request,
    response: response(status, "{\"error\":{\"type\":\"overloaded_error\"}}", {
      "content-type": "application/json",
      "retry-after": "7"
    }),
    reason,
    cause
  })

const where = { module: "Test", method: "generateText" }

const deadPort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

export const make = async (): Promise<Record<string, Carrier>> => ({
  "openai RateLimitError": {
    thrown: OpenAI.APIError.generate(429, limited, undefined, new Headers({ "retry-after-ms": "1500" })),
    tag: "RateLimited",
    waitMillis: 1_500,
    leaf: "Response"
  },
  "openai insufficient_quota": {
    thrown: OpenAI.APIError.generate(429, { error: { code: "insufficient_quota" } }, undefined, new Headers()),
    tag: "QuotaExhausted",
    leaf: "Response"
  },
  "openai frame error": {
    thrown: new OpenAI.APIError(undefined, { type: "server_error", message: "oops" }, undefined, undefined),
    tag: "Unavailable",
    leaf: "Response"
  },
  "openai APIConnectionError": {
    thrown: new OpenAI.APIConnectionError({ message: undefined, cause: failed }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "openai APIConnectionTimeoutError": {
    thrown: new OpenAI.APIConnectionTimeoutError(),
    tag: "TimedOut",
    leaf: "Terminal"
  },
  "openai APIUserAbortError": { thrown: new OpenAI.APIUserAbortError(), tag: "Aborted", leaf: "Terminal" },
  "anthropic OverloadedError": {
    thrown: Anthropic.APIError.generate(529, overloaded, undefined, new Headers()),
    tag: "Overloaded",
    leaf: "Response"
  },
  "anthropic frame error": {
    thrown: new Anthropic.APIError(undefined, overloaded, undefined, undefined),
    tag: "Overloaded",
    leaf: "Response"
  },
  "anthropic APIConnectionError": {
    thrown: new Anthropic.APIConnectionError({ message: undefined, cause: failed }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "anthropic APIConnectionTimeoutError": {
    thrown: new Anthropic.APIConnectionTimeoutError(),
    tag: "TimedOut",
    leaf: "Terminal"
  },
  "anthropic APIUserAbortError": { thrown: new Anthropic.APIUserAbortError(), tag: "Aborted", leaf: "Terminal" },
  "google ApiError": {
    thrown: new Google.ApiError({
      status: 429,
      message: JSON.stringify({ error: { code: 429, status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "12s" }] } })
    }),
    tag: "RateLimited",
    waitMillis: 12_000,
    leaf: "Response"
  },
  "ai APICallError": {
    thrown: call({ statusCode: 529, responseBody: JSON.stringify(overloaded), isRetryable: false }),
    tag: "Overloaded",
    leaf: "Response"
  },
  "ai APICallError, its flag is not believed": {
    thrown: call({ statusCode: 400, responseBody: "{}", isRetryable: true }),
    tag: "RequestRejected",
    leaf: "Response"
  },
  "ai APICallError over a dropped body": {
    thrown: call({
      statusCode: 200,
      cause: new TypeError("terminated", { cause: new undici.SocketError("other side closed") })
    }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "ai RetryError": {
    thrown: new Ai.RetryError({
      message: "Failed after 3 attempts",
      reason: "maxRetriesExceeded",
      errors: [
        call({ statusCode: 429, responseBody: JSON.stringify(limited) }),
        call({ statusCode: 429, responseBody: JSON.stringify(limited) }),
        call({ statusCode: 503, responseBody: "The server is busy." })
      ]
    }),
    tag: "Overloaded",
    attempts: 3,
    leaf: "Response"
  },
  "smithy ThrottlingException": {
    thrown: new ServiceException({
      name: "ThrottlingException",
      message: "Too many tokens, please wait before trying again.",
      $fault: "client",
      $metadata: { httpStatusCode: 429, attempts: 3 }
    }),
    tag: "RateLimited",
    attempts: 3,
    leaf: "Response"
  },
  "platform RequestError Transport": {
    thrown: requestError("Transport", failed),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "platform RequestError Transport without a cause": {
    thrown: requestError("Transport"),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "platform RequestError Encode": { thrown: requestError("Encode"), tag: "Unrecognized", leaf: "Terminal" },
  "platform RequestError InvalidUrl": { thrown: requestError("InvalidUrl"), tag: "Unrecognized", leaf: "Terminal" },
  "platform ResponseError StatusCode": {
    thrown: responseError("StatusCode", 529),
    tag: "Overloaded",
    waitMillis: 7_000,
    leaf: "Response"
  },
  "platform ResponseError Decode over a socket": {
    thrown: responseError("Decode", 200, failed),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "platform ResponseError Decode": {
    thrown: responseError("Decode", 200, new SyntaxError("Unexpected token")),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "platform ResponseError EmptyBody": {
    thrown: responseError("EmptyBody", 200),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "@effect/ai HttpRequestError": {
    thrown: AiError.HttpRequestError.fromRequestError({ ...where, error: requestError("Transport", failed) }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "@effect/ai HttpResponseError": {
    thrown: await Effect.runPromise(
      Effect.flip(AiError.HttpResponseError.fromResponseError({ ...where, error: responseError("StatusCode", 529) }))
    ),
    tag: "Overloaded",
    waitMillis: 7_000,
    leaf: "Response"
  },
  "@effect/ai UnknownError": {
    thrown: new AiError.UnknownError({ ...where, description: "it failed", cause: failed }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "@effect/ai MalformedOutput": {
    thrown: new AiError.MalformedOutput({ ...where, description: "not the schema" }),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "undici HeadersTimeoutError": {
    thrown: new TypeError("fetch failed", { cause: new undici.HeadersTimeoutError() }),
    tag: "TimedOut",
    leaf: "Transport"
  },
  "undici BodyTimeoutError": { thrown: new undici.BodyTimeoutError(), tag: "TimedOut", leaf: "Transport" },
  "undici ConnectTimeoutError": { thrown: new undici.ConnectTimeoutError(), tag: "Unreachable", leaf: "Transport" },
  "undici RequestAbortedError": { thrown: new undici.RequestAbortedError(), tag: "Aborted", leaf: "Transport" },
  "undici InvalidArgumentError": {
    thrown: new undici.InvalidArgumentError("invalid method"),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "fetch to a dead port": {
    thrown: await fetch(`http://127.0.0.1:${await deadPort()}`).catch((error: unknown) => error),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "fetch to no URL": {
    thrown: await fetch("http://").catch((error: unknown) => error),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "AbortSignal.abort": { thrown: AbortSignal.abort().reason, tag: "Aborted", leaf: "Transport" },
  "AbortSignal.timeout": {
    thrown: await new Promise((resolve) => {
      const signal = AbortSignal.timeout(1)
      signal.addEventListener("abort", () => resolve(signal.reason))
    }),
    tag: "TimedOut",
    leaf: "Transport"
  },
  "AggregateError": {
    thrown: new TypeError("fetch failed", {
      cause: new AggregateError([reset, Object.assign(new Error("connect ENETUNREACH"), { code: "ENETUNREACH" })], "")
    }),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "Effect FiberFailure": {
    thrown: Runtime.makeFiberFailure(Cause.fail(failed)),
    tag: "Unreachable",
    leaf: "Transport"
  },
  "Effect interruption": { thrown: Cause.interrupt(FiberId.none), tag: "Aborted", leaf: "Transport" },
  "Effect Cause of a defect": { thrown: Cause.die(failed), tag: "Unreachable", leaf: "Transport" },
  "WebSocket 1006": {
    thrown: { type: "close", code: 1006, reason: "", wasClean: false },
    tag: "Unreachable",
    leaf: "Transport"
  },
  "WebSocket 1012": {
    thrown: { type: "close", code: 1012, reason: "", wasClean: true },
    tag: "Unreachable",
    leaf: "Transport"
  },
  "WebSocket 1008": {
    thrown: { type: "close", code: 1008, reason: "", wasClean: true },
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "redirect loop": {
    thrown: new TypeError("fetch failed", { cause: new Error("redirect count exceeded") }),
    tag: "Unrecognized",
    leaf: "Terminal"
  },
  "a string": { thrown: "socket hang up", tag: "Unreachable", leaf: "Terminal" },
  "nothing": { thrown: undefined, tag: "Unrecognized", leaf: "Terminal" }
})
