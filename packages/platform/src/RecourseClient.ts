/**
 * Recovery beneath `@effect/platform`'s `HttpClient`.
 *
 * `recover` is for a program of your own: what fails, fails with a typed fault. `transparent` is for the hook of a library that
 * knows `HttpClient` alone: it retries below, and hands back the provider's own last answer. Both leave `R` as it was, send a
 * request once whose body is a stream, and recover, by default, only the requests that ask a model for something.
 *
 * Neither recovers what breaks inside an event stream, which is handed on at its head.
 *
 * @since 0.1.0
 */
import * as Cookies from "@effect/platform/Cookies"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as UrlParams from "@effect/platform/UrlParams"
import * as Fault from "@recourse/core/Fault"
import * as Recovery from "@recourse/core/Recovery"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import { dual } from "effect/Function"
import * as Stream from "effect/Stream"
import * as Exchange from "./internal/exchange.ts"
import * as Liveness from "./Liveness.ts"

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
 * policy says was tried. A request that is not among those to recover is sent once, and classified all the same. Errors that are
 * no fault of the call keep their type: a URL or a body that could not be made, and whatever the client adds of its own.
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
  ): HttpClient.HttpClient.With<E | Fault.Fault, R> =>
    HttpClient.transform(client, (effect, request) => {
      const attempt = Exchange.attempt(send(effect), sort<E>, urlOf(request), options, new Exchange.Last())
      return Effect.map(
        isTried(request, options) ? Recovery.recover(attempt, options) : attempt,
        (response) => HttpClientResponse.fromWeb(request, response)
      )
    })
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
  ): HttpClient.HttpClient.With<E | HttpClientError.RequestError, R> =>
    HttpClient.transform(client, (effect, request) => {
      if (!isTried(request, options)) return effect
      return Effect.suspend(() => {
        const last = new Exchange.Last<E | Liveness.Silence>()
        const attempt = Exchange.attempt(send(effect), sort<E>, urlOf(request), options, last)
        return Effect.map(
          Effect.catchAll(
            Recovery.recover(attempt, options),
            (error) =>
              Fault.isFault(error) ? Effect.mapError(last.handBack, asRequestError(request)) : Effect.fail(error)
          ),
          (response) => HttpClientResponse.fromWeb(request, response)
        )
      })
    })
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

/** A silence as the platform's own clients would tell it. */
const asRequestError = (request: HttpClientRequest.HttpClientRequest) => <E>(error: E | Liveness.Silence) =>
  error instanceof Liveness.Silence
    ? new HttpClientError.RequestError({ request, reason: "Transport", cause: error })
    : error

/** Whether a request may be sent more than once. */
const isTried = (request: HttpClientRequest.HttpClientRequest, options: Options): boolean =>
  request.body._tag !== "Stream" && request.body._tag !== "Raw" &&
  Exchange.isRecovered(request.method, urlOf(request), options)

const send =
  <E, R>(effect: Effect.Effect<HttpClientResponse.HttpClientResponse, E, R>) =>
  (watch: Liveness.Watch): Effect.Effect<Exchange.Head, E | Liveness.Silence, R> =>
    // one fiber for the request, so that a client which does not let go is not waited for
    Effect.flatMap(Effect.forkDaemon(effect), (fiber) =>
      Effect.zipRight(
        Effect.async<void, Liveness.Silence>((resume) => {
          const ended = (): void => {
            watch.end()
            resume(Effect.void)
          }
          watch.begin("headers", (silence) => {
            fiber.unsafeInterruptAsFork(FiberId.none)
            resume(Effect.fail(silence))
          })
          fiber.addObserver(ended)
          return Effect.sync(() => {
            watch.close()
            fiber.unsafeInterruptAsFork(FiberId.none)
          })
        }),
        Effect.map(Fiber.join(fiber), toHead)
      ))

const bodiless = new Set([101, 204, 205, 304])

const toHead = (response: HttpClientResponse.HttpClientResponse): Exchange.Head => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) if (name !== "set-cookie") headers.set(name, value)
  for (const cookie of Cookies.toSetCookieHeaders(response.cookies)) headers.append("set-cookie", cookie)
  return {
    status: response.status,
    statusText: "",
    url: response.request.url,
    headers,
    body: bodiless.has(response.status)
      ? null
      : isShort(response)
      ? atOnce(response.arrayBuffer)
      : Stream.toReadableStream(response.stream)
  }
}

const SHORT = 1_048_576

/** Whether an answer is good and says that it is short: it comes in one piece, and a stream of it would cost more than it. */
const isShort = ({ headers, status }: HttpClientResponse.HttpClientResponse): boolean =>
  status >= 200 && status < 300 && headers["content-encoding"] === undefined &&
  Number(headers["content-length"] ?? Number.NaN) <= SHORT

/** A body that is read in one go, when somebody reads it. */
const atOnce = <E>(bytes: Effect.Effect<ArrayBuffer, E>): ReadableStream<Uint8Array> => {
  let fiber: Fiber.RuntimeFiber<ArrayBuffer, E> | undefined
  return new ReadableStream<Uint8Array>({
    pull: (controller) =>
      new Promise((resolve) => {
        fiber = Effect.runFork(bytes)
        fiber.addObserver((exit) => {
          if (Exit.isSuccess(exit)) {
            controller.enqueue(new Uint8Array(exit.value))
            controller.close()
          } else if (!Exit.isInterrupted(exit)) controller.error(Cause.squash(exit.cause))
          resolve()
        })
      }),
    cancel: () => fiber?.unsafeInterruptAsFork(FiberId.none)
  }, { highWaterMark: 0 })
}
