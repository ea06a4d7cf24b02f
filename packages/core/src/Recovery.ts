/**
 * Does what a fault's remedy says: retries a call under a policy, and gives the last fault back when there is nothing more to
 * do.
 *
 * The error channel keeps its type. What is no fault passes through untouched; there is no error for retries that are
 * exhausted, only the last fault with its count of attempts. The first attempt runs bare: nothing is recorded of a call that
 * succeeds at once, unless somebody listens.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { dual } from "effect/Function"
import * as LogLevel from "effect/LogLevel"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import type * as Schedule from "effect/Schedule"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleIntervals from "effect/ScheduleIntervals"
import * as Tracer from "effect/Tracer"
import * as Attempt from "./Attempt.ts"
import * as Diagnosis from "./Diagnosis.ts"
import * as Fault from "./Fault.ts"
import * as Hold from "./Hold.ts"
import * as Remedy from "./Remedy.ts"
import { RetryBudget } from "./RetryBudget.ts"
import * as RetryPolicy from "./RetryPolicy.ts"

// --- events ------------------------------------------------------------------------------------------------------------

/**
 * Why a fault was given back: its kind, a reset past the policy's patience, a tier that is spent, the total time, or the
 * budget.
 *
 * @category models
 * @since 0.1.0
 */
export type Because = RetryPolicy.Ended | "budget"

/**
 * What happens to a call, as it happens.
 *
 * `Failed.attempts` is how many attempts the fault stands for: more than 1 where a recovery or an SDK below has retried, which
 * then count in the tier as if they had been made here. `Cut` is an answer that ends before it was finished, of which a part was
 * shown; see `StreamRecovery`. `Interrupted` says where the interruption struck.
 *
 * @category models
 * @since 0.1.0
 */
export type Event =
  | { readonly _tag: "Started"; readonly attempt: number }
  | { readonly _tag: "Failed"; readonly attempt: number; readonly fault: Fault.Fault; readonly attempts: number }
  | {
    readonly _tag: "Retrying"
    readonly attempt: number
    readonly fault: Fault.Fault
    readonly tier: string
    readonly wait: Duration.Duration
    readonly named: boolean
  }
  | { readonly _tag: "Surfaced"; readonly attempt: number; readonly fault: Fault.Fault; readonly because: Because }
  | { readonly _tag: "Recovered"; readonly attempt: number }
  | { readonly _tag: "Cut"; readonly attempt: number; readonly cut: "Stalled"; readonly fault: Fault.Fault }
  | { readonly _tag: "Cut"; readonly attempt: number; readonly cut: "OutputCap"; readonly stopReason: string }
  | {
    readonly _tag: "Interrupted"
    readonly attempt: number
    readonly where: "attempt" | "backoff" | "gate" | "stream"
  }

/**
 * Who is told of every event of the recoveries in its scope; nobody by default. A listener runs in the fiber of the call, so
 * a slow one delays it.
 *
 * @category references
 * @since 0.1.0
 */
export class Listener extends Context.Reference<Listener>()("@recourse/core/Recovery/Listener", {
  defaultValue: (): ((event: Event) => Effect.Effect<void>) | undefined => undefined
}) {}

/**
 * Tells `listener` of every event of the recoveries inside.
 *
 * @example
 * ```ts
 * import { Recovery } from "@recourse/core"
 * import { Console, Effect } from "effect"
 *
 * const told = Effect.succeed("an answer").pipe(
 *   Recovery.recover(),
 *   Recovery.withListener((event) => Console.log(event._tag))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withListener: {
  (listener: (event: Event) => Effect.Effect<void>): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(self: Effect.Effect<A, E, R>, listener: (event: Event) => Effect.Effect<void>): Effect.Effect<A, E, R>
} = dual(
  2,
  <A, E, R>(self: Effect.Effect<A, E, R>, listener: (event: Event) => Effect.Effect<void>): Effect.Effect<A, E, R> =>
    Effect.provideService(self, Listener, listener)
)

// --- metrics -----------------------------------------------------------------------------------------------------------

const keys = {
  retries: MetricKey.counter("recourse_retries", { incremental: true }),
  surfaced: MetricKey.counter("recourse_surfaced", { incremental: true }),
  cuts: MetricKey.counter("recourse_cuts", { incremental: true }),
  waits: MetricKey.histogram(
    "recourse_wait_millis",
    MetricBoundaries.exponential({ start: 1, factor: 4, count: 16 })
  )
}

/**
 * How many retries were entered, by `tag` and `tier`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const retries: Metric.Metric.Counter<number> = Metric.fromMetricKey(keys.retries)

/**
 * How many faults were given back, by `tag` and `because`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const surfaced: Metric.Metric.Counter<number> = Metric.fromMetricKey(keys.surfaced)

/**
 * How many answers were cut after a part of them was shown, by `tag`, the fault's or `OutputCap`, and `cut`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const cuts: Metric.Metric.Counter<number> = Metric.fromMetricKey(keys.cuts)

/**
 * How long the waits were, in milliseconds, by `tag` and `tier`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const waits: Metric.Metric.Histogram<number> = Metric.fromMetricKey(keys.waits)

const labels = (tags: { readonly [name: string]: string }) =>
  Object.entries(tags).map(([name, value]) => MetricLabel.make(name, value))

// `Metric.tagged` looks its metric up by hash at every update; one that is made from its whole key is looked up once
const metricsFor = (tag: string, what: string) => ({
  retries: Metric.fromMetricKey(MetricKey.taggedWithLabels(keys.retries, labels({ tag, tier: what }))),
  waits: Metric.fromMetricKey(MetricKey.taggedWithLabels(keys.waits, labels({ tag, tier: what }))),
  surfaced: Metric.fromMetricKey(MetricKey.taggedWithLabels(keys.surfaced, labels({ tag, because: what }))),
  cuts: Metric.fromMetricKey(MetricKey.taggedWithLabels(keys.cuts, labels({ tag, cut: what })))
})

const made = new Map<string, Map<string, ReturnType<typeof metricsFor>>>()

/** The metrics of a tag and what became of it, made once for each pair: both come from short lists. */
const metricsOf = (tag: string, what: string): ReturnType<typeof metricsFor> => {
  const ofTag = made.get(tag) ?? new Map<string, ReturnType<typeof metricsFor>>()
  const known = ofTag.get(what)
  if (known !== undefined) return known
  const metrics = metricsFor(tag, what)
  if (ofTag.size < 64) made.set(tag, ofTag.set(what, metrics))
  return metrics
}

// --- the loop ----------------------------------------------------------------------------------------------------------

/**
 * How a call is recovered.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** `RetryPolicy.standard` by default. */
  readonly policy?: RetryPolicy.RetryPolicy
}

/**
 * How a call is recovered that shares what is known of refusals with every other call of its target.
 *
 * @category models
 * @since 0.1.0
 */
export interface Held extends Options {
  /** The account and the model that are asked. */
  readonly target: Hold.Target
  /**
   * What a refusal does to the call that its policy would wait out: `open`, the default, lets it through, and the provider's own
   * refusal is waited out; `wait` has it wait for the reset first, which costs no attempt.
   */
  readonly gate?: Hold.Call["gate"]
}

/**
 * How a call is recovered by itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface Free extends Options {
  readonly target?: undefined
  readonly gate?: undefined
}

type Tiers = { readonly [tier: string]: Schedule.Schedule<Fault.Fault, Fault.Fault> }

const tiersOf = new WeakMap<RetryPolicy.RetryPolicy, Tiers>()

/**
 * The schedules of a policy's tiers, made once for a policy. Unlike `RetryPolicy.schedule`, which must route whatever it is
 * handed, a call knows the tier from the remedy, and its total time begins with the first attempt.
 */
const schedulesOf = (policy: RetryPolicy.RetryPolicy): Tiers => {
  const known = tiersOf.get(policy)
  if (known !== undefined) return known
  const made = Record.map(policy.tiers, (tier) => RetryPolicy.tierSchedule(tier, policy))
  tiersOf.set(policy, made)
  return made
}

/** How often a wait for an instant looks at the wall clock again, in milliseconds. */
const LOOK = 5_000

/** Waits until the wall clock shows an instant, however it is set meanwhile. */
const sleepUntil = (clock: Clock.Clock, until: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const left = until - clock.unsafeCurrentTimeMillis()
    return left <= 0
      ? Effect.void
      : left <= LOOK
      ? Effect.flatMap(clock.sleep(Duration.millis(left)), () => sleepUntil(clock, until))
      : Effect.flatMap(clock.sleep(Duration.millis(LOOK)), () => sleepUntil(clock, until))
  })

/** One call that has failed at least once. */
interface Call<A, E, R> {
  readonly self: Effect.Effect<A, E, R>
  /** Where an interruption would strike while an attempt is made. */
  readonly where: () => "attempt" | "gate"
  /** What an attempt around this call is told when this one is admitted. */
  readonly admitted: Effect.Effect<void>
  readonly policy: RetryPolicy.RetryPolicy
  readonly clock: Clock.Clock
  readonly listener: Context.Tag.Service<Listener>
  readonly budget: Context.Tag.Service<RetryBudget>
  /** When the first attempt began, on the clock that nobody sets. */
  readonly began: bigint
  /** Whether an attempt that succeeds has but begun to answer: whoever reads on says when it is over. */
  readonly streamed: boolean
  /** Attempts that were made here. */
  attempt: number
  /** Those, and the ones that were made below for them. */
  made: number
  /** The state of each tier's schedule that has stepped. */
  states: { readonly [tier: string]: unknown }
  /** What the last retry took from the budget. */
  taken: number
}

const elapsed = ({ began, clock }: { readonly began: bigint; readonly clock: Clock.Clock }): number =>
  Number(clock.unsafeCurrentTimeNanos() - began) / 1e6

/** The event of an interruption that strikes in `self`, where somebody listens. */
const watched = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  listener: Context.Tag.Service<Listener>,
  attempt: number,
  where: () => Extract<Event, { readonly _tag: "Interrupted" }>["where"]
): Effect.Effect<A, E, R> =>
  listener === undefined
    ? self
    : Effect.onInterrupt(self, () => listener({ _tag: "Interrupted", attempt, where: where() }))

/** A span event, a metric and a line of the debug log, none of which holds more than the readout; and then what follows. */
const recorded = <A, E, R>(
  of: { readonly _tag: string; readonly message: string },
  made: number,
  what:
    | { readonly tier: string; readonly wait: number }
    | { readonly because: Because }
    | { readonly cut: "Stalled" | "OutputCap" },
  then: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => {
    const tag = of._tag
    const labels = fiber.getFiberRef(FiberRef.currentMetricLabels)
    const span = Context.getOption(fiber.currentContext, Tracer.ParentSpan)
    if ("tier" in what) {
      const metrics = metricsOf(tag, what.tier)
      metrics.retries.unsafeUpdate(1, labels)
      metrics.waits.unsafeUpdate(what.wait, labels)
    } else if ("cut" in what) metricsOf(tag, what.cut).cuts.unsafeUpdate(1, labels)
    else metricsOf(tag, what.because).surfaced.unsafeUpdate(1, labels)
    if (Option.isSome(span) && span.value._tag === "Span") {
      const now = Context.get(fiber.currentDefaultServices, Clock.Clock).unsafeCurrentTimeNanos()
      span.value.event(
        "tier" in what ? "recourse.retry" : "cut" in what ? "recourse.cut" : "recourse.surfaced",
        now,
        { tag, ...what }
      )
      span.value.attribute("recourse.attempts", made)
    }
    return !("because" in what) &&
        LogLevel.lessThanEqual(fiber.getFiberRef(FiberRef.currentMinimumLogLevel), LogLevel.Debug)
      ? Effect.flatMap(
        Effect.logDebug(
          // a sentence is made of a fault only where somebody reads it
          `${of.message} ${
            "tier" in what
              ? `Retrying in tier ${what.tier} after ${Math.round(what.wait)} ms.`
              : "The answer ends with what was shown of it."
          }`
        ),
        then
      )
      : then()
  })

const surface = <A, E, R>(
  { attempt, listener, made }: Call<A, E, R>,
  fault: E & Fault.Fault,
  because: Because
): Effect.Effect<never, E> => {
  const last = made === fault.attempts ? fault : Fault.withAttempts(fault, made)
  return recorded(fault, made, { because }, () =>
    listener === undefined
      ? Effect.fail(last)
      : Effect.zipRight(listener({ _tag: "Surfaced", attempt, fault: last, because }), Effect.fail(last)))
}

/** What follows where a policy has another attempt left. */
type Then<A, E, R> = (
  call: Call<A, E, R>,
  fault: E & Fault.Fault,
  remedy: Remedy.Retry,
  now: number,
  wait: number
) => Effect.Effect<A, E, R>

const failed = <A, E, R>(
  call: Call<A, E, R>,
  fault: E & Fault.Fault,
  then: Then<A, E, R> = paid
): Effect.Effect<A, E, R> => {
  // an answer of a hold was never sent, and stands for no attempt
  call.made += fault.attempts
  return call.listener === undefined
    ? decide(call, fault, then)
    : Effect.zipRight(
      call.listener({ _tag: "Failed", attempt: call.attempt, fault, attempts: fault.attempts }),
      decide(call, fault, then)
    )
}

const decide = <A, E, R>(
  call: Call<A, E, R>,
  fault: E & Fault.Fault,
  then: Then<A, E, R>
): Effect.Effect<A, E, R> => {
  const remedy = Remedy.fromFault(fault, call.policy)
  if (remedy._tag !== "Retry") return surface(call, fault, remedy._tag === "Defer" ? "deferred" : "tag")
  const { tier } = remedy
  const schedule = schedulesOf(call.policy)[tier]
  if (schedule === undefined) return surface(call, fault, "tag")
  const now = call.clock.unsafeCurrentTimeMillis()
  const state = Object.hasOwn(call.states, tier) ? call.states[tier] : schedule.initial
  return Effect.flatMap(schedule.step(now, fault, state), ([next, , decision]) => {
    call.states = { ...call.states, [tier]: next }
    if (ScheduleDecision.isDone(decision)) return surface(call, fault, "tier")
    const wait = Math.max(0, ScheduleIntervals.start(decision.intervals) - now)
    const { within } = call.policy
    if (Option.isSome(within) && elapsed(call) + wait > Duration.toMillis(within.value)) {
      return surface(call, fault, "time")
    }
    return then(call, fault, remedy, now, wait)
  })
}

/** Another attempt, if the budget has one. */
const paid = <A, E, R>(
  call: Call<A, E, R>,
  fault: E & Fault.Fault,
  remedy: Remedy.Retry,
  now: number,
  wait: number
): Effect.Effect<A, E, R> =>
  call.budget === undefined
    ? again(call, fault, remedy, now, wait)
    : Effect.flatMap(call.budget.take(fault), (taken) => {
      call.taken = taken
      return taken === 0 ? surface(call, fault, "budget") : again(call, fault, remedy, now, wait)
    })

const backoff = () => "backoff" as const

const again = <A, E, R>(
  call: Call<A, E, R>,
  fault: E & Fault.Fault,
  remedy: Remedy.Retry,
  now: number,
  wait: number
): Effect.Effect<A, E, R> => {
  const { attempt, clock, listener } = call
  const named = Option.getOrUndefined(remedy.wait)
  // an instant that was not cut ends by the wall clock, everything else by the time that passes
  const byWall = named?.reset.named === "instant" && named.millis === named.reset.waitMillis
  const next = (): Effect.Effect<A, E, R> => {
    call.attempt += 1
    return attempted(call, fault)
  }
  const rest = (): Effect.Effect<A, E, R> =>
    wait === 0
      ? next()
      : Effect.flatMap(
        watched(
          byWall ? sleepUntil(clock, now + wait) : clock.sleep(Duration.millis(wait)),
          listener,
          attempt,
          backoff
        ),
        next
      )
  return recorded(fault, call.made, { tier: remedy.tier, wait }, () =>
    listener === undefined ? rest() : Effect.flatMap(
      listener({
        _tag: "Retrying",
        attempt,
        fault,
        tier: remedy.tier,
        wait: Duration.millis(wait),
        named: named !== undefined
      }),
      rest
    ))
}

/** What a success gives back, and who is told of it. */
const succeeded = <A, E, R>({ attempt, budget, listener, taken }: Call<A, E, R>): Effect.Effect<void> =>
  Effect.zipRight(
    budget === undefined ? Effect.void : budget.give(taken),
    listener === undefined || attempt === 1 ? Effect.void : listener({ _tag: "Recovered", attempt })
  )

const attempted = <A, E, R>(call: Call<A, E, R>, replaced: Fault.Fault): Effect.Effect<A, E, R> => {
  const { attempt, listener } = call
  const is = { number: attempt, replaces: Option.some(replaced), admitted: call.admitted }
  const run = listener === undefined
    ? tried(call)
    : Effect.zipRight(listener({ _tag: "Started", attempt }), tried(call))
  // a region that puts the context back costs as much as all else of a retry: those after the first one share its own,
  // but for an answer that streams, which is handed on between them
  return attempt === 2 || call.streamed
    ? Effect.provideService(run, Attempt.Attempt, is)
    : Effect.zipRight(FiberRef.update(FiberRef.currentContext, Context.add(Attempt.Attempt, is)), run)
}

const tried = <A, E, R>(call: Call<A, E, R>): Effect.Effect<A, E, R> => {
  const { attempt, budget, listener } = call
  const onFailure = (error: E): Effect.Effect<A, E, R> =>
    Fault.isFault(error) ? failed(call, error) : Effect.fail(error)
  if (listener === undefined && budget === undefined) return Effect.catchAll(call.self, onFailure)
  const recovered = call.streamed ? Effect.void : succeeded(call)
  return Effect.matchEffect(watched(call.self, listener, attempt, call.where), {
    onFailure,
    onSuccess: (answer) => Effect.as(recovered, answer)
  })
}

const here = () => "attempt" as const

// a call keeps its place at every gate: that of its beginning
let calls = 0

/** A call as a hold sees it, and where its attempts are made from then on. */
const beneath = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  hold: Context.Tag.Service<typeof Hold.Hold>,
  { gate = "open", target }: Held,
  policy: RetryPolicy.RetryPolicy,
  order: number,
  began: bigint
): { readonly self: Effect.Effect<A, E | Fault.Fault, R>; readonly where: () => "attempt" | "gate" } => {
  let waits = false
  const through = hold.through(self, {
    target,
    policy,
    gate,
    order,
    deadline: Option.isNone(policy.within)
      ? Number.POSITIVE_INFINITY
      : Number(began) / 1e6 + Duration.toMillis(policy.within.value),
    onGate: (now) => {
      waits = now
    }
  })
  return { self: through, where: () => waits ? "gate" : "attempt" }
}

/** A reference where somebody has set it; every call passes here, and few have: the look-up of a default is the slower one. */
const given = <I, S>(context: Context.Context<never>, reference: Context.Reference<I, S>, otherwise: S): S =>
  context.unsafeMap.has(reference.key) ? Context.get(context, reference) : otherwise

/** The first attempt: bare, unless somebody listens, keeps a budget or holds the target. */
const start = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  policy: RetryPolicy.RetryPolicy,
  shared: Held | undefined
): Effect.Effect<A, E | Fault.Fault, R | Hold.Hold> =>
  Effect.withFiberRuntime((fiber) => {
    const context = fiber.currentContext
    const listener = given(context, Listener, undefined)
    const budget = given(context, RetryBudget, undefined)
    const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    const began = clock.unsafeCurrentTimeNanos()
    const hold = shared === undefined ? undefined : Context.unsafeGet(context, Hold.Hold)
    const order = shared === undefined ? 0 : calls++
    // where nobody is refused, what comes of the attempt is all that matters
    const free = shared === undefined || hold === undefined || hold.isFree(shared.target)
    const learnt = hold === undefined ? 0 : hold.learnt()
    const first = free ? undefined : beneath(self, hold, shared, policy, order, began)
    const made = first === undefined ? self : first.self
    // a recovery inside an attempt of another one begins its own count
    const around = given(context, Attempt.Attempt, Attempt.first)
    const bare = around === Attempt.first
      ? made
      : Effect.provideService(made, Attempt.Attempt, { ...Attempt.first, admitted: around.admitted })
    const onFailure = (error: E | Fault.Fault): Effect.Effect<A, E | Fault.Fault, R> => {
      if (!Fault.isFault(error)) return Effect.fail(error)
      const next = first ??
        (shared === undefined || hold === undefined
          ? { self, where: here }
          : beneath(self, hold, shared, policy, order, began))
      const call: Call<A, E | Fault.Fault, R> = {
        self: next.self,
        where: next.where,
        admitted: around.admitted,
        policy,
        clock,
        listener,
        budget,
        began,
        streamed: false,
        attempt: 1,
        made: 0,
        states: {},
        taken: 0
      }
      return free && shared !== undefined && hold !== undefined
        ? Effect.zipRight(hold.settle(shared.target, error), failed(call, error))
        : failed(call, error)
    }
    const attempt = watched(bare, listener, 1, first === undefined ? here : first.where)
    const run = budget === undefined && hold === undefined
      ? Effect.catchAll(attempt, onFailure)
      : Effect.matchEffect(attempt, {
        onFailure,
        onSuccess: (answer) => {
          const given = budget === undefined ? Effect.succeed(answer) : Effect.as(budget.give(0), answer)
          if (!free || shared === undefined || hold === undefined) return given
          if (hold.learnt() === learnt || hold.isFree(shared.target)) return given
          // by the wall clock, as refusals are, and rather too early than too late
          const at = Math.floor(clock.unsafeCurrentTimeMillis() - elapsed({ began, clock }))
          return Effect.zipRight(hold.succeeded(shared.target, at), given)
        }
      })
    return listener === undefined ? run : Effect.zipRight(listener({ _tag: "Started", attempt: 1 }), run)
  })

/**
 * @internal A call whose answer goes on after an attempt has succeeded: that attempt has but begun to answer, and may still fail.
 */
export interface Begun<A, E, R> {
  /** The attempt that is made, or was. */
  readonly attempt: () => number
  /** Makes the first attempt, and others as long as they fail. */
  readonly first: Effect.Effect<A, E, R>
  /** The attempt has failed after all: makes another one, or fails. */
  readonly again: (fault: E & Fault.Fault) => Effect.Effect<A, E, R>
  /** The attempt has failed after all, and there must not be another one: gives the fault where there would have been, else fails. */
  readonly stalled: (fault: E & Fault.Fault) => Effect.Effect<Fault.Fault, E>
  /** The answer was as long as its cap. */
  readonly capped: (stopReason: string) => Effect.Effect<void>
  /** The answer is whole. */
  readonly over: Effect.Effect<void>
  readonly interrupted: Effect.Effect<void>
}

/** @internal */
export const begun = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  policy: RetryPolicy.RetryPolicy,
  shared: Held | undefined
): Effect.Effect<Begun<A, E | Fault.Fault, R>, never, Hold.Hold> =>
  Effect.withFiberRuntime((fiber) => {
    const context = fiber.currentContext
    const listener = Context.get(context, Listener)
    const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    const began = clock.unsafeCurrentTimeNanos()
    const hold = shared === undefined ? undefined : Context.unsafeGet(context, Hold.Hold)
    const around = Context.get(context, Attempt.Attempt)
    const where: ReturnType<typeof beneath<A, E, R>> = shared === undefined || hold === undefined
      ? { self, where: here }
      : beneath(self, hold, shared, policy, calls++, began)
    const call: Call<A, E | Fault.Fault, R> = {
      ...where,
      admitted: around.admitted,
      policy,
      clock,
      listener,
      budget: Context.get(context, RetryBudget),
      began,
      streamed: true,
      attempt: 1,
      made: 0,
      states: {},
      taken: 0
    }
    const settled = (fault: Fault.Fault): Effect.Effect<void> =>
      shared === undefined || hold === undefined ? Effect.void : hold.settle(shared.target, fault)
    const tell = (event: Event): Effect.Effect<void> => listener === undefined ? Effect.void : listener(event)
    const cut = (made: number, fault: Fault.Fault): Effect.Effect<Fault.Fault> => {
      const last = Fault.withAttempts(fault, made)
      return recorded(last, made, { cut: "Stalled" }, () =>
        Effect.as(tell({ _tag: "Cut", attempt: call.attempt, cut: "Stalled", fault: last }), last))
    }
    return Effect.succeed({
      attempt: () =>
        call.attempt,
      first: Effect.suspend(() =>
        Effect.zipRight(
          tell({ _tag: "Started", attempt: 1 }),
          Effect.catchAll(
            Effect.provideService(watched(call.self, listener, 1, call.where), Attempt.Attempt, {
              ...Attempt.first,
              admitted: around.admitted
            }),
            (error): Effect.Effect<A, E | Fault.Fault, R> =>
              Fault.isFault(error) ? failed(call, error) : Effect.fail(error)
          )
        )
      ),
      again: (fault) =>
        Effect.zipRight(settled(fault), failed(call, fault)),
      stalled: (fault) => {
        const ended: Call<Fault.Fault, E | Fault.Fault, never> = { ...call, self: Effect.succeed(fault) }
        return Effect.zipRight(
          settled(fault),
          failed(ended, fault, ({ made }, fault) =>
            cut(made, fault))
        )
      },
      capped: (stopReason) =>
        recorded(
          { _tag: "OutputCap", message: `The answer reached its output cap (${stopReason}).` },
          call.made + 1,
          { cut: "OutputCap" },
          () => tell({ _tag: "Cut", attempt: call.attempt, cut: "OutputCap", stopReason })
        ),
      over: Effect.suspend(() => succeeded(call)),
      interrupted: Effect.suspend(() => tell({ _tag: "Interrupted", attempt: call.attempt, where: "stream" }))
    })
  })

/**
 * Makes a call again as long as its faults are worth it under the policy, and waits as long as the remedy says. It retries
 * only what the remedy retries, gives the last fault back unchanged but for its `attempts`, and lets everything that is no
 * fault pass with its type. Nothing runs after an interruption, and a sleeping call is interrupted at once.
 *
 * A named instant is waited for by the wall clock, looked at every 5 s; every other wait ends by the time that passes. The
 * policy's total time begins with the first attempt: no attempt begins after it, and no wait is entered that would pass it.
 * A fault that stands for several attempts, because a recovery or an SDK inside has retried, counts for as many, so nested
 * recoveries do not multiply.
 *
 * Naming a `target` brings `Hold` into the requirements, and a fault into the errors: a refusal of that account or model, which
 * another call has met, may answer for this one.
 *
 * From the first failure on, each retry and each fault that is given back leaves a metric, an event on the current span, and
 * each retry one line of the debug log.
 *
 * @example
 * ```ts
 * import { Diagnosis, Recovery, RetryPolicy } from "@recourse/core"
 * import { Effect } from "effect"
 *
 * const call = Effect.fail(Diagnosis.fromResponse({ status: 529 }, { received: Date.now() }))
 * const recovered = call.pipe(
 *   Recovery.recover({ policy: RetryPolicy.brisk }),
 *   Effect.catchTag("ContextOverflowed", () => Effect.succeed("compacted"))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const recover: {
  (options: Held): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Fault.Fault, R | Hold.Hold>
  (options?: Free): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(self: Effect.Effect<A, E, R>, options: Held): Effect.Effect<A, E | Fault.Fault, R | Hold.Hold>
  <A, E, R>(self: Effect.Effect<A, E, R>, options?: Free): Effect.Effect<A, E, R>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
    options: Held | Free = {}
  ): Effect.Effect<A, E | Fault.Fault, R | Hold.Hold> =>
    start(self, options.policy ?? RetryPolicy.standard, options.target === undefined ? undefined : options)
)

/**
 * A call that fails with anything at all, as one that fails with faults: each error is diagnosed when it is met. A fault stays
 * as it is.
 *
 * @example
 * ```ts
 * import { Recovery } from "@recourse/core"
 * import { Effect } from "effect"
 *
 * const call = Effect.tryPromise({ try: () => Promise.reject(new Error("socket hang up")), catch: (error) => error })
 * const recovered = call.pipe(Recovery.read, Recovery.recover())
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const read = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, Fault.Fault, R> =>
  Effect.catchAll(
    self,
    (error) =>
      Effect.flatMap(Clock.currentTimeMillis, (received) => Effect.fail(Diagnosis.fromUnknown(error, { received })))
  )
