/**
 * How long silence is borne: to the headers of an answer, and from one raw chunk of it to the next.
 *
 * The clock runs only while somebody waits for the bytes, so a slow consumer never trips it, and any byte is life, a keep-alive
 * comment too. It is one watchdog for a call, not a timer for each chunk, and it runs on Effect's Clock.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"

/**
 * The two bounds. `Duration.infinity` takes one away.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** From the sending of a request to the headers of its answer; 3 minutes by default. */
  readonly headers?: Duration.DurationInput
  /** From one raw chunk to the next; 10 minutes by default. */
  readonly chunk?: Duration.DurationInput
}

/**
 * Which of the two bounds.
 *
 * @category models
 * @since 0.1.0
 */
export type Bound = "headers" | "chunk"

/**
 * Nothing came within a bound. Diagnosed as `TimedOut`, whose readout says whose clock ran out.
 *
 * @category errors
 * @since 0.1.0
 */
export class Silence extends Error {
  override readonly name = "TimeoutError"
  readonly code: "RECOURSE_HEADERS_TIMEOUT" | "RECOURSE_CHUNK_TIMEOUT"
  readonly bound: Bound

  constructor(bound: Bound, limit: Duration.Duration) {
    super(
      bound === "headers"
        ? `no headers within ${Duration.format(limit)}`
        : `no further bytes within ${Duration.format(limit)}`
    )
    this.bound = bound
    this.code = bound === "headers" ? "RECOURSE_HEADERS_TIMEOUT" : "RECOURSE_CHUNK_TIMEOUT"
  }
}

/**
 * The watch over one call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Watch {
  /** Somebody waits from now on. `onSilence` is called at most once, and not after `end`. */
  readonly begin: (bound: Bound, onSilence: (silence: Silence) => void) => void
  /** What was waited for has come. */
  readonly end: () => void
  /** Nobody will wait again. */
  readonly close: () => void
}

/** The defaults of `Options`, in which the node layer sets its own clocks. */
const limitsOf = ({ chunk = "10 minutes", headers = "3 minutes" }: Options) => ({
  headers: Duration.decode(headers),
  chunk: Duration.decode(chunk)
})

/**
 * Both bounds in milliseconds.
 *
 * @category conversions
 * @since 0.1.0
 */
export const toMillis = (options: Options = {}): { readonly [B in Bound]: number } => {
  const { chunk, headers } = limitsOf(options)
  return { headers: Duration.toMillis(headers), chunk: Duration.toMillis(chunk) }
}

/** How long the watchdog sleeps in one go: what it still sleeps when the call is done keeps a process from ending. */
const NAP = 1_000

/**
 * A watch of its own for a call, on the Clock of the fiber that makes it. It costs nothing until `begin`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const watch = (options: Options = {}): Effect.Effect<Watch> => {
  const limits = limitsOf(options)
  return Effect.map(
    Effect.zip(Effect.runtime(), Effect.clock),
    ([runtime, clock]) => new Watchdog(limits, runtime, clock)
  )
}

class Watchdog implements Watch {
  readonly #limits: { readonly [B in Bound]: Duration.Duration }
  readonly #millis: { readonly [B in Bound]: number }
  readonly #runtime: Runtime.Runtime<never>
  readonly #clock: Clock.Clock
  #waiting:
    | { readonly bound: Bound; readonly until: number; readonly onSilence: (silence: Silence) => void }
    | undefined
  #fiber: Fiber.RuntimeFiber<void> | undefined
  #wakes = 0

  constructor(
    limits: { readonly [B in Bound]: Duration.Duration },
    runtime: Runtime.Runtime<never>,
    clock: Clock.Clock
  ) {
    this.#limits = limits
    this.#millis = { headers: Duration.toMillis(limits.headers), chunk: Duration.toMillis(limits.chunk) }
    this.#runtime = runtime
    this.#clock = clock
  }

  begin(bound: Bound, onSilence: (silence: Silence) => void): void {
    const millis = this.#millis[bound]
    if (millis === Number.POSITIVE_INFINITY) return
    const until = this.#clock.unsafeCurrentTimeMillis() + millis
    this.#waiting = { bound, until, onSilence }
    // one that sleeps looks again when it wakes, which is soon enough unless the bound is shorter than the one before
    if (this.#fiber !== undefined && until >= this.#wakes) return
    this.#stop()
    this.#wakes = Math.min(until, this.#clock.unsafeCurrentTimeMillis() + NAP)
    // whoever makes a watch may be beyond interruption; the watchdog is not
    this.#fiber = Runtime.runFork(this.#runtime)(Effect.interruptible(this.#look))
  }

  end(): void {
    this.#waiting = undefined
  }

  close(): void {
    this.#waiting = undefined
    this.#stop()
  }

  #stop(): void {
    this.#fiber?.unsafeInterruptAsFork(FiberId.none)
    this.#fiber = undefined
  }

  readonly #look: Effect.Effect<void> = Effect.suspend(() => {
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#fiber = undefined
      return Effect.void
    }
    const left = waiting.until - this.#clock.unsafeCurrentTimeMillis()
    if (left > 0) {
      const nap = Math.min(left, NAP)
      this.#wakes = waiting.until - left + nap
      return Effect.zipRight(this.#clock.sleep(Duration.millis(nap)), this.#look)
    }
    this.#waiting = undefined
    this.#fiber = undefined
    return Effect.sync(() => waiting.onSilence(new Silence(waiting.bound, this.#limits[waiting.bound])))
  })
}
