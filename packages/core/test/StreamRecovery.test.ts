import { assert, describe, it } from "@effect/vitest"
import * as Attempt from "@recourse/core/Attempt"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryBudget from "@recourse/core/RetryBudget"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as StreamEnd from "@recourse/core/StreamEnd"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"

/** A part of a test's stream: `>word` is text, `?word` reasoning, `{word` a piece of a tool call, `.word` a stop reason. */
type Part = string

const describePart = (part: Part, received: number): StreamRecovery.Description => {
  const word = part.slice(1)
  switch (part[0]) {
    case ">":
      return { _tag: "Text", text: word }
    case "?":
      return { _tag: "Reasoning" }
    case "{":
      return { _tag: "Tool" }
    case ".":
      return { _tag: "End", end: StreamEnd.fromStopReason(word) ?? { _tag: "Complete", reason: word } }
    case "!":
      return { _tag: "Failed", fault: Diagnosis.fromFrame({ error: { type: word } }, { received }) }
    default:
      return { _tag: "Other" }
  }
}

const named = { describe: describePart }

const fault = (status: number, headers: object = {}) => Diagnosis.fromResponse({ status, headers }, { received: 0 })

/** What is done to one request: its parts, and what they end with, if it is no end of the bytes. */
type Step = readonly [parts: ReadonlyArray<Part>, error?: Fault.Fault]

/** A provider that answers by a script, and counts what was asked, open and read. */
const provider = (...script: ReadonlyArray<Step>) => {
  const seen = { asked: 0, open: 0, read: 0 }
  const stream = Stream.unwrapScoped(Effect.gen(function*() {
    const [parts, error] = script[seen.asked++] ?? [[">an", "> answer", ".stop"]]
    yield* Effect.acquireRelease(Effect.sync(() => seen.open++), () => Effect.sync(() => seen.open--))
    const all = Stream.fromIterable(parts).pipe(
      Stream.rechunk(1),
      Stream.tap(() => Effect.sync(() => seen.read++))
    )
    return error === undefined ? all : Stream.concat(all, Stream.fail(error))
  }))
  return { seen, stream }
}

type Out = Part | StreamRecovery.Boundary | StreamRecovery.CutShort

const shown = (part: Out): string =>
  typeof part === "string"
    ? part
    : part._tag === "Boundary"
    ? `|${part.attempt} ${part.fault._tag}`
    : part._tag === "Stalled"
    ? `stalled(${part.text}) ${part.fault._tag}`
    : `capped(${part.text}) ${part.stopReason}`

/** Runs a stream to its end, whatever it waits for: the parts, and the fault that it ends with. */
const run = <E>(stream: Stream.Stream<Out, E>) =>
  Effect.gen(function*() {
    const parts: Array<string> = []
    const fiber = yield* Effect.fork(Effect.either(Stream.runForEach(stream, (part) =>
      Effect.sync(() => {
        parts.push(shown(part))
      }))))
    yield* TestClock.adjust("1 day")
    const ended = yield* Fiber.join(fiber)
    return { parts, error: ended._tag === "Left" ? ended.left : undefined }
  })

const recovered = (stream: Stream.Stream<Part, Fault.Fault>, options: Recovery.Free = {}) =>
  run(StreamRecovery.recover(stream, { ...named, ...options }))

const timedOut = fault(408)

describe("StreamRecovery, while no text has been shown", () => {
  it.effect("a break is retried, and leaves no trace of what held nothing", () =>
    Effect.gen(function*() {
      const { seen, stream } = provider([["open"], fault(529)], [["open"]], [["open", "!overloaded_error"]])
      const { error, parts } = yield* recovered(stream)
      assert.deepStrictEqual(parts, [">an", "> answer", ".stop"])
      assert.isUndefined(error)
      assert.deepStrictEqual([seen.asked, seen.open], [4, 0])
    }))

  it.effect("the reasoning of an attempt that failed is sealed", () =>
    Effect.gen(function*() {
      const { seen, stream } = provider([["open", "?hm"], fault(500)], [["?well", "?yes", ">so", ".stop"]])
      const { parts } = yield* recovered(stream)
      assert.deepStrictEqual(parts, ["open", "?hm", "|2 Unavailable", "?well", "?yes", ">so", ".stop"])
      assert.strictEqual(seen.asked, 2)
    }))

  it.effect("a fault that no retry cures is given back, and so is one whose tier is spent", () =>
    Effect.gen(function*() {
      const refused = yield* recovered(provider([[], fault(401)]).stream)
      assert.strictEqual(refused.error?._tag, "CredentialRejected")
      const { seen, stream } = provider(...Array.from({ length: 20 }, (): Step => [["?hm"], fault(500)]))
      const spent = yield* recovered(stream, { policy: RetryPolicy.brisk })
      assert.strictEqual(spent.error?._tag, "Unavailable")
      assert.strictEqual(spent.error?.attempts, seen.asked)
      assert.strictEqual(seen.asked, RetryPolicy.brisk.tiers["transient"]?.attempts)
    }))

  it.effect("what is no fault passes as it is", () =>
    Effect.gen(function*() {
      const stream: Stream.Stream<Part, "mine"> = Stream.concat(Stream.make(">a"), Stream.fail("mine" as const))
      const { error, parts } = yield* run(StreamRecovery.recover(stream, named))
      assert.deepStrictEqual([parts, error], [[">a"], "mine"])
    }))

  it.effect("what is held back until the first content is bounded", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 200 }, (_, i) => `ping ${i}`)
      const { parts } = yield* recovered(provider([[...many, ">a", ".stop"]]).stream)
      assert.deepStrictEqual(parts, [...many, ">a", ".stop"])
      const first = yield* Stream.runHead(
        StreamRecovery.recover(Stream.concat(Stream.fromIterable(many), Stream.never), named)
      )
      assert.strictEqual(first._tag, "Some")
    }))

  it.effect("an attempt knows its number", () =>
    Effect.gen(function*() {
      const numbers: Array<number> = []
      const { stream } = provider([[], timedOut])
      const asked = Stream.unwrap(Effect.map(Attempt.Attempt, ({ number }) => {
        numbers.push(number)
        return stream
      }))
      yield* recovered(asked)
      assert.deepStrictEqual(numbers, [1, 2])
    }))
})

describe("StreamRecovery, once text is out", () => {
  it.effect("where a retry would follow it ends as stalled, and is not asked for again", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [Step, string]> = [
        [[[">a", ">b"], timedOut], "TimedOut"],
        [[[">a", ">b"]], "StreamCut"],
        [[[">a", ">b", "!overloaded_error", ">c"]], "Overloaded"],
        [[[">a", ">b", ".MALFORMED_FUNCTION_CALL"]], "GenerationMalformed"]
      ]
      for (const [step, tag] of cases) {
        const { seen, stream } = provider(step)
        const { error, parts } = yield* recovered(stream)
        assert.deepStrictEqual(parts, [">a", ">b", `stalled(ab) ${tag}`])
        assert.isUndefined(error)
        assert.deepStrictEqual([seen.asked, seen.open], [1, 0])
      }
    }))

  it.effect("a far reset, a fault that no retry cures and a spent tier are given back, with what was shown beside", () =>
    Effect.gen(function*() {
      const once: RetryPolicy.RetryPolicy = {
        ...RetryPolicy.standard,
        tiers: Record.map(RetryPolicy.standard.tiers, (tier) => ({ ...tier, attempts: 1 }))
      }
      for (
        const [error, policy, tag] of [
          [fault(429, { "retry-after": "3600" }), RetryPolicy.standard, "RateLimited"],
          [fault(401), RetryPolicy.standard, "CredentialRejected"],
          [timedOut, once, "TimedOut"]
        ] as const
      ) {
        const given = yield* recovered(provider([[">a", ">b"], error]).stream, { policy })
        assert.deepStrictEqual(given.parts, [">a", ">b"])
        assert.strictEqual(given.error?._tag, tag)
        assert.strictEqual(StreamRecovery.prefix(given.error ?? fault(500)), "ab")
        assert.notInclude(JSON.stringify(given.error), "\"ab\"")
      }
    }))

  it("a cut is a fault like any other: it serialises, and keeps its remedy", () => {
    const cut = Diagnosis.fromCut({ received: 0 })
    const again = Schema.decodeSync(Fault.Schema)(Schema.encodeSync(Fault.Schema)(cut))
    assert.strictEqual(again._tag, "StreamCut")
    assert.strictEqual(again.message, cut.message)
    assert.deepStrictEqual(
      Remedy.fromFault(again, RetryPolicy.standard),
      Remedy.fromFault(cut, RetryPolicy.standard)
    )
  })

  it.effect("the output cap is a cut of its own, behind everything else", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* recovered(provider([[">a", "{call", ".max_tokens", "usage"]]).stream)
      assert.deepStrictEqual(parts, [">a", ".max_tokens", "usage", "capped(a) max_tokens"])
      assert.isUndefined(error)
    }))

  it.effect("a break after the end is none, and what follows the end is handed on", () =>
    Effect.gen(function*() {
      const { seen, stream } = provider([[">a", ".stop", "usage", ".done"], timedOut])
      assert.deepStrictEqual(yield* recovered(stream), { parts: [">a", ".stop", "usage", ".done"], error: undefined })
      assert.strictEqual(seen.asked, 1)
    }))
})

describe("StreamRecovery, tool calls", () => {
  it.effect("are withheld until the answer is whole", () =>
    Effect.gen(function*() {
      const { parts } = yield* recovered(provider([["{a", ">text", "{b", "{c", ".tool_calls"]]).stream)
      assert.deepStrictEqual(parts, [">text", "{a", "{b", "{c", ".tool_calls"])
    }))

  it.effect("are dropped with an attempt that breaks, and asked for again", () =>
    Effect.gen(function*() {
      const { seen, stream } = provider([["?hm", "{a", "{b"]], [["{a", "{b", ".tool_use"]])
      const { parts } = yield* recovered(stream)
      assert.deepStrictEqual(parts, ["?hm", "|2 StreamCut", "{a", "{b", ".tool_use"])
      assert.strictEqual(seen.asked, 2)
    }))
})

describe("StreamRecovery, what it tells and what it leaves", () => {
  it.effect("a cut leaves one record", () =>
    Effect.gen(function*() {
      for (const step of [[[">a"], timedOut], [[">a", ".length"]]] satisfies ReadonlyArray<Step>) {
        const events: Array<string> = []
        const cut = step.length === 2 ? "TimedOut" : "OutputCap"
        const count = Metric.value(
          Metric.tagged(Metric.tagged(Recovery.cuts, "tag", cut), "cut", cut === "TimedOut" ? "Stalled" : cut)
        )
        const before = (yield* count).count
        yield* recovered(provider(step).stream).pipe(
          Recovery.withListener((event) => Effect.sync(() => events.push(event._tag)))
        )
        assert.deepStrictEqual(events, cut === "TimedOut" ? ["Started", "Failed", "Cut"] : ["Started", "Cut"])
        assert.strictEqual((yield* count).count - before, 1)
      }
    }))

  it.effect("a retry is told as that of any call", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      yield* recovered(provider([["?hm"], timedOut]).stream).pipe(
        Recovery.withListener((event) => Effect.sync(() => events.push(event._tag)))
      )
      assert.deepStrictEqual(events, ["Started", "Failed", "Retrying", "Started", "Recovered"])
    }))

  it.effect("an interruption says that it struck in a stream, and closes it at once; an early stop is none", () =>
    Effect.gen(function*() {
      const wheres: Array<string> = []
      const { seen } = provider()
      const endless = StreamRecovery.recover(
        Stream.unwrapScoped(Effect.gen(function*() {
          yield* Effect.acquireRelease(Effect.sync(() => seen.open++), () => Effect.sync(() => seen.open--))
          return Stream.concat(Stream.make(">a", ">b"), Stream.never)
        })),
        named
      )
      const listened = Recovery.withListener((event) =>
        Effect.sync(() => {
          if (event._tag === "Interrupted") wheres.push(event.where)
        })
      )
      const fiber = yield* Effect.fork(listened(Stream.runDrain(endless)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(seen.open, 1)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([seen.open, wheres], [0, ["stream"]])
      yield* listened(Stream.runDrain(Stream.take(endless, 1)))
      assert.deepStrictEqual([seen.open, wheres], [0, ["stream"]])
      const waits = yield* Effect.fork(
        listened(Stream.runDrain(StreamRecovery.recover(provider([["?hm"], timedOut]).stream, named)))
      )
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(waits)
      assert.deepStrictEqual(wheres, ["stream", "backoff"])
    }))

  it.effect("a refusal inside a stream is known to every caller, and a held target is not asked", () =>
    Effect.gen(function*() {
      const target: Hold.Target = { account: Redacted.make("a key"), model: "a-model" }
      const far = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "3600" } }, { received: 0 })
      const first = provider([["?hm"], far])
      const second = provider()
      const streamed = (stream: Stream.Stream<Part, Fault.Fault>) =>
        Effect.flip(Stream.runDrain(StreamRecovery.recover(stream, { ...named, target })))
      yield* streamed(first.stream)
      const answered = yield* streamed(second.stream)
      assert.deepStrictEqual([answered._tag, answered.attempts, second.seen.asked], ["RateLimited", 0, 0])
    }).pipe(Effect.provide(Hold.layerMemory)))

  it.effect("a budget is asked before each retry, and not for a cut", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const budget: RetryBudget.Budget = {
        take: (fault) => Effect.sync(() => asked.push(fault._tag)),
        give: (taken) => Effect.sync(() => asked.push(`give ${taken}`))
      }
      const provide = Effect.provideService(RetryBudget.RetryBudget, budget)
      yield* provide(recovered(provider([["?hm"], timedOut]).stream))
      yield* provide(recovered(provider([[">hm"], timedOut]).stream))
      assert.deepStrictEqual(asked, ["TimedOut", "give 1"])
    }))

  it.effect("no part is read before it is asked for", () =>
    Effect.gen(function*() {
      const { seen, stream } = provider([[">a", ">b", ">c", ">d", ".stop"]])
      yield* Stream.runDrain(Stream.take(StreamRecovery.recover(stream, named), 2))
      assert.strictEqual(seen.read, 2)
    }))
})

describe("StreamRecovery, whatever the script", () => {
  const words = ["one ", "two ", "three ", "four ", "five"]
  const good = ["open", "?thinking", "{call", ...words.map((word) => `>${word}`), "{more", ".stop", "usage"]
  const step = FastCheck.record({
    kept: FastCheck.nat({ max: good.length }),
    end: FastCheck.constantFrom<"fin" | "frame" | "length" | 401 | 408 | 429 | 500 | 529>(
      "fin",
      "frame",
      "length",
      401,
      408,
      429,
      500,
      529
    ),
    size: FastCheck.integer({ min: 1, max: 4 })
  })

  it.effect.prop(
    "its text is a beginning of the good answer or the whole, requests are bounded, and calls come whole, once",
    [
      FastCheck.array(step, { maxLength: 12 }),
      FastCheck.constantFrom(RetryPolicy.standard, RetryPolicy.brisk, RetryPolicy.cautious)
    ],
    ([script, policy]) =>
      Effect.gen(function*() {
        let asked = 0
        const stream = Stream.suspend(() => {
          const one = script[asked++]
          if (one === undefined) return Stream.fromIterable(good)
          const parts = [
            ...good.slice(0, one.kept),
            ...(one.end === "frame" ? ["!overloaded_error"] : one.end === "length" ? [".length"] : [])
          ]
          const kept = Stream.rechunk(Stream.fromIterable(parts), one.size)
          return typeof one.end === "number" ? Stream.concat(kept, Stream.fail(fault(one.end))) : kept
        })
        const { error, parts } = yield* recovered(stream, { policy })
        const text = parts.filter((part) => part.startsWith(">")).map((part) => part.slice(1)).join("")
        const whole = words.join("")
        const calls = parts.filter((part) => part.startsWith("{")).join("")
        assert.isTrue(whole.startsWith(text))
        assert.include(["", "{call{more"], calls)
        const cut = parts.findIndex((part) => /^(?:stalled|capped)/.test(part))
        if (cut >= 0) {
          assert.strictEqual(cut, parts.length - 1)
          assert.include(parts[cut] ?? "", `(${text})`)
        }
        if (error === undefined && cut < 0) {
          assert.strictEqual(text, whole)
          assert.strictEqual(calls, "{call{more")
        } else assert.strictEqual(calls, "")
        const most = 1 + Object.values(policy.tiers).reduce((sum, { attempts }) => sum + attempts - 1, 0)
        assert.isAtMost(asked, most)
        if (text !== "") assert.isTrue(parts.lastIndexOf("?thinking") < parts.findIndex((part) => part.startsWith(">")))
      }),
    { fastCheck: { numRuns: 150 } }
  )
})
