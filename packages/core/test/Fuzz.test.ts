import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Readout from "@recourse/core/Readout"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"

const list = (text: string) => FastCheck.constantFrom(...text.trim().split(/\s+/))

const names = `
  error message code type status cause errors lastError name stack response headers data body details metadata raw
  choices candidates finish_reason retry_after resets_at $metadata statusCode responseBody _tag reason
  __proto__ toJSON then 0 length violations
`.trim().split(/\s+/)
const keys = FastCheck.constantFrom(...names)
const words = FastCheck.oneof(
  list(
    "rate_limit_exceeded {\"error\":{ 429 ECONNRESET AbortError RequestError Transport [[[[ \\ ' data:{ <html><title>"
  ),
  FastCheck.constantFrom(
    "Error code: 429 - {'error': {'code': '",
    "litellm.RateLimitError: ",
    "try again in 9".repeat(50)
  )
)

const hostile = [
  () =>
    new Proxy({}, {
      get: () => {
        throw new Error("get")
      },
      has: () => {
        throw new Error("has")
      },
      ownKeys: () => {
        throw new Error("ownKeys")
      }
    }),
  () =>
    new Proxy([], {
      get: () => {
        throw new Error("get")
      }
    }),
  () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  },
  () => ({
    get message(): string {
      throw new Error("message")
    },
    get cause(): unknown {
      throw new Error("cause")
    },
    status: 429
  }),
  () => ({
    toString: () => {
      throw new Error("toString")
    },
    toJSON: () => {
      throw new Error("toJSON")
    },
    error: 1n
  }),
  () => new Proxy(() => undefined, {}),
  () => Object.create(null),
  () => Symbol("x"),
  () => new Map([["error", 1]])
]

const anything = FastCheck.letrec<{ readonly value: unknown }>((tie) => ({
  value: FastCheck.oneof(
    { depthSize: "small", withCrossShrink: true },
    FastCheck.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withSparseArray: true }),
    FastCheck.array(words, { maxLength: 4 }).map((parts) => parts.join("")),
    FastCheck.integer({ min: -1, max: 1_100 }),
    FastCheck.nat({ max: hostile.length - 1 }).map((n) => `hostile ${n}`),
    FastCheck.array(tie("value"), { maxLength: 3 }),
    FastCheck.array(FastCheck.tuple(keys, tie("value")), { maxLength: 6 }).map((entries) => Object.fromEntries(entries))
  )
})).value

/** What was generated, with every hostile value made in its place: the generator itself cannot hold them. */
const revive = (value: unknown): unknown => {
  if (typeof value === "string" && /^hostile \d$/.test(value)) return hostile[Number(value.slice(8))]?.()
  if (Array.isArray(value)) return value.map(revive)
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item)]))
}

/** A graph of errors whose causes may lead back to it. */
const graph = FastCheck.array(FastCheck.tuple(anything, FastCheck.nat({ max: 5 })), { minLength: 1, maxLength: 5 }).map(
  (nodes) => {
    const errors = nodes.map(([value]) =>
      Object.assign(new Error("node"), { extra: revive(value), cause: revive(value) })
    )
    nodes.forEach(([, to], i) => {
      const error = errors[i]
      if (error !== undefined) {
        Object.assign(error, { cause: errors[to] ?? error.cause, errors: to === 5 ? errors : undefined })
      }
    })
    return errors[0]
  }
)

const encode = Schema.encodeSync(Schema.parseJson(Fault.Schema))

const sound = (fault: Fault.Fault) => {
  assert.isTrue(Fault.isFault(fault))
  for (const policy of [RetryPolicy.standard, RetryPolicy.cautious]) Remedy.fromFault(fault, policy)
  const { fields, headline } = Readout.fromFault(fault)
  assert.isNotEmpty(headline)
  assert.isAtMost(fault.message.length, 600)
  for (const { value } of fields) if (typeof value === "string") assert.isAtMost(value.length, 1_100)
  assert.isAtMost(encode(fault).length, 200_000)
  assert.isNotEmpty(JSON.stringify(fault))
}

describe("Whatever it is handed, a diagnosis gives a fault", () => {
  const runs = { fastCheck: { numRuns: 400 } }

  it.prop("thrown", [FastCheck.oneof(anything, graph)], ([thrown]) => {
    sound(Diagnosis.fromUnknown(revive(thrown), { received: 0 }))
  }, runs)

  it.prop("a frame", [anything], ([frame]) => {
    sound(Diagnosis.fromFrame(revive(frame), { received: 0 }))
  }, runs)

  it.prop("an answer", [FastCheck.integer(), anything, anything], ([status, headers, body]) => {
    sound(Diagnosis.fromResponse({ status, headers: revive(headers), body: revive(body) }, { received: 0 }))
  }, runs)

  it.prop("an answer with any JSON for a body", [
    FastCheck.integer({ min: 100, max: 599 }),
    FastCheck.json({ maxDepth: 8 })
  ], ([status, body]) => {
    sound(Diagnosis.fromResponse({ status, body }, { received: 0 }))
  }, runs)

  it("every hostile value, within everything that is looked into", () => {
    for (const make of hostile) {
      for (const outer of names) {
        for (const inner of names) {
          const body = { [outer]: { [inner]: make() } }
          assert.isTrue(Fault.isFault(Diagnosis.fromResponse({ status: 400, body }, { received: 0 })))
          assert.isTrue(Fault.isFault(Diagnosis.fromUnknown(body, { received: 0 })))
        }
      }
    }
  })

  it("every hostile value, at every place", () => {
    for (const make of hostile) {
      for (
        const at of [
          "cause",
          "error",
          "message",
          "response",
          "headers",
          "errors",
          "lastError",
          "$metadata",
          "data",
          "status",
          "code"
        ]
      ) {
        sound(Diagnosis.fromUnknown({ [at]: make() }, { received: 0 }))
        sound(Diagnosis.fromUnknown(make(), { received: 0 }))
        sound(Diagnosis.fromFrame({ [at]: make(), error: make() }, { received: 0 }))
      }
    }
  })

  it("a list that holds itself is looked into once", () => {
    const list: Array<unknown> = []
    list.push(list, list, list, list, { error: { list } })
    sound(Diagnosis.fromFrame(list, { received: 0 }))
    sound(Diagnosis.fromUnknown({ error: list, errors: list }, { received: 0 }))
  })

  it("an instant at the end of time", () => {
    sound(Diagnosis.fromUnknown("resets 3pm (America/New_York)", { received: 8.64e15 }))
    sound(Diagnosis.fromResponse({ status: 429.5, headers: { "retry-after": "9" } }, { received: 8.64e15 }))
  })

  it("deep nesting is no deeper than the walk", () => {
    const deep = (open: string, close: string) => `${open.repeat(100_000)}${close.repeat(100_000)}`
    for (const body of [deep("[", "]"), deep("{\"error\":", "}"), "[".repeat(300_000), "{\"error\":".repeat(50_000)]) {
      sound(Diagnosis.fromResponse({ status: 429, body }, { received: 0 }))
    }
    sound(Diagnosis.fromResponse({ status: 400, body: `${"[".repeat(8_000)}1${"]".repeat(8_000)}` }, { received: 0 }))
    let cause: unknown
    for (let i = 0; i < 50_000; i++) cause = { message: "again", cause }
    sound(Diagnosis.fromUnknown(cause, { received: 0 }))
  })
})
