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
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
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
  (watch: Liveness.Watch): Effect.Effect<Response, E | Liveness.Silence, R> =>
    Effect.raceFirst(
      // a client that does not let go is not waited for
      Effect.disconnect(Effect.map(effect, toWeb)),
      Effect.async<never, Liveness.Silence>((resume) => {
        watch.begin("headers", (silence) => resume(Effect.fail(silence)))
        return Effect.sync(() => watch.end())
      })
    )

const bodiless = new Set([101, 204, 205, 304])

const toWeb = (response: HttpClientResponse.HttpClientResponse): Response => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) if (name !== "set-cookie") headers.set(name, value)
  for (const cookie of Cookies.toSetCookieHeaders(response.cookies)) headers.append("set-cookie", cookie)
  const body = bodiless.has(response.status) ? null : Stream.toReadableStream(response.stream)
  return new Response(body, { status: response.status, headers })
}
