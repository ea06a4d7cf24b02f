/**
 * Clients for Node whose own clocks leave the last word to `Liveness`, so that a silence is named by the bound that ran out.
 *
 * undici gives up on headers and on a body after five minutes by itself, and its platform client not for an hour; here both are
 * set 30 seconds above the bounds of `Liveness`. TCP keep-alive is on, so that a connection which died unseen is noticed.
 *
 * Needs `@effect/platform-node`.
 *
 * @since 0.1.0
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Agent, type Dispatcher } from "@effect/platform-node/Undici"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Liveness from "./Liveness.ts"
import type { Fetch } from "./RecourseFetch.ts"

const MARGIN = 30_000

/** The longest that undici's timers can wait. */
const REACH = 2 ** 31 - 1

/** A bound as undici takes it, where zero is none. */
const clockOf = (millis: number): number => millis + MARGIN > REACH ? 0 : millis + MARGIN

const dispatcherOf = (options?: Liveness.Options): Dispatcher => {
  const { chunk, headers } = Liveness.toMillis(options)
  return new Agent({ connect: { keepAlive: true, keepAliveInitialDelay: 60_000 } }).compose(
    // the platform's client sets its own bounds on every request, so they are set on every request here
    (dispatch) => (request, handler) =>
      dispatch({ ...request, headersTimeout: clockOf(headers), bodyTimeout: clockOf(chunk) }, handler)
  )
}

/**
 * An `HttpClient` on undici, to be recovered by `RecourseClient`.
 *
 * @example
 * ```ts
 * import { HttpClient } from "@effect/platform"
 * import * as NodeClient from "@recourse/platform/NodeClient"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 * import { Effect, Layer } from "effect"
 *
 * const liveness = { headers: "1 minute", chunk: "2 minutes" } as const
 * const layer = Layer.effect(
 *   HttpClient.HttpClient,
 *   Effect.map(HttpClient.HttpClient, RecourseClient.transparent({ liveness }))
 * ).pipe(Layer.provide(NodeClient.layer(liveness)))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Liveness.Options): Layer.Layer<HttpClient.HttpClient> =>
  NodeHttpClient.layerUndiciWithoutDispatcher.pipe(
    Layer.provide(
      Layer.scoped(
        NodeHttpClient.Dispatcher,
        Effect.acquireRelease(
          Effect.sync(() => dispatcherOf(options)),
          (dispatcher) => Effect.promise(() => dispatcher.destroy())
        )
      )
    )
  )

/**
 * The global `fetch` with those clocks, to be recovered by `RecourseFetch`.
 *
 * @example
 * ```ts
 * import * as NodeClient from "@recourse/platform/NodeClient"
 * import * as RecourseFetch from "@recourse/platform/RecourseFetch"
 *
 * const liveness = { chunk: "2 minutes" } as const
 * const fetch = RecourseFetch.make({ liveness, fetch: NodeClient.fetch(liveness) })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fetch = (options?: Liveness.Options): Fetch => {
  const dispatcher = dispatcherOf(options)
  const own: { readonly dispatcher: Dispatcher } & RequestInit = { dispatcher }
  return (input, init) => globalThis.fetch(input, { ...init, ...own })
}
