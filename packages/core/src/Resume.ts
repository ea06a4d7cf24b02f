/**
 * Waking at the reset: a conversation that ended because it was refused for long goes on by itself once that has passed.
 *
 * The program arms a wake-up, never the model, and reads `wakeups` to go on. Who may resume is chosen by a layer: `layerMemory` and
 * `layer` wake, `layerNone` does not, and `settling` takes it from a part of a program: from children, which fail up to the
 * conversation that wakes, and from a conversation that has to settle. The rule is here; what remembers is `ResumeStore`.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import * as Fault from "./Fault.ts"
import * as HoldStore from "./HoldStore.ts"
import { away } from "./internal/away.ts"
import * as ResumeStore from "./ResumeStore.ts"

/**
 * The reset has passed for which a conversation waited.
 *
 * @category models
 * @since 0.1.0
 */
export interface Wakeup {
  readonly conversation: string
  /** The fault that was deferred. */
  readonly fault: Fault.Fault
  /** Between which instants requests were refused. */
  readonly from: DateTime.Utc
  readonly until: DateTime.Utc
  /** The same as a sentence for the model, which knows of no clock. */
  readonly sentence: string
}

/**
 * The wake-ups of a program's conversations.
 *
 * @category tags
 * @since 0.1.0
 */
export class Resume extends Context.Tag("@recourse/core/Resume")<Resume, {
  /**
   * Has a conversation woken once the reset of a fault has passed, in place of whatever it waited for; tells when. Nothing where
   * nobody wakes, where the fault names no reset or no wait cures it, and where the store is away.
   */
  readonly arm: (conversation: string, fault: Fault.Fault) => Effect.Effect<Option.Option<DateTime.Utc>>
  /** Forgets the wake-up of a conversation; tells whether there was one. */
  readonly disarm: (conversation: string) => Effect.Effect<boolean>
  /** What is armed now. */
  readonly armed: Effect.Effect<ReadonlyArray<ResumeStore.Armed>>
  /**
   * Each wake-up when it is due, once, whoever reads; those that fell due while nobody read, or no process ran, at once. It is
   * forgotten as it is handed on, and never ends.
   */
  readonly wakeups: Stream.Stream<Wakeup>
}>() {}

/**
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Over how long the wake-ups of one reset are spread, so that they are no stampede; 5 seconds by default. */
  readonly spread?: Duration.DurationInput
}

/** How often a wait for an instant looks at the wall clock again, and for how long a store that is away is left alone. */
const LOOK = 5_000
/** The longest that a timer waits in one go. */
const REACH = 2 ** 31 - 1

const left = (armed: ResumeStore.Armed, clock: Clock.Clock): number =>
  armed.elapses === undefined
    ? armed.wakes - clock.unsafeCurrentTimeMillis()
    : armed.elapses - HoldStore.elapsed(clock)

const utc = (millis: number): string => new Date(millis).toUTCString().replace(/GMT$/, "UTC")

/**
 * What a model is told that goes on after a refusal.
 *
 * @category conversions
 * @since 0.1.0
 */
export const sentence = ({ from, until }: Pick<ResumeStore.Armed, "from" | "until">): string =>
  `Your requests were refused from ${utc(from)} until ${utc(until)}. That has passed: go on where you were interrupted.`

/**
 * Waking over a store.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  { spread = "5 seconds" }: Options = {}
): Effect.Effect<Context.Tag.Service<Resume>, never, ResumeStore.ResumeStore> =>
  Effect.map(Effect.zip(ResumeStore.ResumeStore, Effect.clock), ([store, clock]) => {
    const most = Duration.toMillis(spread)
    const waiting = new Set<() => void>()
    let changes = 0
    const { isAway, open } = away("Nobody is woken.")

    const changed = (): void => {
      changes++
      for (const wake of waiting) wake()
    }
    /** Until something is armed or disarmed since then. */
    const change = (seen: number): Effect.Effect<void> =>
      Effect.async((resume) => {
        if (seen !== changes) return resume(Effect.void)
        const wake = (): void => {
          waiting.delete(wake)
          resume(Effect.void)
        }
        waiting.add(wake)
        return Effect.sync(() => waiting.delete(wake))
      })

    const next: Effect.Effect<Wakeup> = Effect.suspend(() => {
      const seen = changes
      return Effect.flatMap(open("read", store.all, []), (all) => {
        const [first] = [...all].sort((a, b) => left(a, clock) - left(b, clock))
        if (first === undefined) {
          return Effect.zipRight(isAway() ? clock.sleep(Duration.millis(LOOK)) : change(seen), next)
        }
        const rest = left(first, clock)
        if (rest > 0) {
          // the clock may be set past an instant that is due after it
          const slice = Math.min(rest, all.some(({ elapses }) => elapses === undefined) ? LOOK : REACH)
          return Effect.zipRight(Effect.raceFirst(change(seen), clock.sleep(Duration.millis(slice))), next)
        }
        return Effect.flatMap(
          open("written", store.remove(first.conversation, first.wakes), false),
          (removed) => {
            if (!removed) return isAway() ? Effect.zipRight(clock.sleep(Duration.millis(LOOK)), next) : next
            const { conversation, fault, from, until } = first
            return Effect.succeed({
              conversation,
              fault,
              from: DateTime.unsafeMake(from),
              until: DateTime.unsafeMake(until),
              sentence: sentence(first)
            })
          }
        )
      })
    })

    return {
      arm: (conversation, fault) =>
        Effect.gen(function*() {
          const { resetsAt } = fault
          if (resetsAt === undefined || !Fault.isRetryable(fault._tag)) return Option.none()
          const later = most === 0 ? 0 : yield* Random.nextIntBetween(0, most + 1)
          const until = resetsAt.at.epochMillis
          const wakes = until + later
          const rest = wakes - clock.unsafeCurrentTimeMillis()
          const armed: ResumeStore.Armed = {
            conversation,
            fault,
            from: fault.received.epochMillis,
            until,
            wakes,
            ...(resetsAt.named === "delta" ? { elapses: HoldStore.elapsed(clock) + rest } : {})
          }
          const put = yield* open("written", Effect.as(store.put(armed), true), false)
          changed()
          return put ? Option.some(DateTime.unsafeMake(wakes)) : Option.none()
        }),
      disarm: (conversation) =>
        Effect.map(open("written", store.remove(conversation), false), (removed) => {
          changed()
          return removed
        }),
      armed: open("read", store.all, []),
      wakeups: Stream.repeatEffect(next)
    }
  })

/**
 * Waking over whatever store is provided.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Resume, never, ResumeStore.ResumeStore> =>
  Layer.effect(Resume, make(options))

/**
 * Waking in this process: what is armed does not outlive it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Resume> = Layer.provide(layer(), ResumeStore.layerMemory)

const none: Context.Tag.Service<Resume> = {
  arm: () => Effect.succeed(Option.none()),
  disarm: () => Effect.succeed(false),
  armed: Effect.succeed([]),
  wakeups: Stream.never
}

/**
 * Nobody wakes: a refusal ends a call at once, and says until when.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerNone: Layer.Layer<Resume> = Layer.succeed(Resume, none)

/**
 * Takes waking from a part of a program, whatever its surroundings provide: what is refused in it fails.
 *
 * @category combinators
 * @since 0.1.0
 */
export const settling = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Resume>> =>
  Effect.provideService(self, Resume, none)

/**
 * Arms the wake-up of a conversation where `self` fails with a fault that names a reset, and disarms it where it succeeds. The fault
 * is given back either way.
 *
 * @example
 * ```ts
 * import { Diagnosis, Resume } from "@recourse/core"
 * import { Effect, Stream } from "effect"
 *
 * const refusal = Diagnosis.fromResponse({ status: 429, headers: { "retry-after": "2400" } }, { received: Date.now() })
 *
 * // whatever goes on with a conversation, from a prompt
 * const goOn = (conversation: string, prompt: string): Effect.Effect<void, typeof refusal, Resume.Resume> =>
 *   Effect.fail(refusal).pipe(Resume.arming(conversation))
 *
 * const waking = Effect.flatMap(Resume.Resume, ({ wakeups }) =>
 *   wakeups.pipe(
 *     Stream.mapEffect(({ conversation, sentence }) => Effect.ignore(goOn(conversation, sentence)), {
 *       concurrency: "unbounded"
 *     }),
 *     Stream.runDrain
 *   ))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const arming: {
  (conversation: string): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Resume>
  <A, E, R>(self: Effect.Effect<A, E, R>, conversation: string): Effect.Effect<A, E, R | Resume>
} = dual(
  2,
  <A, E, R>(self: Effect.Effect<A, E, R>, conversation: string): Effect.Effect<A, E, R | Resume> =>
    Effect.flatMap(Resume, (resume) =>
      self.pipe(
        Effect.tap(() => resume.disarm(conversation)),
        Effect.tapError((error) =>
          Option.match(Fault.fromAiError(error), {
            onNone: () => Effect.void,
            onSome: (fault) => resume.arm(conversation, fault)
          })
        )
      ))
)
