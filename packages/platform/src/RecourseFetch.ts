/**
 * A `fetch` that recovers, for every SDK that takes one: `new OpenAI({ fetch })`, Anthropic's, Google's, the Vercel AI SDK's
 * providers.
 *
 * It retries beneath the SDK and hands on real `Response`s. When there is nothing more to do it returns the provider's own last
 * answer, or throws the transport's own error, so the SDK raises the error types that its users know. An answer of that kind
 * carries `x-should-retry: false`, which the SDKs of OpenAI and Anthropic obey; for those that do not, and for errors that are
 * thrown, it remembers for a minute what it gave up on, and sends that once, without tiers, if it comes again.
 *
 * An event stream in a dialect of `Protocol` is held back until its first content. It does not recover what breaks after that, but
 * breaks a body that ends before its terminal event. It sends a request once whose body is given as a stream; a `Request` is cloned
 * for each attempt.
 *
 * @since 0.1.0
 */
import type * as Recovery from "@recourse/core/Recovery"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"
import * as Exchange from "./internal/exchange.ts"
import type * as Liveness from "./Liveness.ts"

/**
 * The function that every SDK takes.
 *
 * @category models
 * @since 0.1.0
 */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * How a fetch recovers.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Recovery.Options, Exchange.Options {
  /** What makes the requests; the global `fetch` by default. It gives web `Response`s; its own clocks rule where they are shorter. */
  readonly fetch?: Fetch
  /**
   * How long a request that was given up on is remembered, from then on; 60 seconds by default, zero to forget at once. Needed
   * where an SDK asks again by itself.
   */
  readonly memory?: Duration.DurationInput
}

export {
  /**
   * An option that cannot be: thrown when a fetch or a client is made, with the field and its mend.
   *
   * @category errors
   * @since 0.1.0
   */
  OptionInvalid
} from "./internal/exchange.ts"

/**
 * A `fetch` with a runtime of its own.
 *
 * @example
 * ```ts
 * import * as RecourseFetch from "@recourse/platform/RecourseFetch"
 * import { RetryPolicy } from "@recourse/core"
 *
 * const fetch = RecourseFetch.make({ policy: RetryPolicy.brisk })
 * // new OpenAI({ fetch }), new Anthropic({ fetch }), createOpenAI({ fetch })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Fetch => build(options, Runtime.defaultRuntime)

/**
 * A `fetch` that takes its listener, its budget, its hold and its clock from where it is made.
 *
 * @example
 * ```ts
 * import { Recovery, RetryBudget } from "@recourse/core"
 * import * as RecourseFetch from "@recourse/platform/RecourseFetch"
 * import { Console, Effect } from "effect"
 *
 * const program = RecourseFetch.effect().pipe(
 *   Effect.flatMap((fetch) => Effect.promise(() => fetch("https://api.example.com/v1/messages", { method: "POST" }))),
 *   Recovery.withListener((event) => Console.log(event._tag)),
 *   Effect.provide(RetryBudget.layer())
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const effect = (options: Options = {}): Effect.Effect<Fetch> =>
  Effect.map(Effect.runtime(), (runtime) => build(options, runtime))

const build = (options: Options, runtime: Runtime.Runtime<never>): Fetch => {
  Exchange.check(options)
  const own = options.fetch ?? ((input, init) => fetch(input, init))
  const memory = new Memory(Duration.toMillis(options.memory ?? "60 seconds"))
  return async (input, init) => {
    const url = urlOf(input)
    const request = input instanceof Request ? input : undefined
    const method = (init?.method ?? request?.method ?? "GET").toUpperCase()
    if (url === undefined || !Exchange.isRecovered(method, url, options) || isOnce(init?.body)) return own(input, init)
    const signal = (init?.signal === undefined ? request?.signal : init.signal) ?? undefined
    // listened to through one of our own: many calls may share the caller's
    return run(
      runtime,
      signal === undefined ? undefined : AbortSignal.any([signal]),
      (signal) => recovered({ input, init, method, url, signal, own, options, memory })
    )
  }
}

const urlOf = (input: string | URL | Request): URL | undefined => {
  const text = input instanceof Request ? input.url : String(input)
  return URL.canParse(text) ? new URL(text) : undefined
}

/** A body that can be sent but once. */
const isOnce = (body: unknown): boolean =>
  typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body)

interface Call {
  readonly input: string | URL | Request
  readonly init: RequestInit | undefined
  readonly method: string
  readonly url: URL
  /** The caller's own. */
  readonly signal: AbortSignal | undefined
  readonly own: Fetch
  readonly options: Options
  readonly memory: Memory
}

/** The transport's own error, to be thrown. */
class Threw {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

const send = ({ init, input, own, signal }: Call) => (watch: Liveness.Watch): Effect.Effect<Response, Threw> =>
  Effect.async((resume) => {
    const ours = new AbortController()
    let over = false
    const failed = (error: unknown): void => {
      watch.end()
      resume(Effect.fail(new Threw(error)))
    }
    watch.begin("headers", (silence) => {
      over = true
      ours.abort(silence)
      failed(silence)
    })
    const request = async (): Promise<void> => {
      try {
        const response = await own(input instanceof Request ? input.clone() : input, {
          ...init,
          signal: signal === undefined ? ours.signal : AbortSignal.any([signal, ours.signal])
        })
        // a fetch that does not mind its signal may answer after all
        if (over) return void response.body?.cancel().catch(() => undefined)
        if (response.body !== null && typeof response.body.getReader !== "function") {
          return failed(new TypeError("fetch: it has to give web Responses, whose body is a ReadableStream"))
        }
        watch.end()
        resume(Effect.succeed(response))
      } catch (error) {
        failed(error)
      }
    }
    void request()
    return Effect.sync(() => {
      over = true
      watch.close()
      ours.abort()
    })
  })

const recovered = (call: Call): Effect.Effect<Response, Threw> =>
  Effect.flatMap(call.memory.recalls(call), (again) => {
    const last = new Exchange.Last<Threw>({ "x-should-retry": "false" })
    const attempt = Exchange.attempt({
      send: send(call),
      sort: ({ error }): Either.Either<unknown> => Either.right(error),
      url: call.url,
      judges: true,
      options: call.options,
      last
    })
    const asked = (): Exchange.Asked => {
      const { init, method, url } = call
      return { method, url, headers: headersOf(call), body: typeof init?.body === "string" ? init.body : undefined }
    }
    return Effect.map(
      Effect.matchEffect(Exchange.recovered(attempt, call.options, { asked, last, once: again }), {
        onFailure: (fault) =>
          // what comes again unchanged does not begin another minute
          Effect.zipRight(again ? Effect.void : call.memory.keep(call), Effect.suspend(() => last.handBack(fault))),
        onSuccess: (answer) => again ? Effect.as(call.memory.forget(call), answer) : Effect.succeed(answer)
      }),
      ({ response }) => response
    )
  })

/** Runs a call as a promise that its caller's signal rejects at once, whatever the call does about it. */
const run = (
  runtime: Runtime.Runtime<never>,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal | undefined) => Effect.Effect<Response, Threw>
): Promise<Response> =>
  new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal?.reason)
    if (signal?.aborted === true) return aborted()
    // an exit, since a fiber that fails with something is logged with all that it holds
    const fiber = Runtime.runFork(runtime)(Effect.exit(call(signal)))
    const abort = (): void => {
      aborted()
      fiber.unsafeInterruptAsFork(FiberId.none)
    }
    signal?.addEventListener("abort", abort, { once: true })
    fiber.addObserver((ended) => {
      signal?.removeEventListener("abort", abort)
      const exit = Exit.flatten(ended)
      if (Exit.isSuccess(exit)) resolve(exit.value)
      else {
        const failure = Cause.squash(exit.cause)
        reject(failure instanceof Threw ? failure.error : failure)
      }
    })
    return undefined
  })

// --- what was given up on ----------------------------------------------------------------------------------------------

/** Headers that make one request another: whose it is, and which. */
const telling = [...Exchange.credentials, "idempotency-key"]

const headersOf = ({ init, input }: Call): Headers =>
  new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))

/** Whether the SDK says that it asks for the first time; one that obeys `x-should-retry` says so of every call of its caller's. */
const isFirst = (call: Call): boolean => headersOf(call).get("x-stainless-retry-count") === "0"

/** Requests that were given up on, as digests: neither a prompt nor a key is kept. */
class Memory {
  readonly #millis: number
  readonly #until = new Map<string, number>()

  constructor(millis: number) {
    this.#millis = millis
  }

  /** Whether this request was given up on lately. */
  recalls(call: Call): Effect.Effect<boolean> {
    return this.#until.size === 0 || isFirst(call)
      ? Effect.succeed(false)
      : Effect.zipWith(digest(call), Clock.currentTimeMillis, (key, now) => {
        for (const [known, until] of this.#until) if (until <= now) this.#until.delete(known)
        return key !== undefined && this.#until.has(key)
      })
  }

  forget(call: Call): Effect.Effect<void> {
    return Effect.map(digest(call), (key) => {
      if (key !== undefined) this.#until.delete(key)
    })
  }

  keep(call: Call): Effect.Effect<void> {
    return this.#millis <= 0
      ? Effect.void
      : Effect.zipWith(digest(call), Clock.currentTimeMillis, (key, now) => {
        if (key === undefined) return
        this.#until.set(key, now + this.#millis)
        // the oldest goes first
        for (const known of this.#until.keys()) if (this.#until.size > MEMORY) this.#until.delete(known)
      })
  }
}

const MEMORY = 1_024

/** A digest of what makes a request the same; nothing for a body that cannot be read twice, or does not end. */
const digest = (call: Call): Effect.Effect<string | undefined> =>
  Effect.timeoutTo({ duration: "1 second", onSuccess: (key: string | undefined) => key, onTimeout: () => undefined })(
    Effect.promise(async () => {
      const { init, input, method, url } = call
      const request = input instanceof Request ? input : undefined
      const body = init?.body ?? (request?.body === null ? "" : await request?.clone().arrayBuffer()) ?? ""
      const bytes = typeof body === "string" ? new TextEncoder().encode(body) : bytesOf(body)
      if (bytes === undefined) return undefined
      const headers = headersOf(call)
      const head = new TextEncoder().encode(
        JSON.stringify([method, url.href, telling.map((name) => headers.get(name))])
      )
      const whole = new Uint8Array(head.length + bytes.length)
      whole.set(head)
      whole.set(bytes, head.length)
      return String(new Uint32Array(await crypto.subtle.digest("SHA-256", whole)))
    })
  )

const bytesOf = (body: unknown): Uint8Array | undefined =>
  body instanceof ArrayBuffer
    ? new Uint8Array(body)
    : ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    : body instanceof URLSearchParams
    ? new TextEncoder().encode(String(body))
    : undefined
