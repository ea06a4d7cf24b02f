import { assert, describe, it } from "@effect/vitest"
import * as Evidence from "@recourse/core/Evidence"
import * as Reset from "@recourse/core/Reset"
import * as FastCheck from "effect/FastCheck"

const received = Date.parse("2026-01-10T10:00:00Z")
const DAY = 86_400_000

const fromHeaders = (headers: unknown, at = received) => Reset.read(Evidence.fromResponse({ status: 429, headers }), at)
const fromBody = (body: unknown) => Reset.read(Evidence.fromResponse({ status: 429, body }), received)
const fromText = (message: string) => fromBody({ error: { message } })

const seconds = (n: number) => String(received / 1_000 + n)

describe("Reset, header by header", () => {
  const headers: ReadonlyArray<readonly [name: string, value: string, wait: number]> = [
    ["retry-after", "14", 14_000],
    ["Retry-After", "2.5", 2_500],
    ["retry-after", "Sat, 10 Jan 2026 10:00:20 GMT", 20_000],
    ["retry-after", "Saturday, 10-Jan-26 10:00:20 GMT", 20_000],
    ["retry-after", "Sat Jan 10 10:00:20 2026", 20_000],
    ["retry-after", "2026-01-10T10:00:30Z", 30_000],
    ["retry-after", "30s", 30_000],
    ["retry-after-ms", "2412", 2_412],
    ["x-ms-retry-after-ms", "900", 900],
    ["x-ratelimit-reset", seconds(40), 40_000],
    ["x-ratelimit-reset", String(received + 41_000), 41_000],
    ["x-ratelimit-reset", "2", 2_000],
    ["x-ratelimit-reset", "1m6.5s", 66_500],
    ["x-ratelimit-reset", "450ms", 450],
    ["x-ratelimit-reset-requests", "6m0s", 360_000],
    ["x-ratelimit-reset-tokens", "2m59.56s", 179_560],
    ["x-ratelimit-reset-tokens", "20ms", 20],
    ["x-ratelimit-reset-requests", seconds(18), 18_000],
    ["x-ratelimit-reset-tokens-minute", "11.382867", 11_383],
    ["x-ratelimit-reset-requests-day", "33011.4", 33_011_400],
    ["x-ratelimit-timeremaining", "12", 12_000],
    ["anthropic-ratelimit-requests-reset", "2026-01-10T10:00:02Z", 2_000],
    ["anthropic-ratelimit-input-tokens-reset", "2026-01-10T10:00:14Z", 14_000],
    ["anthropic-ratelimit-unified-reset", seconds(3_600), 3_600_000],
    ["anthropic-ratelimit-unified-5h-reset", seconds(7_200), 7_200_000],
    ["ratelimit-reset", "42", 42_000],
    ["ratelimit", "limit=100, remaining=0, reset=9", 9_000],
    ["ratelimit", "\"api\";r=0;t=55", 55_000],
    ["ratelimit", "\"burst\";r=10;t=5, \"daily\";r=0;t=70", 70_000],
    ["x-codex-primary-reset-at", seconds(100), 100_000],
    ["x-codex-primary-reset-after-seconds", "471285", 471_285_000],
    ["reset_at", "2026-01-10 10:01:00 UTC", 60_000],
    ["x-ratelimit-next", "2026-01-10T10:00:47.000Z", 47_000],
    ["llm-provider-x-ratelimit-reset-tokens", "3s", 3_000]
  ]
  it.each(headers)("%s: %s", (name, value, wait) => {
    assert.strictEqual(fromHeaders({ [name]: value }).reset?.waitMillis, wait)
    assert.strictEqual(fromHeaders(new Headers({ [name]: value })).reset?.waitMillis, wait)
    assert.strictEqual(fromHeaders([[name.toUpperCase(), value]]).reset?.waitMillis, wait)
    assert.strictEqual(fromHeaders(new Map([[name, value]])).reset?.waitMillis, wait)
  })
})

describe("Reset, body field by body field", () => {
  const fields: ReadonlyArray<readonly [body: unknown, wait: number]> = [
    [{ error: { resets_at: received / 1_000 + 60 } }, 60_000],
    [{ error: { resets_in_seconds: 61 } }, 61_000],
    [{ retry_after: 120 }, 120_000],
    [{ error: { retry_after_seconds: 7 } }, 7_000],
    [{ error: { retry_after_ms: 1_500 } }, 1_500],
    [{ error: { retryAfterMs: 1_501 } }, 1_501],
    [{ error: { retryAfter: "9s" } }, 9_000],
    [[{ error: { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "38s" }] } }], 38_000],
    [{ error: { details: [{ retryDelay: "33740.910400305s" }] } }, 33_740_911],
    [{ error: { details: [{ retryDelay: { seconds: "3", nanos: 500_000_000 } }] } }, 3_500],
    [{ error: { details: [{ metadata: { quotaResetTimeStamp: "2026-01-10T11:00:00Z" } }] } }, 3_600_000],
    [{ error: { details: [{ metadata: { quotaResetDelay: "539.477544ms" } }] } }, 540],
    [{ error: { metadata: { headers: { "X-RateLimit-Reset": String(received + 22_000) } } } }, 22_000],
    [{ error: { message: "{\"error\":{\"details\":[{\"retryDelay\":\"26s\"}]}}" } }, 26_000],
    [{ error: { message: "Azure - Error code: 429 - {'error': {'retry_after': 8, 'code': '429'}}" } }, 8_000]
  ]
  it.each(fields)("%j", (body, wait) => {
    assert.strictEqual(fromBody(body).reset?.waitMillis, wait)
    assert.strictEqual(fromBody(JSON.stringify(body)).reset?.waitMillis, wait)
  })
})

describe("Reset, phrase by phrase", () => {
  const phrases: ReadonlyArray<readonly [text: string, wait: number | undefined]> = [
    ["Please try again in 6ms.", 6],
    ["Please try again in 20s. Visit the docs", 20_000],
    ["Please try again in 1m2.5s.", 62_500],
    ["Please try again in 9m38.016s.", 578_016],
    ["Please retry in 18.837906282s.", 18_838],
    ["Try again in 20 seconds", 20_000],
    ["please try again after 1 seconds", 1_000],
    ["Please retry after 86400 seconds.", DAY],
    ["Please wait 12 seconds before retrying.", 12_000],
    ["Please wait 71 minutes before trying again.", 4_260_000],
    ["Resets in 9h22m20s.", 33_740_000],
    ["Your limit resets in 58 hours", 208_800_000],
    ["You have exceeded 150 requests within a 10 second period, and have been timed out for 60 seconds.", 60_000],
    ["You've hit your limit · resets Jan 12 at 7am (America/Chicago)", 2 * DAY + 3 * 3_600_000],
    ["You've hit your limit · resets Jan 10 at 3:30am (America/Chicago)", undefined],
    ["You've hit your limit · resets 7am (America/Chicago)", 3 * 3_600_000],
    ["You've hit your limit · resets 3:30am (America/Chicago)", 23.5 * 3_600_000],
    ["try again in 3 days 12 hours 5 minutes", 3 * DAY + 12 * 3_600_000 + 300_000],
    ["Too many requests, retry after 3 minutes.", 180_000],
    ["try again in an hour", 3_600_000],
    ["Retry-After: 30", 30_000],
    ["quota, retry_delay {\n  seconds: 41\n}", 41_000],
    ["Limit resets at: 2026-01-10 10:05:00 UTC", 300_000],
    ["You will regain access on 2026-01-11 at 00:00 UTC.", 50_400_000],
    ["try again at 2026-01-10T12:00:00+01:00", 3_600_000],
    ["usage limit reached|1768042800", 3_600_000],
    ["请在 30 秒后重试", 30_000],
    ["您的限额将在 2026-01-10 19:00:00 重置。", 3_600_000]
  ]
  it.each(phrases)("%s", (text, wait) => {
    assert.strictEqual(fromText(text).reset?.waitMillis, wait)
  })

  it("a zoneless date is Beijing's where z.ai's code stands beside it, else UTC", () => {
    const text = "Your limit will reset at 2026-01-10 19:00:00"
    assert.strictEqual(fromBody({ error: { code: "1308", message: text } }).reset?.waitMillis, 3_600_000)
    assert.strictEqual(fromText(text).reset?.waitMillis, 9 * 3_600_000)
  })

  const misses = [
    "If you created the deployment within the last 5 minutes, please wait a moment and try again.",
    "Rate limit of 10 per 60s exceeded",
    "Model is not ready. Wait and try your request again.",
    "Retry your request with another model",
    "retry 3 times",
    "maximum of 5 minutes of audio",
    "please try again later",
    "Request timed out after waiting 600 seconds",
    "no worker available for 120 seconds",
    "gave up after retrying for 5 minutes",
    "the limit resets every 24 hours",
    "model gpt-4-2024-01-10 not available"
  ]
  it.each(misses)("names no wait: %s", (text) => {
    assert.isUndefined(fromText(text).reset)
  })

  it("is read only where nothing structured answers", () => {
    const body = { error: { message: "try again in 50s" } }
    const at = (headers: object) =>
      Reset.read(Evidence.fromResponse({ status: 429, headers, body }), received).reset?.waitMillis
    assert.strictEqual(at({ "retry-after": "2" }), 2_000)
    assert.strictEqual(at({ "retry-after": "soon" }), 50_000)
  })
})

describe("Reset, which of several", () => {
  it("the latest of the windows that refused governs", () => {
    const reset = fromHeaders({
      "retry-after": "14",
      "x-ratelimit-reset-tokens": "21s",
      "x-ratelimit-reset-requests": "3s"
    })
    assert.strictEqual(reset.reset?.waitMillis, 21_000)
    assert.strictEqual(reset.reset?.by, "header x-ratelimit-reset-tokens")
    assert.strictEqual(reset.claims.length, 3)
  })

  const open: ReadonlyArray<Record<string, string>> = [
    { "x-ratelimit-reset-requests-day": "33011", "x-ratelimit-remaining-requests-day": "14118" },
    { "x-ratelimit-reset": "33011", "x-ratelimit-remaining": "1" },
    { "anthropic-ratelimit-tokens-reset": "2026-01-10T11:00:00Z", "anthropic-ratelimit-tokens-remaining": "16000" },
    {
      "anthropic-ratelimit-unified-7d-reset": seconds(9_999),
      "anthropic-ratelimit-unified-7d-status": "allowed_warning"
    },
    { "anthropic-ratelimit-unified-7d-reset": seconds(9_999), "anthropic-ratelimit-unified-7d-utilization": "0.4" },
    { "x-codex-secondary-reset-after-seconds": "471285", "x-codex-secondary-used-percent": "30" },
    { "x-codex-secondary-reset-at": seconds(471_285), "x-codex-secondary-used-percent": "30" },
    { ratelimit: "\"api\";r=5;t=600" },
    { ratelimit: "limit=100, remaining=7, reset=600" },
    { "acme-fast-output-tokens-reset": "2026-01-10T11:00:00Z", "acme-fast-output-tokens-remaining": "19000" }
  ]
  it.each(open)("a window with something left does not count: %j", (headers) => {
    assert.strictEqual(fromHeaders({ ...headers, "retry-after": "3" }).reset?.waitMillis, 3_000)
    assert.isTrue(fromHeaders(headers).claims.every(({ refused }) => refused === "the window has something left"))
  })

  it("an empty count says nothing of a window", () => {
    assert.strictEqual(
      fromHeaders({ "x-codex-primary-reset-after-seconds": "60", "x-codex-primary-used-percent": "" }).reset
        ?.waitMillis,
      60_000
    )
  })

  it("an instant of the server's clock is corrected by its date header, a delta is not", () => {
    const date = new Date(received - 600_000).toUTCString()
    const until = new Date(received - 590_000).toUTCString()
    assert.strictEqual(fromHeaders({ date, "retry-after": until }).reset?.waitMillis, 10_000)
    assert.strictEqual(fromHeaders({ date, "retry-after": "10" }).reset?.waitMillis, 10_000)
    assert.strictEqual(fromHeaders({ date, "retry-after": "10" }).reset?.named, "delta")
    assert.strictEqual(fromHeaders({ date, "retry-after": until }).reset?.named, "instant")
  })

  it("clocks that differ by 2 s or less are left alone", () => {
    const reset = (skew: number) =>
      fromHeaders({
        date: new Date(received - skew).toUTCString(),
        "retry-after": new Date(received + 10_000).toUTCString()
      }).reset?.waitMillis
    assert.strictEqual(reset(2_000), 10_000)
    assert.strictEqual(reset(3_000), 13_000)
  })
})

describe("Reset, what is refused", () => {
  const refused: ReadonlyArray<readonly [value: string, why: string]> = [
    ["", "empty"],
    ["soon", "no time"],
    ["NaN", "no time"],
    ["-1", "negative"],
    ["-0", "zero names no wait"],
    ["0", "zero names no wait"],
    ["1e999", "not finite"],
    ["0x10", "no time"],
    ["1".repeat(40), "more than 32 days"],
    ["2764801", "more than 32 days"],
    ["1768000000", "past"],
    ["Wed, 14 May 2025 12:00:20 GMT", "past"],
    ["Retry in May 20 2025", "no time"],
    ["Wed, 99 May 2025 99:00:20 GMT", "no date"],
    ["2025-13-45T99:99:99Z", "no date"],
    ["\uD800", "no time"],
    ["İ".repeat(8), "no time"],
    ["x".repeat(100), "too long for a time"],
    ["20s tomorrow", "no time"]
  ]
  it.each(refused)("%j: %s", (value, why) => {
    const { claims, reset } = fromHeaders([["retry-after", value]])
    assert.isUndefined(reset)
    assert.strictEqual(claims[0]?.refused, why)
  })

  it("32 days is still a wait", () => {
    assert.strictEqual(fromHeaders({ "retry-after": "2764800" }).reset?.waitMillis, 32 * DAY)
  })

  it("zero in one field leaves the other its say", () => {
    assert.strictEqual(fromHeaders({ "retry-after-ms": "0", "retry-after": "40" }).reset?.waitMillis, 40_000)
  })

  it("a refused value is masked", () => {
    const { claims } = fromHeaders({ "retry-after": "sk-proj-Abcdef0123456789" })
    assert.notInclude(claims[0]?.value ?? "", "Abcdef")
  })
})

describe("Reset, laws", () => {
  const value = FastCheck.oneof(
    FastCheck.string({ unit: "binary" }),
    FastCheck.double().map(String),
    FastCheck.bigInt().map(String),
    FastCheck.integer({ min: 0, max: 4_000_000 }).map(String),
    FastCheck.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    FastCheck.constantFrom("", "NaN", "-0", "1e999", "\uD800", "6ms", "İİİ", "9".repeat(40), "0s", "now")
  )
  const name = FastCheck.constantFrom(
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "ratelimit",
    "date",
    "x-ratelimit-remaining",
    "anthropic-ratelimit-unified-reset"
  )
  const pairs = FastCheck.array(FastCheck.tuple(name, value), { maxLength: 8 })
  const clock = FastCheck.integer({ min: 0, max: 4_102_444_800_000 })

  it.prop("whatever is sent, a reset lies after receipt, within 32 days, and is the latest claim", [
    pairs,
    value,
    clock
  ], ([headers, message, at]) => {
    const evidence = Evidence.fromResponse({ status: 429, headers, body: { error: { message, retry_after: message } } })
    const { claims, reset } = Reset.read(evidence, at)
    const waits = claims.flatMap(({ waitMillis }) => waitMillis === undefined ? [] : [waitMillis])
    assert.strictEqual(reset?.waitMillis, waits.length === 0 ? undefined : Math.max(...waits))
    for (const wait of waits) {
      assert.isAbove(wait, 0)
      assert.isAtMost(wait, 32 * DAY)
      assert.isTrue(Number.isInteger(wait))
    }
    for (const claim of claims) assert.isTrue((claim.waitMillis === undefined) !== (claim.refused === undefined))
  }, { fastCheck: { numRuns: 500 } })

  it("the words of a page", () => {
    const page = "<html><head><title>502</title></head><body><p>Please try again in 30 seconds.</p></body></html>"
    const evidence = Evidence.fromResponse({ status: 502, headers: { "content-type": "text/html" }, body: page })
    assert.strictEqual(Reset.read(evidence, received).reset?.waitMillis, 30_000)
  })

  const unit = FastCheck.constantFrom(["ms", 1], ["s", 1_000], ["m", 60_000], ["h", 3_600_000] as const)
  it.prop(
    "a unit is never taken for another",
    [FastCheck.integer({ min: 1, max: 700 }), unit],
    ([n, [name, millis]]) => {
      const wait = n * Number(millis)
      assert.strictEqual(fromHeaders({ "x-ratelimit-reset-tokens": `${n}${name}` }).reset?.waitMillis, wait)
      assert.strictEqual(fromText(`Please try again in ${n}${name}.`).reset?.waitMillis, wait)
      assert.strictEqual(fromBody({ error: { retryDelay: `${n}${name}` } }).reset?.waitMillis, wait)
    }
  )

  it.prop("a delta, epoch seconds and epoch milliseconds under one name agree", [
    FastCheck.integer({ min: 1, max: 2_000_000 })
  ], ([n]) => {
    const waits = [String(n), seconds(n), String(received + n * 1_000)].map((value) =>
      fromHeaders({ "x-ratelimit-reset": value }).reset?.waitMillis
    )
    assert.deepStrictEqual(waits, [n * 1_000, n * 1_000, n * 1_000])
  })

  const parts = (least: number, most: number) =>
    FastCheck.integer({ min: least, max: most }).map((n) => String(n).padStart(2, "0"))
  // a few past the end of each part, where an engine refuses or counts on
  const parsed = FastCheck.record({
    year: FastCheck.oneof(FastCheck.integer({ min: 1_000, max: 9_999 }), FastCheck.integer({ min: 2_024, max: 2_028 })),
    month: parts(0, 14),
    day: parts(0, 33),
    hour: parts(0, 25),
    minute: parts(0, 61),
    second: parts(0, 61)
  })
  const names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  it.prop("a date in either form that all send is the instant that an engine makes of it, or none", [parsed], ([
    { day, hour, minute, month, second, year }
  ]) => {
    const clock = `${hour}:${minute}:${second}`
    const http = `Sat, ${day} ${names[Number(month) - 1] ?? "Foo"} ${year} ${clock} GMT`
    const before = Date.UTC(year, Number(month) - 1, Number(day)) - DAY
    for (const text of [`${year}-${month}-${day}T${clock}Z`, http]) {
      const at = Date.parse(text)
      const read = fromHeaders({ "x-ratelimit-reset": text }, Number.isNaN(at) ? before : at - 60_000).reset
      assert.strictEqual(read?.waitMillis, Number.isNaN(at) ? undefined : 60_000, text)
    }
    // an hour by the server's clock, whatever ours says
    const at = Date.parse(http)
    if (Number.isNaN(at)) return
    const later = new Date(at + 3_600_000).toISOString()
    assert.strictEqual(fromHeaders({ date: http, reset_at: later }).reset?.waitMillis, 3_600_000, http)
  }, { fastCheck: { numRuns: 500 } })
})
