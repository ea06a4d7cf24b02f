import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import { APICallError } from "ai"
import { APIError } from "openai"
import type { Case, Group } from "./Bench.ts"

const received = Date.parse("2026-01-10T10:00:00Z")

interface Answer {
  readonly name: string
  readonly headers: Record<string, string>
  readonly body: string
}

const plumbing = {
  date: "Sat, 10 Jan 2026 10:00:00 GMT",
  "content-type": "application/json",
  "content-length": "400",
  connection: "keep-alive",
  server: "cloudflare",
  "x-request-id": "req_0123456789abcdef"
}

// about 400 bytes each, as the three largest providers send them
const answers: ReadonlyArray<Answer> = [
  {
    name: "OpenAI",
    headers: {
      ...plumbing,
      "x-ratelimit-limit-tokens": "30000",
      "x-ratelimit-remaining-requests": "499",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-requests": "120ms",
      "x-ratelimit-reset-tokens": "6.4s",
      "retry-after-ms": "6400"
    },
    body: JSON.stringify({
      error: {
        message:
          "Rate limit reached for gpt-4o in organization org-EXAMPLE0001 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4200. Please try again in 6.4s. Visit https://platform.openai.com/account/rate-limits to learn more. You can increase your rate limit by adding a payment method to your account.",
        type: "tokens",
        param: null,
        code: "rate_limit_exceeded"
      }
    })
  },
  {
    name: "Anthropic",
    headers: {
      ...plumbing,
      "retry-after": "14",
      "anthropic-ratelimit-requests-remaining": "48",
      "anthropic-ratelimit-requests-reset": "2026-01-10T10:00:02Z",
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "anthropic-ratelimit-input-tokens-reset": "2026-01-10T10:00:14Z",
      "x-should-retry": "true"
    },
    body: JSON.stringify({
      type: "error",
      error: {
        type: "rate_limit_error",
        message:
          "This request would exceed the rate limit for your organization of 40,000 input tokens per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later."
      },
      request_id: "req_011CSHoEeqs5C35K2UUqR7Fy"
    })
  },
  {
    name: "Gemini",
    headers: { ...plumbing, vary: "Origin", "x-xss-protection": "0", "x-frame-options": "SAMEORIGIN" },
    body: JSON.stringify({
      error: {
        code: 429,
        message: "You exceeded your current quota, please check your plan and billing details.",
        status: "RESOURCE_EXHAUSTED",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            violations: [{ quotaId: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", quotaValue: "10" }]
          },
          { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "38s" }
        ]
      }
    })
  }
]

const asked = [
  "retry-after-ms",
  "retry-after",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens"
]

// what is computed must be used, or the engine may leave it out
let kept = 0

const lookUps = (headers: Headers): number => {
  for (const name of asked) if (headers.get(name) !== null) kept++
  return kept
}

const recourse = ({ body }: Answer, headers: unknown): Case["run"] => () => {
  const fault = Diagnosis.fromResponse({ status: 429, headers, body }, { received })
  return Remedy.fromFault(fault, RetryPolicy.standard)
}

const vercel = ({ body, headers }: Answer): Case["run"] => () => {
  const data: unknown = JSON.parse(body)
  return new APICallError({
    message: "failed",
    url: "https://api.example.com",
    requestBodyValues: {},
    statusCode: 429,
    responseHeaders: headers,
    responseBody: body,
    data
  }).isRetryable
}

const openai = ({ body }: Answer, headers: Headers): Case["run"] => () => {
  const error = APIError.generate(429, JSON.parse(body), undefined, headers)
  return headers.get("x-should-retry") ?? (error.status === 429 && headers.get("retry-after-ms"))
}

/** From the raw text of a 429 to its remedy, beside parsing the text and beside what two SDKs make of it. */
export const groups: ReadonlyArray<Group> = answers.map((answer) => {
  const headers = new Headers(answer.headers)
  return {
    name: `a ${answer.body.length}-byte 429 of ${answer.name}, text to remedy`,
    base: {
      name: "JSON.parse and six header look-ups",
      run: () => [JSON.parse(answer.body), lookUps(headers)]
    },
    cases: [
      { name: "recourse, Headers", run: recourse(answer, headers), goal: 2 },
      { name: "recourse, plain headers", run: recourse(answer, answer.headers) },
      { name: "ai: APICallError, isRetryable", run: vercel(answer) },
      { name: "openai: APIError.generate, look-ups", run: openai(answer, headers) }
    ]
  }
})

const KIB = 1_024

/** Bodies that make careless readers slow. Every one is as long as it is told to be. */
const hostile: ReadonlyArray<readonly [name: string, make: (length: number) => string]> = [
  ["deep nesting", (length) => `${"[".repeat(length / 2)}${"]".repeat(length / 2)}`],
  ["deep objects", (length) => `${"{\"error\":".repeat(length / 10)}1${"}".repeat(length / 10)}`],
  ["one long run of digits", (length) => JSON.stringify({ error: { message: `retry after ${"9".repeat(length)}` } })],
  ["braces that never close", (length) => JSON.stringify({ error: { message: "{'a': ".repeat(length / 6) } })],
  ["quotes that never close", (length) => JSON.stringify({ error: { message: `{${"'\\'".repeat(length / 4)}` } })],
  [
    "words that nearly match",
    (length) =>
      JSON.stringify({ error: { message: "rate limit try again in a maximum context exceed ".repeat(length / 49) } })
  ],
  ["spaces", (length) => `<html>${" ".repeat(length)}`],
  ["an event stream", (length) => "data: {\"choices\":[]}\n\n".repeat(length / 22)]
]

const lengths = [64 * KIB, 256 * KIB, 1_024 * KIB]

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A list of small objects, as long as it is told to be. */
const plain = (length: number): string => {
  const one = "{\"id\":1234,\"text\":\"words\"},"
  return `[${one.repeat(Math.floor((length - 2) / one.length)).slice(0, -1)}]`
}

/**
 * The cost of a hostile body over that of `JSON.parse` at the same length, at three lengths: linear if it does not grow.
 * What is parsed is the body itself, or a plain list where the body is no JSON.
 */
export const growth: ReadonlyArray<{ readonly name: string; readonly at: ReadonlyArray<Group> }> = hostile.map(
  ([name, make]) => ({
    name,
    at: lengths.map((length) => {
      const body = make(length)
      const parsed = isJson(body) ? body : plain(length)
      return {
        name: `${length / KIB} KiB`,
        base: { name: "JSON.parse", run: () => JSON.parse(parsed) },
        cases: [{
          name,
          run: () => Diagnosis.fromResponse({ status: 500, body }, { received })._tag
        }]
      }
    })
  })
)
