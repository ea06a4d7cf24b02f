import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Readout from "@recourse/core/Readout"
import * as DateTime from "effect/DateTime"
import { inspect } from "node:util"

const received = Date.parse("2026-01-10T10:00:00Z")

const limited = Diagnosis.fromResponse({
  status: 429,
  headers: { "retry-after": "20", "x-request-id": "req_1" },
  body: { error: { message: "Slow down, please.", type: "tokens", code: "rate_limit_exceeded", param: null } }
}, { received })

const field = (readout: Readout.Readout, label: string) => readout.fields.find((one) => one.label === label)?.value

describe("Readout", () => {
  it("the summary is one sentence with instants in UTC", () => {
    assert.strictEqual(
      limited.message,
      "Rate limited (429, rate_limit_exceeded): Slow down, please; resets at 2026-01-10T10:00:20.000Z."
    )
  })

  it("has its fields in order, what to do next last", () => {
    const readout = Readout.fromFault(limited)
    assert.deepStrictEqual(readout.fields.map(({ label }) => label), [
      "status",
      "code",
      "said",
      "limit",
      "resets at",
      "decided by",
      "x-request-id",
      "body",
      "next"
    ])
    assert.isTrue(DateTime.isDateTime(field(readout, "resets at")))
  })

  it("the body leaves out what a field says already", () => {
    assert.strictEqual(field(Readout.fromFault(limited), "body"), "error.type: tokens")
  })

  it("inspection and JSON print the readout", () => {
    assert.include(inspect(limited), "RateLimited: Rate limited\n  status: 429")
    assert.strictEqual(JSON.parse(JSON.stringify(limited))["said"], "Slow down, please.")
  })

  it("an HTML page is named with its title and status, never spilled", () => {
    const page = Diagnosis.fromResponse({
      status: 502,
      body: "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>spilled</body></html>"
    }, { received })
    assert.strictEqual(page.message, "The provider is unavailable (502): an HTML page titled \"502 Bad Gateway\".")
    assert.notInclude(JSON.stringify(page), "spilled")
    assert.notInclude(inspect(page), "spilled")
  })

  it("every kind says what to do next", () => {
    const next = [400, 401, 402, 403, 408, 429, 500, 529].map((status) =>
      field(Readout.fromFault(Diagnosis.fromResponse({ status }, { received })), "next")
    )
    for (const text of next) assert.isNotEmpty(text)
  })

  it("moves no cursor and turns no line around", () => {
    const fault = Diagnosis.fromResponse({ status: 500, body: { error: { message: "a\u001b[31mred\u202Eb\u0007" } } }, {
      received
    })
    // oxlint-disable-next-line no-control-regex
    assert.notMatch(fault.message + JSON.stringify(Readout.fromFault(fault).fields), /[\u001b\u202E\u0007]/)
  })

  const quotes: ReadonlyArray<readonly [text: string, type: string | undefined, quoted: string]> = [
    ["<html><title>Sign in</title></html>", "text/html", "an HTML page titled \"Sign in\""],
    ["<html></html>", undefined, "an HTML page without a title"],
    ["not really", "text/html; charset=utf-8", "an HTML page without a title"],
    ["\u0000\u0001", "image/png", "image/png, 2 characters"],
    ["{\"a\":{\"b\":1},\"c\":[\"x\"]}", "application/json", "a.b: 1; c[0]: x"],
    ["key sk-proj-0123456789ab", undefined, "key [masked]"],
    ["plain  text", "text/plain", "plain text"]
  ]
  it.each(quotes)("quotes %j of type %s", (text, type, quoted) => {
    assert.strictEqual(Readout.body(text, type), quoted)
  })

  it("a quote is capped at 1,024 characters", () => {
    assert.strictEqual(Readout.body("word ".repeat(5_000)).length, 1_024)
  })
})

describe("Readout, whose clock ran out", () => {
  it("names it for every clock that is known, and for no other fault", () => {
    const clock = (code: string) =>
      field(
        Readout.fromFault(Diagnosis.fromUnknown(Object.assign(new Error("x"), { code }), { received })),
        "clock"
      )
    assert.strictEqual(clock("RECOURSE_HEADERS_TIMEOUT"), "Recourse's, to the headers")
    assert.strictEqual(clock("RECOURSE_CHUNK_TIMEOUT"), "Recourse's, from one chunk to the next")
    assert.strictEqual(clock("UND_ERR_HEADERS_TIMEOUT"), "undici's headersTimeout")
    assert.strictEqual(clock("UND_ERR_BODY_TIMEOUT"), "undici's bodyTimeout")
    assert.isUndefined(clock("ECONNRESET"))
  })
})
