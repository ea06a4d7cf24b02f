import { Agent } from "@effect/platform-node/Undici"
import * as HttpClient from "@effect/platform/HttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Readout from "@recourse/core/Readout"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryBudget from "@recourse/core/RetryBudget"
import * as NodeClient from "@recourse/platform/NodeClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import * as Provider from "@recourse/testing/ScriptedProvider"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { quick, thrownBy } from "./quick.ts"

type Scripted = Context.Tag.Service<Provider.ScriptedProvider>

const scripted = <A>(
  name: string,
  steps: ReadonlyArray<Provider.Step>,
  test: (provider: Scripted, url: string) => Promise<A>
): void => {
  it.scopedLive(name, () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(...steps)
      yield* Effect.promise(() => test(provider, `${provider.url}/v1/chat/completions`))
    }))
}

const count = async (provider: Scripted): Promise<number> => (await Effect.runPromise(provider.requests)).length

const ask = (body: object = {}, more: RequestInit = {}): RequestInit => ({
  method: "POST",
  body: JSON.stringify({ model: "a-model", messages: [], ...body }),
  ...more
})

const refusal = Provider.answer(429, {
  headers: { "retry-after-ms": "1", "x-request-id": "req_1" },
  body: { error: { message: "later" } }
})

describe("RecourseFetch, what it hands back", () => {
  scripted(
    "the answer that came in the end, a real Response from where it was asked for",
    [refusal, Provider.reset],
    async (provider, url) => {
      const response = await RecourseFetch.make({ policy: quick })(url, ask())
      assert.instanceOf(response, Response)
      assert.strictEqual(response.url, url)
      assert.strictEqual(response.headers.get("content-type"), "application/json")
      assert.isNull(response.headers.get("x-should-retry"))
      assert.property(await response.json(), "choices")
      assert.strictEqual(await count(provider), 3)
    }
  )

  scripted("the provider's own last answer, as it came", [refusal, refusal, refusal], async (provider, url) => {
    const response = await RecourseFetch.make({ policy: quick })(url, ask())
    assert.strictEqual(response.status, 429)
    assert.strictEqual(response.headers.get("x-request-id"), "req_1")
    assert.strictEqual(response.headers.get("x-should-retry"), "false")
    assert.deepStrictEqual(await response.json(), { error: { message: "later" } })
    assert.strictEqual(await count(provider), 3)
  })

  scripted("the transport's own error", [Provider.reset, Provider.reset, Provider.reset], async (provider, url) => {
    const error = await thrownBy(() => RecourseFetch.make({ policy: quick })(url, ask()))
    assert.instanceOf(error, TypeError)
    assert.strictEqual(error instanceof Error && error.message, "fetch failed")
    assert.strictEqual(await count(provider), 3)
  })

  scripted(
    "a good answer's beginning, and the error that broke it",
    [Provider.cut(), Provider.cut(), Provider.cut()],
    async (provider, url) => {
      const response = await RecourseFetch.make({ policy: quick })(url, ask())
      assert.strictEqual(response.status, 200)
      const error = await thrownBy(() => response.text())
      assert.strictEqual(error instanceof Error && error.message, "terminated")
      assert.strictEqual(await count(provider), 3)
    }
  )

  scripted("an event stream at its head", [Provider.stalled(Provider.good("one two three"), 0.5)], async (_, url) => {
    const response = await RecourseFetch.make({ policy: quick, liveness: { chunk: "100 millis" } })(
      url,
      ask({ stream: true })
    )
    const reader = response.body?.getReader()
    const first = await reader?.read()
    assert.include(new TextDecoder().decode(first?.value), "data: ")
    const error = await thrownBy(async () => {
      while ((await reader?.read())?.done === false);
    })
    assert.strictEqual(error instanceof Error && error.name, "TimeoutError")
  })

  scripted("an event stream whole, byte by byte what was sent", [], async (_, url) => {
    const bare = await (await fetch(url, ask({ stream: true }))).text()
    assert.strictEqual(await (await RecourseFetch.make()(url, ask({ stream: true }))).text(), bare)
  })

  scripted(
    "a body longer than the bound, unjudged and whole",
    [Provider.answer(200, { headers: { "content-type": "text/html" }, body: "x".repeat(300_000) })],
    async (provider, url) => {
      const response = await RecourseFetch.make({ policy: quick, body: { bytes: 1_000 } })(url, ask())
      assert.lengthOf(await response.text(), 300_000)
      assert.isNull(response.headers.get("x-should-retry"))
      assert.strictEqual(await count(provider), 1)
    }
  )

  scripted(
    "the whole of a refusal that was judged by its beginning",
    [Provider.answer(400, { body: "x".repeat(300_000) })],
    async (_, url) => {
      const response = await RecourseFetch.make({ policy: quick, body: { bytes: 1_000 } })(url, ask())
      assert.lengthOf(await response.text(), 300_000)
      assert.strictEqual(response.headers.get("x-should-retry"), "false")
    }
  )

  scripted("a refusal whose body does not come, before it comes", [
    Provider.stalled(Provider.answer(400, { body: "half" }))
  ], async (_, url) => {
    const controller = new AbortController()
    const response = await RecourseFetch.make({ policy: quick, body: { within: "50 millis" } })(
      url,
      ask({}, { signal: controller.signal })
    )
    assert.strictEqual(response.status, 400)
    const rest = thrownBy(() => response.text())
    controller.abort()
    assert.strictEqual((await rest) instanceof Error, true)
  })
})

describe("RecourseFetch, a body that comes late", () => {
  it("is judged by what has come, and handed on whole", async () => {
    const bytes = (text: string) => new TextEncoder().encode(text)
    let late = (): void => assert.fail("nobody reads")
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(bytes("{\"error\":{\"message\":\"one"))
        late = () => {
          controller.enqueue(bytes(" two"))
          controller.enqueue(bytes(" three\"}}"))
          controller.close()
        }
      }
    })
    const fetch = RecourseFetch.make({
      policy: quick,
      body: { within: "20 millis" },
      fetch: () => Promise.resolve(new Response(body, { status: 400 }))
    })
    const response = await fetch("https://example.com/v1/messages", ask())
    assert.strictEqual(response.headers.get("x-should-retry"), "false")
    late()
    assert.deepStrictEqual(await response.json(), { error: { message: "one two three" } })
  })

  scripted("can be given up on by its reader", [Provider.stalled(Provider.good(), 0.5)], async (_, url) => {
    const response = await RecourseFetch.make()(url, ask({ stream: true }))
    const reader = response.body?.getReader()
    await reader?.read()
    const next = reader?.read()
    await reader?.cancel()
    assert.strictEqual((await next)?.done, true)
  })
})

describe("RecourseFetch, what it sends", () => {
  scripted("what the caller sent, at every attempt", [refusal, refusal], async (provider, url) => {
    await RecourseFetch.make({ policy: quick })(url, ask({}, { headers: { "idempotency-key": "one", "x-own": "1" } }))
    const requests = await Effect.runPromise(provider.requests)
    assert.lengthOf(requests, 3)
    assert.deepStrictEqual(new Set(requests.map(({ headers }) => headers["idempotency-key"])), new Set(["one"]))
    assert.strictEqual(new Set(requests.map(({ body }) => body)).size, 1)
  })

  scripted("a Request as often as it takes", [refusal, Provider.cut()], async (provider, url) => {
    const response = await RecourseFetch.make({ policy: quick })(new Request(url, ask()))
    assert.strictEqual(response.status, 200)
    const requests = await Effect.runPromise(provider.requests)
    assert.deepStrictEqual(requests.map(({ body }) => body.length > 0), [true, true, true])
  })

  scripted("a body that is a stream once", [refusal], async (provider, url) => {
    const body = new Blob(["{\"messages\":[]}"]).stream()
    const once: RequestInit & { readonly duplex: "half" } = { method: "POST", body, duplex: "half" }
    const response = await RecourseFetch.make({ policy: quick })(url, once)
    assert.strictEqual(response.status, 429)
    assert.strictEqual(await count(provider), 1)
  })

  scripted("what is no inference once, unless it is told otherwise", [refusal, refusal, refusal], async (provider) => {
    const models = `${provider.url}/v1/models`
    const response = await RecourseFetch.make({ policy: quick })(models)
    assert.strictEqual(response.status, 429)
    assert.isNull(response.headers.get("x-should-retry"))
    assert.strictEqual(await count(provider), 1)
    const all = RecourseFetch.make({ policy: quick, recovers: ({ method }) => method === "GET" })
    assert.strictEqual((await all(models)).status, 200)
    assert.strictEqual(await count(provider), 4)
  })

  it("knows the paths of the providers", async () => {
    const asked: Array<string> = []
    const own: RecourseFetch.Fetch = (input) => {
      asked.push(input instanceof Request ? input.url : input.toString())
      return Promise.resolve(new Response("busy", { status: 529 }))
    }
    const fetch = RecourseFetch.make({ policy: quick, fetch: own, memory: 0 })
    for (
      const [path, requests] of [
        ["https://api.openai.com/v1/chat/completions", 3],
        ["https://api.openai.com/v1/responses", 3],
        ["https://api.openai.com/v1/embeddings", 3],
        ["https://api.anthropic.com/v1/messages", 3],
        ["https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", 3],
        ["https://generativelanguage.googleapis.com/v1beta/models/g:generateContent", 3],
        ["https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse", 3],
        ["https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream", 3],
        ["https://api.cohere.com/v2/chat", 3],
        ["http://localhost:11434/api/chat", 3],
        ["https://api.openai.com/v1/files", 1],
        ["https://api.anthropic.com/v1/messages/batches", 1],
        ["https://example.com/responsesx", 1]
      ] as const
    ) {
      asked.length = 0
      await fetch(path, { method: "POST", body: "{}" })
      assert.lengthOf(asked, requests, path)
    }
  })

  it("a request that cannot be sent is the own fetch's to refuse", async () => {
    const error = await thrownBy(() => RecourseFetch.make()("no url", { method: "POST" }))
    assert.instanceOf(error, TypeError)
  })
})

describe("RecourseFetch, what was given up on", () => {
  const three = [refusal, refusal, refusal]

  scripted("is sent once if it comes again within a minute", [...three, ...three], async (provider, url) => {
    const fetch = RecourseFetch.make({ policy: quick })
    await fetch(url, ask())
    const again = await fetch(url, ask({}, { headers: { "x-stainless-retry-count": "1" } }))
    assert.strictEqual(again.status, 429)
    assert.strictEqual(again.headers.get("x-should-retry"), "false")
    assert.strictEqual(await count(provider), 4)
    assert.strictEqual((await fetch(url, ask({ messages: ["another"] }))).status, 200)
    assert.strictEqual(await count(provider), 7)
  })

  scripted("is another request with another key", [...three, refusal], async (provider, url) => {
    const fetch = RecourseFetch.make({ policy: quick })
    await fetch(url, ask({}, { headers: { authorization: "Bearer one" } }))
    await fetch(url, ask({}, { headers: { authorization: "Bearer two" } }))
    assert.strictEqual(await count(provider), 5)
  })

  scripted(
    "is forgotten with a success, and another idempotency key is another request",
    [...three, ...three],
    async (provider, url) => {
      const fetch = RecourseFetch.make({ policy: quick })
      const keyed = (key: string) => ask({}, { headers: { "idempotency-key": key } })
      await fetch(url, keyed("one"))
      assert.strictEqual((await fetch(url, keyed("two"))).status, 429)
      assert.strictEqual(await count(provider), 6)
      assert.strictEqual((await fetch(url, keyed("one"))).status, 200)
      await Effect.runPromise(provider.play(refusal, refusal))
      assert.strictEqual((await fetch(url, keyed("one"))).status, 200)
      assert.strictEqual(await count(provider), 3)
    }
  )

  it("a Request whose body does not end is given up on all the same", async () => {
    const fetch = RecourseFetch.make({
      policy: quick,
      fetch: () => Promise.resolve(new Response("{}", { status: 413 }))
    })
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(1)) })
    const init: RequestInit & { readonly duplex: "half" } = { method: "POST", body, duplex: "half" }
    assert.strictEqual((await fetch(new Request("https://example.com/v1/messages", init))).status, 413)
  })

  it.effect("is forgotten after a minute, however often it comes again", () =>
    Effect.gen(function*() {
      let requests = 0
      const fetch = yield* RecourseFetch.effect({
        policy: quick,
        fetch: () => {
          requests++
          return Promise.resolve(new Response("{}", { status: 529 }))
        }
      })
      const once = Effect.gen(function*() {
        const fiber = yield* Effect.fork(Effect.promise(() => fetch("https://example.com/v1/messages", ask())))
        // the waits of three attempts, on a clock that stands; real promises settle in between
        for (let i = 0; i < 20 && (yield* Fiber.poll(fiber))._tag === "None"; i++) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          yield* TestClock.adjust(2)
        }
        return yield* Fiber.join(fiber)
      })
      yield* once
      assert.strictEqual(requests, 3)
      yield* once
      assert.strictEqual(requests, 4)
      yield* TestClock.adjust("59 seconds")
      yield* once
      assert.strictEqual(requests, 5)
      yield* TestClock.adjust("2 seconds")
      yield* once
      assert.strictEqual(requests, 8)
    }))
})

describe("RecourseFetch, the caller's signal", () => {
  const long = Provider.answer(429, { headers: { "retry-after": "30" }, body: {} })

  it.effect("ends the call, whatever time passes", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      let requests = 0
      const fetch = yield* RecourseFetch.effect({
        fetch: () => {
          requests++
          return Promise.resolve(new Response("{}", { status: 429, headers: { "retry-after": "30" } }))
        }
      }).pipe(Recovery.withListener(({ _tag }) =>
        Effect.sync(() => _tag === "Retrying" && setImmediate(() => controller.abort("enough")))
      ))
      const error = yield* Effect.promise(() =>
        thrownBy(() =>
          fetch("https://example.com/v1/messages", ask({}, { signal: controller.signal }))
        )
      )
      assert.strictEqual(error, "enough")
      yield* TestClock.adjust("1 hour")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(requests, 1)
    }))

  scripted("during a wait ends it at once, and nothing more is sent", [long], async (provider, url) => {
    const controller = new AbortController()
    const fetch = RecourseFetch.make({
      fetch: async (input, init) => {
        const response = await globalThis.fetch(input, init)
        // after the verdict on this answer, which is read in this very turn
        setImmediate(() => setImmediate(() => controller.abort(new Error("enough"))))
        return response
      }
    })
    const error = await thrownBy(() => fetch(url, ask({}, { signal: controller.signal })))
    assert.strictEqual(error instanceof Error && error.message, "enough")
    assert.strictEqual(await count(provider), 1)
  })

  scripted("during an attempt hangs up", [Provider.silent], async (provider, url) => {
    const fetch = RecourseFetch.make()
    const error = await thrownBy(() => fetch(url, ask({}, { signal: AbortSignal.timeout(300) })))
    assert.strictEqual(error instanceof DOMException && error.name, "TimeoutError")
    assert.strictEqual(await count(provider), 1)
  })

  scripted("before it begins sends nothing", [], async (provider, url) => {
    const error = await thrownBy(() => RecourseFetch.make()(url, ask({}, { signal: AbortSignal.abort("no") })))
    assert.strictEqual(error, "no")
    assert.strictEqual(await count(provider), 0)
  })

  scripted("after the head ends the body", [Provider.stalled(Provider.good(), 0.5)], async (_, url) => {
    const controller = new AbortController()
    const response = await RecourseFetch.make()(url, ask({ stream: true }, { signal: controller.signal }))
    const text = thrownBy(() => response.text())
    controller.abort()
    assert.strictEqual((await text) instanceof DOMException, true)
  })
})

describe("RecourseFetch, what it is told and what it tells", () => {
  it("an option that cannot be is told at once, with its mend", () => {
    for (
      const [options, message] of [
        ["{\"policy\":\"brisk\"}", /^policy: a policy, such as RetryPolicy.brisk/],
        ["{\"memory\":\"soon\"}", /^memory: a duration/],
        ["{\"body\":{\"within\":\"bad\"}}", /^body\.within: a duration/],
        ["{\"codes\":{\"z\":\"Nope\"}}", /^codes\.z: a kind of fault: Overloaded, /]
      ] as const
    ) assert.throws(() => RecourseFetch.make(JSON.parse(options)), message)
  })

  it("rejects what throws, and never throws itself", async () => {
    const fetch = RecourseFetch.make({
      recovers: () => {
        throw new Error("a bug of the caller's")
      }
    })
    const call = fetch("https://example.com/v1/messages", ask())
    assert.match(String(await thrownBy(() => call)), /a bug of the caller's/)
    const foreign = RecourseFetch.make({
      policy: quick,
      fetch: () =>
        Promise.resolve(Object.assign(new Response(), { json: 1 }, JSON.parse("{}"))).then((response) =>
          Object.defineProperty(response, "body", { value: {} })
        )
    })
    assert.match(String(await thrownBy(() => foreign("https://example.com/v1/messages", ask()))), /web Responses/)
  })

  scripted("every event, to a listener that is a function", [refusal, Provider.reset], async (_, url) => {
    const told: Array<string> = []
    await RecourseFetch.make({ policy: quick, listener: (event) => told.push(event._tag) })(url, ask())
    assert.deepStrictEqual(told, [
      "Started",
      "Failed",
      "Retrying",
      "Started",
      "Failed",
      "Retrying",
      "Started",
      "Recovered"
    ])
  })

  it("a code that it is taught", async () => {
    let requests = 0
    const fetch = RecourseFetch.make({
      policy: quick,
      codes: { MELTED: "Overloaded" },
      fetch: () => {
        requests++
        return Promise.resolve(new Response("{\"error\":{\"code\":\"MELTED\"}}", { status: 400 }))
      }
    })
    await fetch("https://example.com/v1/messages", ask())
    assert.strictEqual(requests, 3)
  })

  it("a status of any kind", async () => {
    for (const status of [999, 199]) {
      const odd = Object.defineProperty(new Response("odd"), "status", { value: status })
      const response = await RecourseFetch.make({ fetch: () => Promise.resolve(odd) })(
        "https://example.com/v1/messages",
        ask()
      )
      assert.deepStrictEqual([response.status, response.ok, await response.text()], [status, false, "odd"])
    }
  })

  scripted("no warning of listeners, however many calls share a signal", [], async (_, url) => {
    const warnings: Array<string> = []
    const warned = ({ name }: Error): void => {
      warnings.push(name)
    }
    process.on("warning", warned)
    const { signal } = new AbortController()
    const fetch = RecourseFetch.make()
    await Promise.all(Array.from({ length: 20 }, () => fetch(url, ask({}, { signal }))))
    await new Promise((resolve) => setImmediate(resolve))
    process.off("warning", warned)
    assert.deepStrictEqual(warnings, [])
  })
})

describe("RecourseFetch, its clocks and services", () => {
  scripted("silence to the headers is the bound's, and thrown as such", [
    Provider.silent,
    Provider.silent,
    Provider.silent
  ], async (provider, url) => {
    const fetch = RecourseFetch.make({ policy: quick, liveness: { headers: "50 millis" } })
    const error = await thrownBy(() => fetch(url, ask()))
    assert.strictEqual(error instanceof Error && "code" in error && error.code, "RECOURSE_HEADERS_TIMEOUT")
    assert.strictEqual(await count(provider), 3)
  })

  scripted(
    "a fetch that is brought keeps its own clock, and the readout names it",
    [Provider.silent, Provider.silent, Provider.silent],
    async (_, url) => {
      const clocks = new Set<unknown>()
      const own: RequestInit & { readonly dispatcher: Agent } = { dispatcher: new Agent({ headersTimeout: 50 }) }
      const fetch = await Effect.runPromise(
        RecourseFetch.effect({ policy: quick, fetch: (input, init) => globalThis.fetch(input, { ...init, ...own }) })
          .pipe(
            Recovery.withListener((event) =>
              Effect.sync(() => {
                if (event._tag !== "Failed") return
                clocks.add(Readout.fromFault(event.fault).fields.find(({ label }) => label === "clock")?.value)
              })
            )
          )
      )
      await thrownBy(() => fetch(url, ask()))
      assert.deepStrictEqual([...clocks], ["undici's headersTimeout"])
    }
  )

  it.scopedLive("the node layer's own clocks are thirty seconds above", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      const seen: Array<unknown> = []
      const created = (message: unknown): void => {
        const request = typeof message === "object" && message !== null && "request" in message ? message.request : {}
        if (
          typeof request === "object" && request !== null && "headersTimeout" in request && "bodyTimeout" in request
        ) {
          seen.push([request.headersTimeout, request.bodyTimeout])
        }
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => subscribe("undici:request:create", created)),
        () => Effect.sync(() => unsubscribe("undici:request:create", created))
      )
      const bounds = { headers: "1 minute", chunk: Duration.infinity } as const
      yield* Effect.promise(() => NodeClient.fetch(bounds)(provider.url).then((response) => response.text()))
      yield* HttpClient.get(provider.url).pipe(
        Effect.flatMap((response) => response.text),
        Effect.provide(NodeClient.layer())
      )
      assert.deepStrictEqual(seen, [[90_000, 0], [210_000, 630_000]])
    }))

  it.scopedLive("effect takes the budget from where it is made", () =>
    Effect.gen(function*() {
      const provider = yield* Provider.make()
      yield* provider.play(refusal, refusal)
      const fetch = yield* RecourseFetch.effect({ policy: quick }).pipe(
        Effect.provide(RetryBudget.layer({ capacity: 1, cost: 1 }))
      )
      const response = yield* Effect.promise(() => fetch(`${provider.url}/v1/messages`, ask()))
      assert.strictEqual(response.status, 429)
      assert.lengthOf(yield* provider.requests, 2)
    }))
})
