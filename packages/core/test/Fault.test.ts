import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Readout from "@recourse/core/Readout"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Arbitrary from "effect/Arbitrary"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"
import { inspect } from "node:util"

const policies = [RetryPolicy.standard, RetryPolicy.brisk, RetryPolicy.persistent, RetryPolicy.cautious]
const json = Schema.parseJson(Fault.Schema)
const encode = Schema.encodeSync(json)
const decode = Schema.decodeUnknownSync(json)

const roundTrip = (fault: Fault.Fault) => {
  const line = encode(fault)
  const back = decode(line)
  assert.strictEqual(encode(back), line)
  assert.deepStrictEqual(Readout.fromFault(back), Readout.fromFault(fault))
  assert.strictEqual(back.message, fault.message)
  const worth = (one: Fault.Fault) =>
    policies.map((policy) => {
      const remedy = Remedy.fromFault(one, policy)
      return remedy._tag === "Retry" ? [remedy.tier, remedy.wait.pipe((wait) => JSON.stringify(wait))] : remedy._tag
    })
  assert.deepStrictEqual(worth(back), worth(fault))
}

describe("Fault", () => {
  it.prop("a fault read back from its schema has the same encoded form, readout and remedies", [
    Arbitrary.make(Fault.Schema)
  ], ([fault]) => {
    roundTrip(fault)
  }, { fastCheck: { numRuns: 200 } })

  const body = FastCheck.oneof(
    FastCheck.json(),
    FastCheck.string({ unit: "binary" }),
    FastCheck.record({
      error: FastCheck.record({
        message: FastCheck.string(),
        code: FastCheck.oneof(FastCheck.string(), FastCheck.integer())
      })
    }),
    FastCheck.constant(`{"error":{"message":"${"long ".repeat(10_000)}"}}`),
    FastCheck.constant(`<html><title>${"x".repeat(5_000)}</title>`)
  )
  it.prop("so does any fault that was diagnosed", [
    FastCheck.integer({ min: 100, max: 599 }),
    body,
    FastCheck.dictionary(FastCheck.string(), FastCheck.string())
  ], ([status, body, headers]) => {
    roundTrip(Diagnosis.fromResponse({ status, body, headers }, { received: 1_768_042_800_000 }))
    roundTrip(Diagnosis.fromUnknown({ message: typeof body === "string" ? body : "x", cause: body }, { received: 0 }))
  }, { fastCheck: { numRuns: 200 } })

  it.effect("is yieldable, caught by its tag, and made without a stack", () =>
    Effect.gen(function*() {
      const fault = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
      const caught = yield* Effect.gen(function*() {
        return yield* fault
      }).pipe(Effect.catchTag("Overloaded", (overloaded) => Effect.succeed(overloaded)))
      assert.strictEqual(caught, fault)
      assert.instanceOf(fault, Error)
      assert.strictEqual(fault.name, "Overloaded")
      assert.strictEqual(fault.stack.split("\n").length, 1)
    }))

  it("is known for an error by those who look at no prototype, and has no stack of its own", () => {
    const fault = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
    assert.strictEqual(Object.prototype.toString.call(fault), "[object Error]")
    assert.strictEqual(fault.stack, `Overloaded: ${fault.message}`)
    assert.deepStrictEqual(Object.getOwnPropertyNames(fault), ["_tag"])
    assert.include(Cause.pretty(Cause.fail(fault)), fault.message)
  })

  it("withAttempts changes nothing but the count", () => {
    const fault = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "9" } }, { received: 0 })
    const counted = Fault.withAttempts(fault, 4)
    assert.strictEqual(counted.attempts, 4)
    assert.strictEqual(encode(Fault.withAttempts(counted, 1)), encode(fault))
  })
})

describe("Fault, what stays readable", () => {
  const harmless = [
    "The Basic plan is limited",
    "the bearer token is missing",
    "Missing key: messages",
    "Unexpected token: <",
    "max_token: 500",
    "an org-wide limit",
    "api_key_not_found",
    "undici@6.21.0",
    "user_weekly_rate_limited",
    "claude-sonnet-4-20250514-v1:0",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
    "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    "https://platform.openai.com/account/rate-limits"
  ]
  for (const text of harmless) {
    it(text, () => {
      assert.include(
        Diagnosis.fromResponse({ status: 400, body: { error: { message: text } } }, { received: 0 }).message,
        text
      )
    })
  }
})

// forty secrets: where each was planted, and the part of it that may be seen nowhere
const secrets: ReadonlyArray<readonly [planted: string, secret: string]> = [
  ["Authorization: Bearer zq8Fk2pLw9", "zq8Fk2pLw9"],
  ["authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"],
  ["Incorrect API key provided: sk-Ab12Cd34Ef56", "Ab12Cd34Ef56"],
  ["key sk-proj-A_b-1234567890abcdef", "1234567890abcdef"],
  ["key sk-ant-api03-Zz99Yy88Xx77", "Zz99Yy88Xx77"],
  ["key sk-or-v1-0011223344556677", "0011223344556677"],
  ["key gsk_Ff00Gg11Hh22", "Ff00Gg11Hh22"],
  ["key xai-Jj33Kk44Ll55", "Jj33Kk44Ll55"],
  ["key AIzaSyA1234567890bcdefghij", "SyA1234567890bcdefghij"],
  ["token ya29.a0Af_byQ1w2e3r4", "a0Af_byQ1w2e3r4"],
  ["key hf_Mm66Nn77Oo88", "Mm66Nn77Oo88"],
  ["key ghp_Pp99Qq00Rr11Ss22", "Pp99Qq00Rr11Ss22"],
  ["key AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"],
  ["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "c2lnbmF0dXJl"],
  ["key pplx-Tt33Uu44Vv55", "Tt33Uu44Vv55"],
  ["key r8_Ww66Xx77Yy88", "Ww66Xx77Yy88"],
  ["key nvapi-Zz99Aa00Bb11", "Zz99Aa00Bb11"],
  ["key csk-Cc22Dd33Ee44", "Cc22Dd33Ee44"],
  ["https://api.test/v1?key=Gg55Hh66Ii77&alt=sse", "Gg55Hh66Ii77"],
  ["https://api.test/v1?api_key=Jj88Kk99Ll00", "Jj88Kk99Ll00"],
  ["https://api.test/v1?access_token=Mm11Nn22Oo33", "Mm11Nn22Oo33"],
  ["https://s3.test/x?X-Amz-Signature=Pp44Qq55Rr66", "Pp44Qq55Rr66"],
  ["https://user:Ss77Tt88Uu99@proxy.test", "Ss77Tt88Uu99"],
  ["x-api-key: Vv00Ww11Xx22", "Vv00Ww11Xx22"],
  ["api-key: Yy33Zz44Aa55", "Yy33Zz44Aa55"],
  ["x-goog-api-key: Bb66Cc77Dd88", "Bb66Cc77Dd88"],
  ["cookie: session=Ee99Ff00Gg11; theme=dark", "Ee99Ff00Gg11"],
  ["set-cookie: id=Hh22Ii33Jj44; Path=/", "Hh22Ii33Jj44"],
  ["organization org-Kk55Ll66Mm77", "Kk55Ll66Mm77"],
  ["project proj_Nn88Oo99Pp00", "Nn88Oo99Pp00"],
  ["in project my-private-project-12", "my-private-project-12"],
  ["consumer projects/123456789012", "123456789012"],
  ["arn:aws:bedrock:us-east-1:210987654321:model/x", "210987654321"],
  ["organization 0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e"],
  ["account user_Qq11Rr22Ss33", "Qq11Rr22Ss33"],
  ["mail jane.doe@example.com", "jane.doe"],
  ["password=Tt44Uu55Vv66", "Tt44Uu55Vv66"],
  ["client_secret: Ww77Xx88Yy99", "Ww77Xx88Yy99"],
  ["0123456789abcdef0123456789abcdef is your key", "0123456789abcdef"],
  ["token=Zz00Aa11Bb22", "Zz00Aa11Bb22"]
]

/** Everything that a program may print of a fault. */
const printed = (fault: Fault.Fault): string => {
  const lines: Array<string> = []
  const logger = Logger.make(({ cause, message }) => {
    lines.push(Cause.pretty(cause, { renderErrorCause: true }), inspect(message, { depth: 10 }))
  })
  const exit = Effect.runSyncExit(
    Effect.logError(fault, Cause.fail(fault)).pipe(
      Effect.zipRight(Effect.fail(fault)),
      Effect.withSpan("call"),
      Effect.provide(Logger.replace(Logger.defaultLogger, logger))
    )
  )
  return [
    ...lines,
    JSON.stringify(fault),
    JSON.stringify(fault.evidence),
    JSON.stringify(fault.because),
    inspect(fault, { depth: 10, showHidden: true }),
    inspect(fault, { depth: 10, customInspect: false, showHidden: true }),
    inspect(fault.evidence, { depth: 10, showHidden: true }),
    inspect(exit, { depth: 10 }),
    JSON.stringify(exit),
    String(fault),
    fault.stack,
    JSON.stringify(Readout.fromFault(fault)),
    Readout.summary(fault),
    encode(fault),
    inspect(Object.assign({}, fault)),
    Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
  ].join("\n")
}

const planted: ReadonlyArray<readonly [string, (text: string) => Fault.Fault]> = [
  ["a message", (text) => Diagnosis.fromResponse({ status: 400, body: { error: { message: text } } }, { received: 0 })],
  ["a text body", (text) => Diagnosis.fromResponse({ status: 500, body: text }, { received: 0 })],
  [
    "a field of the body",
    (text) =>
      Diagnosis.fromResponse({ status: 400, body: { error: { param: text, code: text, type: text } } }, { received: 0 })
  ],
  [
    "headers",
    (text) =>
      Diagnosis.fromResponse(
        { status: 429, headers: { "retry-after": text, server: text, "x-ratelimit-reset": text } },
        { received: 0 }
      )
  ],
  ["a frame", (text) => Diagnosis.fromFrame({ type: "error", error: { message: text } }, { received: 0 })],
  [
    "a thrown message",
    (text) => Diagnosis.fromUnknown(new Error(text, { cause: new Error(`timed out: ${text}`) }), { received: 0 })
  ],
  [
    "a transport's message",
    (text) => Diagnosis.fromUnknown(Object.assign(new Error(text), { code: "ECONNRESET" }), { received: 0 })
  ],
  [
    "an SDK's request",
    (text) =>
      Diagnosis.fromUnknown({
        name: "AI_APICallError",
        statusCode: 400,
        responseBody: "{}",
        url: text,
        requestBodyValues: { prompt: text },
        requestHeaders: { authorization: text }
      }, { received: 0 })
  ],
  [
    "an echoed prompt",
    (text) =>
      Diagnosis.fromResponse({
        status: 422,
        body: { detail: [{ msg: "bad", input: text, prompt: `tell nobody ${text}` }] }
      }, { received: 0 })
  ]
]

describe("Fault, what nobody may read", () => {
  it("there are forty secrets", () => {
    assert.strictEqual(secrets.length, 40)
  })

  for (const [where, make] of planted) {
    it(`none of them is printed when planted in ${where}`, () => {
      for (const [text, secret] of secrets) {
        const out = printed(make(`oops ${text} (end)`))
        assert.isFalse(
          out.includes(secret),
          `${text}\n${out.split("\n").filter((line) => line.includes(secret)).join("\n").slice(0, 600)}`
        )
      }
    })
  }

  const forms = [
    "{\"accessToken\":\"hunter2\"}",
    "{\"SecretAccessKey\":\"hunter2\"}",
    "bad {\"password\":\"hunter2\"}",
    "<password>hunter2</password>",
    ">api_key=hunter2",
    "[\"x-api-key\",\"hunter2\"]",
    "https://:hunter2@host.test",
    "Authorization: Token hunter2",
    "{'password': 'hunter2'}"
  ]
  it("a secret is known in any form of a pair, escaped or not", () => {
    for (const form of forms) {
      for (
        const body of [
          form,
          JSON.stringify({ error: { message: form } }),
          JSON.stringify({ error: { message: JSON.stringify(form) } })
        ]
      ) {
        assert.notInclude(printed(Diagnosis.fromResponse({ status: 400, body }, { received: 0 })), "hunter2", body)
      }
    }
  })

  it("a prompt is masked however it nests", () => {
    const echoes = [
      { detail: [{ msg: "bad", input: { contents: [{ parts: [{ text: "hunter2" }] }] } }] },
      { error: { content: [{ type: "text", text: "hunter2" }] } },
      { input: ["hunter2"] },
      { model: "l", response: "hunter2", done: false },
      { candidates: [{ content: { parts: [{ text: "hunter2" }] } }] },
      { type: "response.output_text.delta", delta: "hunter2" },
      { type: "content_block_delta", delta: { type: "text_delta", text: "hunter2" } },
      { detail: [{ msg: "Field required", input: { system: "hunter2", instructions: "hunter2" } }] },
      { error: { message: "bad {'content': 'hunter2'}" } },
      { error: { message: "bad {\"prompt\": \"hunter2\"}" } }
    ]
    for (const body of echoes) {
      assert.notInclude(
        printed(Diagnosis.fromResponse({ status: 422, body }, { received: 0 })),
        "hunter2",
        JSON.stringify(body)
      )
      assert.notInclude(printed(Diagnosis.fromFrame(`data: ${JSON.stringify(body)}\n\n`, { received: 0 })), "hunter2")
    }
  })

  it("a code that carries a secret is masked", () => {
    const key = "sk-proj-hunter20123456789"
    for (
      const thrown of [{ message: "x", status: 429, code: `rate_limit_exceeded: ${key}` }, {
        message: "x",
        name: `RateLimitError:${key}`
      }]
    ) {
      assert.notInclude(printed(Diagnosis.fromUnknown(thrown, { received: 0 })), "hunter2")
    }
  })

  it("a secret that the cap cuts in two is dropped whole", () => {
    for (let shift = 0; shift < 40; shift++) {
      const text = `${"a b ".repeat(5_110)}${
        " ".repeat(shift)
      }sk-proj-SECRETsecretSECRETsecretSECRET0123456789 and more ${"c d ".repeat(2_000)}`
      const fault = Diagnosis.fromResponse({ status: 500, body: text }, { received: 0 })
      assert.notInclude(printed(fault), "SECRETsec")
    }
  })

  it("what is no secret stays readable", () => {
    const message =
      "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, code user_weekly_rate_limited, see https://example.com/docs/limits"
    assert.strictEqual(
      Diagnosis.fromResponse({ status: 429, body: { error: { message } } }, { received: 0 }).evidence
        .toJSON() instanceof Object,
      true
    )
    const fault = Diagnosis.fromResponse({ status: 429, body: { error: { message } } }, { received: 0 })
    assert.include(fault.message, message)
  })

  it("the corpus reads back from its schema", () => {
    const rows = readFileSync(new URL("./corpus/faults.jsonl", import.meta.url), "utf8").trim().split("\n")
    for (const line of rows) {
      const { source } = JSON.parse(line)
      roundTrip(
        source.error === undefined
          ? Diagnosis.fromResponse({ status: source.status ?? 500, headers: source.headers, body: source.body }, {
            received: 1_768_042_800_000
          })
          : Diagnosis.fromUnknown(source.error, { received: 1_768_042_800_000 })
      )
    }
  })
})
