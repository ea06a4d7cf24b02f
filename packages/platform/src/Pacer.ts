/**
 * Requests a minute, in front of a target: a limit that a provider is known to have is kept before it refuses anybody.
 *
 * It holds calls back, as many a minute as the limit says and in the order in which they came, and refuses at once what would make
 * the queue longer than its bound. It knows nothing of tokens, and nothing of what other processes send unless its store is shared.
 *
 * @since 0.1.0
 */
import * as RateLimiter from "@effect/experimental/RateLimiter"
import * as Hold from "@recourse/core/Hold"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/**
 * How calls are paced.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How many calls a minute may begin, for each target. */
  readonly requestsPerMinute: number
  /** How many calls may wait, over all targets; 1,000 by default. */
  readonly queue?: number
}

/**
 * The queue is as long as it may be, and the call was refused before anything was sent.
 *
 * @category errors
 * @since 0.1.0
 */
export class PacerFull extends Data.TaggedError("PacerFull")<{ readonly model: string; readonly queue: number }> {
  override get message(): string {
    return `queue: ${this.queue} calls for ${this.model} wait already; make fewer at once, or allow more to wait`
  }
}

/**
 * The limit that is kept, and by whom.
 *
 * @category tags
 * @since 0.1.0
 */
export class Pacer extends Context.Tag("@recourse/platform/Pacer")<Pacer, {
  /** Makes a call when its turn comes. A call that is interrupted while it waits gives its place in the queue back, not its turn. */
  readonly paced: <A, E, R>(self: Effect.Effect<A, E, R>, target: Hold.Target) => Effect.Effect<A, E | PacerFull, R>
}>() {}

/**
 * A pacer over the store of a rate limiter, which may be shared by many processes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  { queue = 1_000, requestsPerMinute }: Options
): Effect.Effect<Context.Tag.Service<Pacer>, never, RateLimiter.RateLimiter> =>
  Effect.map(RateLimiter.RateLimiter, (limiter) => {
    let waiting = 0
    const turn = (key: string): Effect.Effect<void, PacerFull> =>
      Effect.flatMap(
        // a limiter that is told to delay refuses nobody; a store that is away holds nobody
        Effect.catchAll(
          limiter.consume({
            key,
            algorithm: "token-bucket",
            onExceeded: "delay",
            window: "1 minute",
            limit: requestsPerMinute
          }),
          () => Effect.succeed({ delay: Duration.zero })
        ),
        ({ delay }) => Duration.isZero(delay) ? Effect.void : Effect.sleep(delay)
      )
    return Pacer.of({
      paced: (self, { account, model }) =>
        Effect.suspend(() => {
          if (waiting >= queue) return Effect.fail(new PacerFull({ model, queue }))
          waiting++
          const owner = Redacted.isRedacted(account) ? Hold.account(account) : Effect.succeed(account)
          return Effect.zipRight(
            Effect.ensuring(
              Effect.flatMap(owner, (owner) => turn(`${owner}/${model}`)),
              Effect.sync(() => waiting--)
            ),
            self
          )
        })
    })
  })

/**
 * A pacer of this process.
 *
 * @example
 * ```ts
 * import { Recovery } from "@recourse/core"
 * import * as Pacer from "@recourse/platform/Pacer"
 * import { Effect, Redacted } from "effect"
 *
 * const target = { account: Redacted.make("a key"), model: "a-model" }
 * const program = Effect.gen(function*() {
 *   const pacer = yield* Pacer.Pacer
 *   // each attempt waits for its turn
 *   return yield* Recovery.recover(pacer.paced(Effect.succeed("an answer"), target))
 * }).pipe(Effect.provide(Pacer.layer({ requestsPerMinute: 60 })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Pacer> =>
  Layer.effect(Pacer, make(options)).pipe(
    Layer.provide(RateLimiter.layer),
    Layer.provide(RateLimiter.layerStoreMemory)
  )
