/**
 * Recovery beneath `@effect/platform`'s `HttpClient`.
 *
 * `recover` is for a program of your own: what fails, fails with a typed fault. `transparent` is for the hook of a library that
 * knows `HttpClient` alone: it retries below, and hands back the provider's own last answer. Both leave `R` as it was, send a
 * request once whose body is a stream, and recover, by default, only the requests that ask a model for something.
 *
 * An event stream in a dialect of `Protocol` is handed on at its first content: what breaks before that is recovered. `stream`
 * recovers the rest too, and gives its parts.
 *
 * @since 0.1.0
 */
import * as Cookies from "@effect/platform/Cookies"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as UrlParams from "@effect/platform/UrlParams"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import type * as Recovery from "@recourse/core/Recovery"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as Cause from "effect/Cause"
import type * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import { dual } from "effect/Function"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Decoder, failing, taken } from "./internal/decoder.ts"
import * as Exchange from "./internal/exchange.ts"
import * as Liveness from "./Liveness.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as Protocol from "./Protocol.ts"

/**
 * How a client recovers.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Recovery.Options, Exchange.Options {}

const isDataFirst = (args: IArguments): boolean => {
  const first: unknown = args[0]
  return typeof first === "object" && first !== null && HttpClient.TypeId in first
}

/**
 * A client that fails with a fault where the provider refused, broke off or answered with what is no answer, after what the
 * policy says was tried. A request that is not among those to recover is sent once, and fails with a fault where the transport
 * broke or the status is a failure's; nothing else of it is looked into. Errors that are no fault of the call keep their type: a
 * URL or a body that could not be made, and whatever the client adds of its own.
 *
 * @example
 * ```ts
 * import { FetchHttpClient, HttpClient, HttpClientRequest } from "@effect/platform"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const client = RecourseClient.recover(yield* HttpClient.HttpClient)
 *   const request = HttpClientRequest.post("https://api.example.com/v1/messages").pipe(
 *     HttpClientRequest.bodyUnsafeJson({ model: "a-model", messages: [] })
 *   )
 *   const response = yield* client.execute(request)
 *   return yield* response.json
 * }).pipe(
 *   Effect.catchTag("ContextOverflowed", () => Effect.succeed("compact, and ask again")),
 *   Effect.provide(FetchHttpClient.layer)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const recover: {
  (
    options?: Options
  ): <E, R>(client: HttpClient.HttpClient.With<E, R>) => HttpClient.HttpClient.With<E | Fault.Fault, R>
  <E, R>(client: HttpClient.HttpClient.With<E, R>, options?: Options): HttpClient.HttpClient.With<E | Fault.Fault, R>
} = dual(
  isDataFirst,
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options: Options = {}
  ): HttpClient.HttpClient.With<E | Fault.Fault, R> => {
    Exchange.check(options)
    return HttpClient.transform(client, (effect, request) => {
      const url = urlOf(request)
      const judges = Exchange.isRecovered(request.method, url, options)
      const attempt = Exchange.attempt({ send: send(effect), sort: sort<E>, url, judges, options, last: undefined })
      return Effect.map(
        judges
          ? Exchange.recovered(attempt, options, { asked: () => askedOf(request, url), once: !isReplayable(request) })
          : attempt,
        (handed) => new Answered(request, handed)
      )
    })
  }
)

/**
 * A client that retries below and otherwise answers as it did: with the provider's own last response, whatever its status, or with
 * the transport's own error.
 *
 * @example
 * ```ts
 * import { FetchHttpClient, HttpClient } from "@effect/platform"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 * import { Effect, Layer } from "effect"
 *
 * // OpenAiClient.layer({ apiKey, transformClient: RecourseClient.transparent() }), or for every library at once:
 * const layer = Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, RecourseClient.transparent())).pipe(
 *   Layer.provide(FetchHttpClient.layer)
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const transparent: {
  (
    options?: Options
  ): <E, R>(
    client: HttpClient.HttpClient.With<E, R>
  ) => HttpClient.HttpClient.With<E | HttpClientError.RequestError, R>
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options?: Options
  ): HttpClient.HttpClient.With<E | HttpClientError.RequestError, R>
} = dual(
  isDataFirst,
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options: Options = {}
  ): HttpClient.HttpClient.With<E | HttpClientError.RequestError, R> => {
    Exchange.check(options)
    return HttpClient.transform(client, (effect, request) => {
      const url = urlOf(request)
      if (!Exchange.isRecovered(request.method, url, options) || !isReplayable(request)) return effect
      return Effect.suspend(() => {
        const last = new Exchange.Last<E | Liveness.Silence>()
        const attempt = Exchange.attempt({ send: send(effect), sort: sort<E>, url, judges: true, options, last })
        return handedBack(
          Exchange.recovered(attempt, options, { asked: () => askedOf(request, url), last }),
          last,
          request
        )
      })
    })
  }
)

/**
 * What the provider said to the requests that are made inside, of which the last one counts; nobody asks by default.
 *
 * @category references
 * @since 0.1.0
 */
export class Witness extends Context.Reference<Witness>()("@recourse/platform/RecourseClient/Witness", {
  defaultValue: (): { fault: Fault.Fault | undefined } | undefined => undefined
}) {}

/**
 * How a client bears witness.
 *
 * @category models
 * @since 0.1.0
 */
export interface WitnessOptions extends Pick<Options, "liveness" | "body" | "codes" | "recovers"> {}

/**
 * A client for the hook of a library that reads answers itself and forgets what they said, beneath a recovery that wants to know:
 * `RecoveredLanguageModel` of `@recourse/ai`. What it makes of an answer, of an error frame in a stream, of a terminal event that
 * reports a failure, of silence or of a missing end, is put down in the `Witness` of whoever made the request. It makes each request
 * once, is watched for silence, and otherwise answers as it did; an event stream is handed on at its first content.
 *
 * @example
 * ```ts
 * import { HttpClient } from "@effect/platform"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 *
 * // OpenAiClient.layer({ apiKey, transformClient: RecourseClient.witnessed() })
 * const transformClient: (client: HttpClient.HttpClient) => HttpClient.HttpClient = RecourseClient.witnessed()
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const witnessed: {
  (
    options?: WitnessOptions
  ): <E, R>(
    client: HttpClient.HttpClient.With<E, R>
  ) => HttpClient.HttpClient.With<E | HttpClientError.RequestError, R>
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options?: WitnessOptions
  ): HttpClient.HttpClient.With<E | HttpClientError.RequestError, R>
} = dual(
  isDataFirst,
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options: WitnessOptions = {}
  ): HttpClient.HttpClient.With<E | HttpClientError.RequestError, R> => {
    Exchange.check(options)
    return HttpClient.transform(client, (effect, request) => {
      const url = urlOf(request)
      if (!Exchange.isRecovered(request.method, url, options)) return effect
      return Effect.flatMap(Effect.zip(Witness, Effect.clock), ([witness, clock]) => {
        if (witness !== undefined) witness.fault = undefined
        const tell = (fault: Fault.Fault): void => {
          if (witness !== undefined) witness.fault = fault
        }
        const last = new Exchange.Last<E | Liveness.Silence>()
        const attempt = Exchange.attempt({
          send: send(effect),
          sort: sort<E>,
          url,
          judges: true,
          options,
          last,
          onFault: (fault) => tell(fault(clock.unsafeCurrentTimeMillis()))
        })
        const heard = Effect.tapError(attempt, (error) =>
          Effect.sync(() => {
            if (Fault.isFault(error)) tell(error)
          }))
        return handedBack(heard, last, request)
      })
    })
  }
)

/**
 * How a stream is recovered.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamOptions extends Omit<Options, "recovers">, Protocol.Options {
  /** The dialect of the answer; by default the one that the path of the request belongs to, or OpenAI's chat completions. */
  readonly protocol?: Protocol.Protocol
}

/**
 * The answer to a request is no event stream. Diagnosed as `Unrecognized`: the request has to ask for one.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotStreamed extends Error {
  override readonly name = "NotStreamed"

  constructor(contentType: string | null) {
    super(`the answer is no event stream but ${contentType ?? "nothing of a type"}: the request has to ask for one`)
  }
}

/**
 * The parts of a streamed answer, recovered as `StreamRecovery` has it: what breaks before any text is out is asked for again, what
 * breaks later ends as `Stalled`, tool calls come when the answer is whole. The request says itself that it wants a stream.
 *
 * The request is sent when the stream is run, and its connection closed when that ends, however it does.
 *
 * @example
 * ```ts
 * import { FetchHttpClient, HttpClient, HttpClientRequest } from "@effect/platform"
 * import * as Protocol from "@recourse/platform/Protocol"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 * import { Console, Effect, Stream } from "effect"
 *
 * const request = HttpClientRequest.post("https://api.example.com/v1/messages").pipe(
 *   HttpClientRequest.bodyUnsafeJson({ model: "a-model", stream: true, messages: [] })
 * )
 * const program = Effect.flatMap(HttpClient.HttpClient, (client) =>
 *   RecourseClient.stream(client, request).pipe(
 *     Stream.filterMap(Protocol.text),
 *     Stream.runForEach(Console.log)
 *   )).pipe(Effect.provide(FetchHttpClient.layer))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const stream: {
  (request: HttpClientRequest.HttpClientRequest, options?: StreamOptions): <E, R>(
    client: HttpClient.HttpClient.With<E, R>
  ) => Stream.Stream<Protocol.Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E | Fault.Fault, R>
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    request: HttpClientRequest.HttpClientRequest,
    options?: StreamOptions
  ): Stream.Stream<Protocol.Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E | Fault.Fault, R>
} = dual(
  isDataFirst,
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    request: HttpClientRequest.HttpClientRequest,
    options: StreamOptions = {}
  ): Stream.Stream<Protocol.Part | StreamRecovery.Boundary | StreamRecovery.CutShort, E | Fault.Fault, R> => {
    Exchange.check(options)
    const url = urlOf(request)
    const { protocol = Exchange.protocolOf(url) ?? OpenAiChat.protocol } = options
    const read = (error: unknown) =>
      Effect.map(Clock.currentTimeMillis, (received) => Diagnosis.fromUnknown(error, { received }))
    const attempt = Exchange.attempt({
      send: send(client.execute(request)),
      sort: sort<E>,
      url,
      judges: true,
      atHead: true,
      options,
      last: undefined
    })
    type Pull = Effect.Effect<Chunk.Chunk<Protocol.Part>, Option.Option<E | Fault.Fault>, R>
    const failed = (error: unknown) => Effect.flatMap(read(error), (fault) => Effect.fail(Option.some(fault)))
    const pulled = (reading: Exchange.Handed["reading"]): Pull => {
      const decoder = new Decoder(protocol, options)
      const next = reading(
        (bytes) => taken(decoder, bytes === undefined ? undefined : [bytes]),
        (error) => (decoder.isOver ? taken(decoder, undefined) : undefined) ?? failed(error)
      )
      return Effect.suspend(() => decoder.fault === undefined ? next : failing(decoder.fault))
    }
    const parts = Effect.map(Effect.scope, (scope): Pull => {
      let next: Pull | undefined
      const first = Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          Effect.mapError(restore(attempt), Option.some),
          ({ hangUp, headers, reading }): Pull => {
            const type = headers.get("content-type")
            next = Exchange.isEvents(headers)
              ? pulled(reading)
              : failed(new NotStreamed(type))
            return Effect.zipRight(Scope.addFinalizer(scope, Effect.sync(hangUp)), restore(next))
          }
        )
      )
      return Effect.suspend(() => next ?? first)
    })
    const { describe } = Protocol
    return StreamRecovery.fromPull(Exchange.beneath(
      options,
      { asked: () => askedOf(request, url), once: !isReplayable(request) },
      (options) => StreamRecovery.pulling(parts, { describe, ...options }),
      (options) => StreamRecovery.pulling(parts, { describe, ...options })
    ))
  }
)

/** An error of the transport, or of the reading of an answer, is to be read; one that was made before anything was sent is not. */
const sort = <E>(error: E | Liveness.Silence): Either.Either<unknown, E> => {
  if (error instanceof Liveness.Silence) return Either.right(error)
  return HttpClientError.isHttpClientError(error) && (error._tag === "ResponseError" || error.reason === "Transport")
    ? Either.right(error)
    : Either.left(error)
}

const nowhere = new URL("about:blank")

const urlOf = ({ hash, url, urlParams }: HttpClientRequest.HttpClientRequest): URL =>
  Either.getOrElse(UrlParams.makeUrl(url, urlParams, hash), () => nowhere)

/** What an attempt handed on; of one that failed, the provider's own last answer, or the transport's own error. */
const handedBack = <E, R>(
  attempt: Effect.Effect<Exchange.Handed, E | Fault.Fault, R>,
  last: Exchange.Last<E | Liveness.Silence>,
  request: HttpClientRequest.HttpClientRequest
): Effect.Effect<HttpClientResponse.HttpClientResponse, E | HttpClientError.RequestError, R> =>
  Effect.matchEffect(attempt, {
    onFailure: (error): Effect.Effect<HttpClientResponse.HttpClientResponse, E | HttpClientError.RequestError> =>
      Fault.isFault(error)
        ? Effect.mapBoth(last.handBack(error), {
          onFailure: asRequestError(request),
          onSuccess: (handed) => new Answered(request, handed)
        })
        : Effect.fail(error),
    onSuccess: (handed) => Effect.succeed(new Answered(request, handed))
  })

/** A silence as the platform's own clients would tell it. */
const asRequestError = (request: HttpClientRequest.HttpClientRequest) => <E>(error: E | Liveness.Silence) =>
  error instanceof Liveness.Silence
    ? new HttpClientError.RequestError({ request, reason: "Transport", cause: error })
    : error

const askedOf = ({ body, headers, method }: HttpClientRequest.HttpClientRequest, url: URL): Exchange.Asked => ({
  method,
  url,
  headers: new Headers(headers),
  body: body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : undefined
})

/** Whether the body of a request can be sent more than once. */
const isReplayable = ({ body }: HttpClientRequest.HttpClientRequest): boolean =>
  body._tag !== "Stream" && body._tag !== "Raw"

const send =
  <E, R>(effect: Effect.Effect<HttpClientResponse.HttpClientResponse, E, R>) =>
  (watch: Liveness.Watch): Effect.Effect<Exchange.Head, E | Liveness.Silence, R> =>
    // one fiber for the request, so that a client which does not let go is not waited for; its exit, since a fiber that fails is
    // logged with all that its error holds
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(Effect.exit(effect))), (fiber) =>
      Effect.zipRight(
        Effect.async<void, Liveness.Silence>((resume) => {
          const hangUp = (): void => {
            watch.end()
            fiber.unsafeInterruptAsFork(FiberId.none)
          }
          watch.begin("headers", (silence) => {
            hangUp()
            resume(Effect.fail(silence))
          })
          fiber.addObserver(() => {
            watch.end()
            resume(Effect.void)
          })
          return Effect.sync(hangUp)
        }),
        Effect.flatMap(Effect.flatten(Fiber.join(fiber)), toHead)
      ))

const bodiless = new Set([204, 205, 304])

const toHead = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<Exchange.Head> =>
  Effect.map(Effect.runtime(), (runtime) => {
    const headers = new Headers()
    for (const [name, value] of Object.entries(response.headers)) if (name !== "set-cookie") headers.set(name, value)
    for (const cookie of Cookies.toSetCookieHeaders(response.cookies)) headers.append("set-cookie", cookie)
    return {
      status: response.status,
      statusText: "",
      url: response.request.url,
      redirected: false,
      type: "default",
      headers,
      body: bodiless.has(response.status)
        ? null
        : isShort(response, Exchange.isEvents(headers))
        ? atOnce(response.arrayBuffer, runtime)
        : new Pump(response.stream, runtime)
    }
  })

/** How many chunks are read before somebody asks for them. */
const AHEAD = 1

/**
 * Reads a stream a chunk ahead of whoever asks, in one fiber of its own: a source that does not let go is not waited for.
 */
class Pump<E> implements Exchange.Source {
  readonly #fiber: Fiber.RuntimeFiber<void>
  readonly #ready: Array<Uint8Array> = []
  #onChunk: ((chunk: Uint8Array | undefined) => void) | undefined
  #onError: ((reason: unknown) => void) | undefined
  #ended: { readonly reason?: unknown } | undefined
  #resume: (() => void) | undefined

  constructor(stream: Stream.Stream<Uint8Array, E>, runtime: Runtime.Runtime<never>) {
    const room = Effect.async<void>((resume) => {
      // somebody may have asked since
      if (this.#onChunk === undefined) this.#resume = () => resume(Effect.void)
      else resume(Effect.void)
    })
    const pumped = Effect.scoped(Effect.flatMap(Stream.toPull(stream), (pull) => {
      const loop: Effect.Effect<void> = Effect.matchCauseEffect(pull, {
        onFailure: (cause) => {
          const ended = Cause.flipCauseOption(cause)
          this.#ended ??= Option.isNone(ended) ? {} : { reason: Cause.squash(ended.value) }
          this.#answer()
          return Effect.void
        },
        onSuccess: (chunk) => {
          for (const bytes of chunk) this.#ready.push(bytes)
          this.#answer()
          return this.#ready.length < AHEAD ? loop : Effect.zipRight(room, loop)
        }
      })
      return loop
    }))
    this.#fiber = Runtime.runFork(runtime)(Effect.interruptible(Effect.zipRight(room, pumped)))
  }

  next(onChunk: (chunk: Uint8Array | undefined) => void, onError: (reason: unknown) => void): void {
    this.#onChunk = onChunk
    this.#onError = onError
    this.#answer()
    if (this.#ready.length >= AHEAD) return
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  cancel(): void {
    this.#onChunk = undefined
    this.#fiber.unsafeInterruptAsFork(FiberId.none)
  }

  /** Answers whoever asked, if there is something to answer. */
  #answer(): void {
    const onChunk = this.#onChunk
    if (onChunk === undefined) return
    const bytes = this.#ready.shift()
    if (bytes === undefined && this.#ended === undefined) return
    this.#onChunk = undefined
    if (bytes === undefined && this.#ended !== undefined && "reason" in this.#ended) {
      this.#onError?.(this.#ended.reason)
    } else onChunk(bytes)
  }
}

const SHORT = 1_048_576

/**
 * Whether an answer is good and says that it is short: it comes in one piece, and a stream of it would cost more than it. An event
 * stream is to be read as it comes, however short.
 */
const isShort = ({ headers, status }: HttpClientResponse.HttpClientResponse, events: boolean): boolean =>
  status >= 200 && status < 300 && !events && headers["content-encoding"] === undefined &&
  Number(headers["content-length"] ?? Number.NaN) <= SHORT

/** A body that is read in one go, when somebody reads it. */
const atOnce = <E>(
  bytes: Effect.Effect<ArrayBuffer, E>,
  runtime: Runtime.Runtime<never>
): ReadableStream<Uint8Array> => {
  let fiber: Fiber.RuntimeFiber<Exit.Exit<ArrayBuffer, E>> | undefined
  let over = false
  return new ReadableStream<Uint8Array>({
    pull: (controller) =>
      new Promise((resolve) => {
        fiber = Runtime.runFork(runtime)(Effect.interruptible(Effect.exit(bytes)))
        fiber.addObserver((ended) => {
          const exit = Exit.flatten(ended)
          if (!over && Exit.isSuccess(exit)) {
            controller.enqueue(new Uint8Array(exit.value))
            controller.close()
          } else if (!over && Exit.isFailure(exit)) controller.error(Cause.squash(exit.cause))
          resolve()
        })
      }),
    cancel: () => {
      over = true
      fiber?.unsafeInterruptAsFork(FiberId.none)
    }
  }, { highWaterMark: 0 })
}

/** An answer that is handed on: whoever is interrupted while reading it hangs up. */
class Answered extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly [HttpClientResponse.TypeId]: HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly [HttpIncomingMessage.TypeId]: HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly request: HttpClientRequest.HttpClientRequest
  readonly #answer: HttpClientResponse.HttpClientResponse
  readonly #hangUp: Effect.Effect<void>

  constructor(request: HttpClientRequest.HttpClientRequest, { hangUp, response }: Exchange.Handed) {
    super()
    this.request = request
    this.#answer = HttpClientResponse.fromWeb(request, response)
    this.#hangUp = Effect.sync(hangUp)
  }

  get status() {
    return this.#answer.status
  }

  get headers() {
    return this.#answer.headers
  }

  get cookies() {
    return this.#answer.cookies
  }

  get remoteAddress() {
    return this.#answer.remoteAddress
  }

  get formData() {
    return Effect.onInterrupt(this.#answer.formData, () => this.#hangUp)
  }

  get text() {
    return Effect.onInterrupt(this.#answer.text, () => this.#hangUp)
  }

  get json() {
    return Effect.onInterrupt(this.#answer.json, () => this.#hangUp)
  }

  get urlParamsBody() {
    return Effect.onInterrupt(this.#answer.urlParamsBody, () => this.#hangUp)
  }

  get arrayBuffer() {
    return Effect.onInterrupt(this.#answer.arrayBuffer, () => this.#hangUp)
  }

  get stream() {
    return this.#answer.stream
  }

  override toJSON(): unknown {
    return this.#answer.toJSON()
  }
}
