/**
 * Recovery of a streamed answer: keep prose, retry the rest.
 *
 * While nothing of the answer's text has been shown, a break is retried, and a `Boundary` marks in the stream where another attempt
 * begins. Once text is out the answer is never asked for again: where a retry would have followed, the stream ends with
 * `CutShort.Stalled` and what was shown stays; every other fault is given back as it is, and `prefix` reads from it what was shown.
 * Tool calls are withheld until the answer is whole. A stream without its terminal event is a `StreamCut`, and one that reached the
 * output cap ends with `CutShort.OutputCap`.
 *
 * It does not know a protocol: `describe` says what each part is.
 *
 * @since 0.1.0
 */
import * as Channel from "effect/Channel"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Attempt from "./Attempt.ts"
import * as Diagnosis from "./Diagnosis.ts"
import * as Fault from "./Fault.ts"
import type * as Hold from "./Hold.ts"
import * as Recovery from "./Recovery.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { StreamEnd } from "./StreamEnd.ts"

// --- parts -------------------------------------------------------------------------------------------------------------

/**
 * What a part of a stream is.
 *
 * - `Text`: text of the answer. It is handed on at once, and is never taken back or said twice.
 * - `Reasoning`: thinking that is shown but is not the answer. Handed on at once; a retry seals it with a `Boundary`.
 * - `Tool`: a piece of a tool call. Withheld until the answer is whole, and dropped if it never is.
 * - `End`: a terminal event. The first one decides; what follows it is handed on, and a break after it is none.
 * - `Failed`: an error inside the stream. The part itself is not handed on.
 * - `Other`: everything else. What comes before the first content is held back until then, 64 parts at most.
 *
 * @category models
 * @since 0.1.0
 */
export type Description =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning" | "Tool" | "Other" }
  | { readonly _tag: "End"; readonly end: StreamEnd }
  | { readonly _tag: "Failed"; readonly fault: Fault.Fault }

/**
 * Another attempt begins here, in place of one that failed after some of it had been shown: its reasoning ends here.
 *
 * @category models
 * @since 0.1.0
 */
export class Boundary {
  readonly _tag = "Boundary"
  /** The number of the attempt that begins. */
  readonly attempt: number
  /** Why the one before it failed. */
  readonly fault: Fault.Fault

  constructor(attempt: number, fault: Fault.Fault) {
    this.attempt = attempt
    this.fault = fault
  }
}

/**
 * The answer broke off after a part of it was shown, where a retry would have followed had nothing been shown.
 *
 * @category models
 * @since 0.1.0
 */
export class Stalled {
  readonly _tag = "Stalled"
  readonly fault: Fault.Fault
  /** The text of the answer that was shown. */
  readonly text: string

  constructor(fault: Fault.Fault, text: string) {
    this.fault = fault
    this.text = text
  }
}

/**
 * The answer reached the output cap: its text is good as far as it goes.
 *
 * @category models
 * @since 0.1.0
 */
export class OutputCap {
  readonly _tag = "OutputCap"
  /** The provider's own word. */
  readonly stopReason: string
  /** The text of the answer that was shown. */
  readonly text: string

  constructor(stopReason: string, text: string) {
    this.stopReason = stopReason
    this.text = text
  }
}

/**
 * The last part of an answer that was cut short.
 *
 * @category models
 * @since 0.1.0
 */
export type CutShort = Stalled | OutputCap

/**
 * @category guards
 * @since 0.1.0
 */
export const isBoundary = (part: unknown): part is Boundary => part instanceof Boundary

/**
 * @category guards
 * @since 0.1.0
 */
export const isCutShort = (part: unknown): part is CutShort => part instanceof Stalled || part instanceof OutputCap

const prefixes = new WeakMap<Fault.Fault, string>()

/**
 * The text of the answer that had been shown when a stream failed or stalled with this fault; nothing of it is in the fault itself.
 *
 * @category conversions
 * @since 0.1.0
 */
export const prefix = (fault: Fault.Fault): string => prefixes.get(fault) ?? ""

// --- one attempt -------------------------------------------------------------------------------------------------------

/** How many parts are held back until the first content. */
const HELD = 64

/** Sorts the parts of one attempt: what can be handed on, and how it ended. */
class Reader<A> {
  readonly #describe: (part: A, received: number) => Description
  readonly #text: Array<string>
  #held: Array<A> | undefined = []
  #tools: Array<A> = []
  end: StreamEnd | undefined
  fault: Fault.Fault | undefined

  constructor(describe: (part: A, received: number) => Description, text: Array<string>) {
    this.#describe = describe
    this.#text = text
  }

  /** What of these parts, and of those before them, is handed on now. */
  take(parts: Iterable<A>, received: number): Array<A> {
    const out: Array<A> = []
    const release = (): void => {
      if (this.#held === undefined) return
      out.push(...this.#held)
      this.#held = undefined
    }
    for (const part of parts) {
      const described = this.#describe(part, received)
      switch (described._tag) {
        case "Text":
          if (described.text !== "") {
            release()
            this.#text.push(described.text)
          }
          break
        case "Reasoning":
          release()
          break
        case "Tool":
          if (this.end === undefined) this.#tools.push(part)
          continue
        case "End": {
          if (this.end !== undefined) break
          if (described.end._tag !== "Complete" && described.end._tag !== "OutputCap") {
            this.fault = Diagnosis.fromFrame({ stop_reason: described.end.reason }, { received })
            return out
          }
          this.end = described.end
          release()
          if (described.end._tag === "Complete") out.push(...this.#tools)
          this.#tools = []
          break
        }
        case "Failed":
          if (this.end !== undefined) continue
          this.fault = described.fault
          return out
        case "Other":
      }
      if (this.#held === undefined) out.push(part)
      else if (this.#held.push(part) > HELD) release()
    }
    return out
  }
}

/** An attempt whose answer has begun. */
interface Opened<A, E, R> {
  readonly pull: Pull<A, E, R>
  readonly reader: Reader<A>
  /** What was handed on first. */
  readonly parts: ReadonlyArray<A>
}

// --- the stream --------------------------------------------------------------------------------------------------------

/**
 * What a recovery is told of the parts of a stream.
 *
 * @category models
 * @since 0.1.0
 */
export interface Described<A> {
  /** What a part is; `received` is the time now, in epoch milliseconds, for a fault that is made of it. */
  readonly describe: (part: A, received: number) => Description
}

/**
 * How a stream is recovered by itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface Free<A> extends Recovery.Free, Described<A> {}

/**
 * How a stream is recovered that shares what is known of refusals.
 *
 * @category models
 * @since 0.1.0
 */
export interface Held<A> extends Recovery.Held, Described<A> {}

const cutOff = Effect.map(Clock.currentTimeMillis, (received): Fault.Fault => Diagnosis.fromCut({ received }))

/** What gives the next parts of a stream, and fails with nothing at its end. */
type Pull<A, E, R> = Effect.Effect<Chunk.Chunk<A>, Option.Option<E>, R>

/**
 * @internal The stream of what is pulled. `Stream.fromPull` hands every chunk through a second channel, which costs more than the
 * reading of most.
 */
export const fromPull = <A, E, R, R2>(
  self: Effect.Effect<Pull<A, E, R>, never, R2 | Scope.Scope>
): Stream.Stream<A, E, R | Exclude<R2, Scope.Scope>> => {
  type Out = Channel.Channel<Chunk.Chunk<A>, unknown, E, unknown, unknown, unknown, R>
  const emitted = (pull: Pull<A, E, R>): Out => {
    const all: Out = Channel.unwrap(Effect.match(pull, {
      onFailure: (ended): Out => Option.isSome(ended) ? Channel.fail(ended.value) : Channel.void,
      onSuccess: (chunk): Out => Channel.flatMap(Channel.write(chunk), () => all)
    }))
    return all
  }
  return Stream.fromChannel(Channel.acquireUseRelease(
    Scope.make(),
    (scope) => Channel.unwrap(Effect.map(Scope.extend(self, scope), emitted)),
    (scope, exit) => Scope.close(scope, exit)
  ))
}

/** @internal The recovery of whatever is pulled from: a stream between it and its source costs more than all of the rest. */
export const pulling: {
  <A, E, R>(self: Effect.Effect<Pull<A, E, R>, never, R | Scope.Scope>, options: Free<A>): Effect.Effect<
    Pull<A | Boundary | CutShort, E | Fault.Fault, R>,
    never,
    R | Scope.Scope
  >
  <A, E, R>(self: Effect.Effect<Pull<A, E, R>, never, R | Scope.Scope>, options: Held<A>): Effect.Effect<
    Pull<A | Boundary | CutShort, E | Fault.Fault, R>,
    never,
    R | Hold.Hold | Scope.Scope
  >
} = dual(2, <A, E, R>(
  self: Effect.Effect<Pull<A, E, R>, never, R | Scope.Scope>,
  { describe, ...options }: Free<A> | Held<A>
): Effect.Effect<Pull<A | Boundary | CutShort, E | Fault.Fault, R>, never, R | Hold.Hold | Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Effect.clock
    const text: Array<string> = []
    let scope: Scope.CloseableScope | undefined
    let opened: Opened<A, E, R> | undefined
    let on: Pull<A | Boundary | CutShort, E | Fault.Fault, R> = Effect.fail(Option.none())
    // whether something of the attempt has been handed on, of whatever kind
    let seen = false
    let over = false

    const close = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const last = scope
        scope = undefined
        return last === undefined ? Effect.void : Scope.close(last, exit)
      })

    /** Reads until there is something to hand on, or it is over. */
    const begin = (
      pull: Pull<A, E, R>,
      reader: Reader<A>
    ): Effect.Effect<Opened<A, E, R>, E | Fault.Fault, R> =>
      Effect.matchEffect(pull, {
        onFailure: (ended): Effect.Effect<Opened<A, E, R>, E | Fault.Fault, R> =>
          Option.isSome(ended)
            ? Effect.fail(ended.value)
            : reader.end === undefined
            ? Effect.flatMap(cutOff, Effect.fail)
            : Effect.succeed({ pull: Effect.fail(Option.none()), reader, parts: [] }),
        onSuccess: (chunk) =>
          Effect.flatMap(
            Effect.flatMap(Attempt.Attempt, ({ admitted }) => admitted),
            (): Effect.Effect<Opened<A, E, R>, E | Fault.Fault, R> => {
              const parts = reader.take(chunk, clock.unsafeCurrentTimeMillis())
              return parts.length > 0 || reader.end !== undefined
                ? Effect.succeed({ pull, reader, parts })
                : reader.fault === undefined
                ? begin(pull, reader)
                : Effect.fail(reader.fault)
            }
          )
      })

    const attempt: Effect.Effect<Opened<A, E, R>, E | Fault.Fault, R> = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Scope.make(), (own) => {
        scope = own
        return Effect.onExit(
          restore(
            Effect.flatMap(
              Scope.extend(self, own),
              (pull) => begin(pull, new Reader(describe, text))
            )
          ),
          (exit) => Exit.isFailure(exit) ? close(exit) : Effect.void
        )
      })
    )

    const call = yield* Recovery.begun(
      attempt,
      options.policy ?? RetryPolicy.standard,
      options.target === undefined ? undefined : options
    )

    yield* Effect.addFinalizer((exit) =>
      Effect.zipRight(
        close(exit),
        !over && opened !== undefined && Exit.isInterrupted(exit) ? call.interrupted : Effect.void
      )
    )

    type Out = A | Boundary | CutShort
    type Next = Pull<Out, E | Fault.Fault, R>

    const shown = (): string => text.join("")

    /** The next attempt, from wherever it is made. */
    const opening = (
      next: Effect.Effect<Opened<A, E, R>, E | Fault.Fault, R>,
      replaced: Fault.Fault | undefined
    ): Next =>
      Effect.suspend(() => {
        opened = undefined
        return Effect.matchEffect(next, {
          onFailure: (error) => {
            over = true
            return Effect.fail(Option.some(error))
          },
          onSuccess: (one) => {
            opened = one
            on = onward(one)
            const sealed: ReadonlyArray<Out> = replaced !== undefined && seen
              ? [new Boundary(call.attempt(), replaced), ...one.parts]
              : one.parts
            seen = one.parts.length > 0
            return sealed.length === 0 ? pull : Effect.succeed(Chunk.unsafeFromArray(sealed))
          }
        })
      })

    const failed = (fault: Fault.Fault): Next =>
      Effect.zipRight(
        close(Exit.fail(fault)),
        Effect.suspend(() => {
          if (text.length === 0) return opening(call.again(fault), fault)
          over = true
          return Effect.matchEffect(call.stalled(fault), {
            onFailure: (error) => {
              if (Fault.isFault(error)) prefixes.set(error, shown())
              return Effect.fail(Option.some(error))
            },
            onSuccess: (last) => {
              prefixes.set(last, shown())
              return Effect.succeed(Chunk.of<Out>(new Stalled(last, shown())))
            }
          })
        })
      )

    const finished = (end: StreamEnd): Next => {
      over = true
      return end._tag === "OutputCap"
        ? Effect.as(call.capped(end.reason), Chunk.of<Out>(new OutputCap(end.reason, shown())))
        : Effect.zipRight(call.over, Effect.fail(Option.none()))
    }

    /** What comes after what was handed on first. */
    const onward = ({ pull: from, reader }: Opened<A, E, R>): Next =>
      Effect.matchEffect(from, {
        onFailure: (ended): Next => {
          if (reader.end !== undefined) return finished(reader.end)
          if (Option.isNone(ended)) return Effect.flatMap(cutOff, failed)
          if (Fault.isFault(ended.value)) return failed(ended.value)
          over = true
          return Effect.fail(ended)
        },
        onSuccess: (chunk): Next => {
          const parts = reader.take(chunk, clock.unsafeCurrentTimeMillis())
          if (parts.length === 0) return pull
          seen = true
          return Effect.succeed(Chunk.unsafeFromArray(parts))
        }
      })

    const pull: Next = Effect.suspend(() => {
      if (over) return Effect.fail(Option.none())
      if (opened === undefined) return opening(call.first, undefined)
      return opened.reader.fault === undefined ? on : failed(opened.reader.fault)
    })
    return pull
  }))

const recovered = <A, E, R>(
  self: Stream.Stream<A, E, R>,
  options: Held<A>
): Stream.Stream<A | Boundary | CutShort, E | Fault.Fault, R | Hold.Hold> =>
  fromPull(pulling(Stream.toPull(self), options))

/**
 * Recovers a stream whose faults are in its error channel, or among its parts. Each attempt runs the stream anew; its scope is
 * closed before another one begins, and at once when the consumer stops or is interrupted.
 *
 * What a consumer sees of the answer's text is a beginning of one answer or the whole of it, never a word twice. Requests are
 * bounded by the policy, as those of `Recovery.recover` are. It asks for the next part only when its consumer does, and holds
 * back tool calls alone; the text is kept beside, to be read from a cut.
 *
 * @example
 * ```ts
 * import { StreamEnd, StreamRecovery } from "@recourse/core"
 * import { Stream } from "effect"
 *
 * type Frame = { readonly delta?: string; readonly stop?: string }
 *
 * const answer: Stream.Stream<Frame> = Stream.make({ delta: "Hel" }, { delta: "lo" }, { stop: "end_turn" })
 * const recovered = answer.pipe(
 *   StreamRecovery.recover({
 *     describe: ({ delta, stop }: Frame) => {
 *       if (delta !== undefined) return { _tag: "Text", text: delta }
 *       const end = stop === undefined ? undefined : StreamEnd.fromStopReason(stop)
 *       return end === undefined ? { _tag: "Other" } : { _tag: "End", end }
 *     }
 *   }),
 *   Stream.takeWhile((part) => !StreamRecovery.isCutShort(part))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const recover: {
  <A>(
    options: Held<A>
  ): <E, R>(
    self: Stream.Stream<A, E, R>
  ) => Stream.Stream<A | Boundary | CutShort, E | Fault.Fault, R | Hold.Hold>
  <A>(
    options: Free<A>
  ): <E, R>(self: Stream.Stream<A, E, R>) => Stream.Stream<A | Boundary | CutShort, E | Fault.Fault, R>
  <A, E, R>(
    self: Stream.Stream<A, E, R>,
    options: Held<A>
  ): Stream.Stream<A | Boundary | CutShort, E | Fault.Fault, R | Hold.Hold>
  <A, E, R>(
    self: Stream.Stream<A, E, R>,
    options: Free<A>
  ): Stream.Stream<A | Boundary | CutShort, E | Fault.Fault, R>
} = dual(2, recovered)
