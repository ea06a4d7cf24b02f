/**
 * How a call is retried: which tags share which tier, how each tier paces itself, and how long a named wait may be. A
 * policy is data; `schedule` makes it a `Schedule` that any `Effect.retry` takes, `timeline` says beforehand what it does.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleIntervals from "effect/ScheduleIntervals"
import * as Struct from "effect/Struct"
import * as Fault from "./Fault.ts"
import * as Remedy from "./Remedy.ts"

/**
 * How a computed wait is spread: a factor drawn evenly between `low` and `high` multiplies it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Jitter {
  readonly low: number
  readonly high: number
}

/**
 * The computed wait itself. Callers that failed together ask again together.
 *
 * @category jitter
 * @since 0.1.0
 */
export const none: Jitter = { low: 1, high: 1 }

/**
 * Anything from nothing to the computed wait.
 *
 * @category jitter
 * @since 0.1.0
 */
export const full: Jitter = { low: 0, high: 1 }

/**
 * At least half of the computed wait.
 *
 * @category jitter
 * @since 0.1.0
 */
export const equal: Jitter = { low: 0.5, high: 1 }

/**
 * The computed wait and up to `most` of it on top.
 *
 * @category jitter
 * @since 0.1.0
 */
export const additive = (most: number): Jitter => ({ low: 1, high: 1 + most })

/**
 * A counter and a curve, shared by every tag that is mapped to it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tier {
  /** How often a call is made in all, the first time included, if only this tier's faults meet it. */
  readonly attempts: number
  readonly base: Duration.Duration
  readonly factor: number
  readonly ceiling: Duration.Duration
  readonly jitter: Jitter
  /** Whether a named wait `replaces` the curve or is waited `atLeast` as long as the curve says. */
  readonly wait: "replaces" | "atLeast"
}

/**
 * A whole policy: the terms that a remedy needs, and the tiers and the total time that a schedule needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryPolicy extends Remedy.Terms {
  /** No attempt begins and no wait is entered that would pass this. */
  readonly within: Option.Option<Duration.Duration>
  readonly tiers: { readonly [tier: string]: Tier }
}

const tier = (
  attempts: number,
  base: Duration.DurationInput,
  ceiling: Duration.DurationInput,
  jitter: Jitter
): Tier => ({
  attempts,
  base: Duration.decode(base),
  factor: 2,
  ceiling: Duration.decode(ceiling),
  jitter,
  wait: "replaces"
})

const atOnce = (attempts: number): Tier => ({ ...tier(attempts, 0, 0, none), factor: 1 })

const tierOf = {
  RateLimited: "refused",
  Overloaded: "transient",
  Unavailable: "transient",
  Unreachable: "transient",
  TimedOut: "transient",
  StreamCut: "transient",
  GenerationMalformed: "malformed"
}

/**
 * The default of every door. Waits out a minute's window in place, defers anything longer, and gives up after five
 * minutes.
 *
 * @category policies
 * @since 0.1.0
 */
export const standard: RetryPolicy = {
  patience: Duration.seconds(75),
  beyond: "defer",
  within: Option.some(Duration.minutes(5)),
  tierOf,
  tiers: {
    transient: tier(4, "1 second", "15 seconds", equal),
    refused: tier(6, "2 seconds", "30 seconds", equal),
    malformed: atOnce(3)
  }
}

/**
 * For a person who waits: short curves, and nothing longer than 30 s is waited in place. The numbers are exarch's; its
 * classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const brisk: RetryPolicy = {
  patience: Duration.seconds(30),
  beyond: "defer",
  within: Option.none(),
  tierOf,
  tiers: {
    transient: tier(3, "750 millis", "8 seconds", full),
    refused: tier(6, "750 millis", "30 seconds", full),
    malformed: atOnce(3)
  }
}

const only = tier(10, "1 second", "32 seconds", additive(0.25))

/**
 * For work that nobody waits for: ten attempts over 159 s of curve, and any named wait that a timer can reach. A longer
 * one counts as not named. The numbers are apache/maka's; its classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const persistent: RetryPolicy = {
  patience: Duration.millis(2 ** 31 - 1),
  beyond: "ignore",
  within: Option.none(),
  tierOf: {
    RateLimited: "transient",
    Overloaded: "transient",
    Unavailable: "transient",
    Unreachable: "transient",
    TimedOut: "transient",
    StreamCut: "transient"
  },
  tiers: { transient: only }
}

/**
 * For a provider that punishes haste: the curve is a floor under every named wait, a wait of over a minute is cut to
 * one, and a timeout is surfaced, since it may be a request that is too large. Seven requests at most. The numbers are
 * kaibo's; its classification is not reproduced.
 *
 * @category policies
 * @since 0.1.0
 */
export const cautious: RetryPolicy = {
  patience: Duration.seconds(60),
  beyond: "clamp",
  within: Option.none(),
  tierOf: {
    RateLimited: "transient",
    Overloaded: "transient",
    Unavailable: "transient",
    Unreachable: "transient",
    StreamCut: "transient",
    GenerationMalformed: "malformed"
  },
  tiers: {
    transient: { ...tier(5, "1 second", "60 seconds", full), wait: "atLeast" },
    malformed: atOnce(3)
  }
}

// --- your own ----------------------------------------------------------------------------------------------------------

/** The longest wait that a timer of the platform can reach: 2^31−1 ms. */
const REACH = 2 ** 31 - 1
/** No call is made more often than this; a schedule that never ends is a storm that waits for its day. */
const MOST = 1_000

/**
 * A setting that no policy can have: which, and what would mend it.
 *
 * @category errors
 * @since 0.1.0
 */
export class PolicyInvalid extends Data.TaggedError("PolicyInvalid")<{
  readonly field: string
  readonly mend: string
}> {
  override get message(): string {
    return `${this.field}: ${this.mend}`
  }
}

/**
 * A tier as it is written down.
 *
 * @category models
 * @since 0.1.0
 */
export interface TierOptions {
  /** How often a call is made in all, the first time included: 1 to 1,000. */
  readonly attempts: number
  /** The first computed wait. */
  readonly base: Duration.DurationInput
  /** By which each wait is longer than the one before, at least 1; 2 by default. */
  readonly factor?: number
  /** The longest computed wait before jitter, at least the base. */
  readonly ceiling: Duration.DurationInput
  /** `equal` by default. */
  readonly jitter?: Jitter
  /** `replaces` by default. */
  readonly wait?: Tier["wait"]
}

/**
 * A policy as it is written down.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The longest named wait that is waited in place, at most 2^31−1 ms; 75 seconds by default. */
  readonly patience?: Duration.DurationInput
  /** What to do with a longer one; `defer` by default. */
  readonly beyond?: RetryPolicy["beyond"]
  /** The total time; none by default. */
  readonly within?: Duration.DurationInput
  readonly tiers: { readonly [tier: string]: TierOptions }
  /** The tier of each tag that is retried; a tag that is left out is surfaced. */
  readonly tierOf: Remedy.Terms["tierOf"]
}

const invalid = (field: string, mend: string): Either.Either<never, PolicyInvalid> =>
  Either.left(new PolicyInvalid({ field, mend }))

/** Milliseconds of a duration that is finite and not negative; `Duration` alone takes NaN for zero. */
const millisOf = (
  field: string,
  input: Duration.DurationInput,
  most: number
): Either.Either<Duration.Duration, PolicyInvalid> => {
  if (typeof input === "number" && !(input >= 0)) return invalid(field, `a duration is not negative, and not ${input}`)
  const duration = Duration.decodeUnknown(input)
  if (Option.isNone(duration)) return invalid(field, "not a duration; write \"30 seconds\" or a number of milliseconds")
  const millis = Duration.toMillis(duration.value)
  return Number.isFinite(millis) && millis <= most
    ? Either.right(duration.value)
    : invalid(field, `at most ${most} ms, which is as far as a timer reaches`)
}

const tierFrom = (name: string, options: TierOptions): Either.Either<Tier, PolicyInvalid> =>
  Either.gen(function*() {
    const field = (key: string) => `tiers.${name}.${key}`
    const { attempts, factor = 2, jitter = equal, wait = "replaces" } = options
    if (!Number.isInteger(attempts) || attempts < 1 || attempts > MOST) {
      return yield* invalid(field("attempts"), `a whole number from 1, which never retries, to ${MOST}`)
    }
    if (!(factor >= 1 && factor <= 1_000)) return yield* invalid(field("factor"), "from 1, for even waits, to 1000")
    if (!(jitter.low >= 0 && jitter.low <= jitter.high && jitter.high <= 10)) {
      return yield* invalid(field("jitter"), "low and high are factors, 0 at least and 10 at most, low first")
    }
    if (wait !== "replaces" && wait !== "atLeast") return yield* invalid(field("wait"), "replaces or atLeast")
    const base = yield* millisOf(field("base"), options.base, REACH)
    const ceiling = yield* millisOf(field("ceiling"), options.ceiling, REACH / Math.max(1, jitter.high))
    if (Duration.lessThan(ceiling, base)) return yield* invalid(field("ceiling"), "not below the base")
    return { attempts, base, factor, ceiling, jitter, wait }
  })

/**
 * A policy of your own, or which of its settings cannot be. Its schedule always ends.
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@recourse/core"
 * import { Either } from "effect"
 *
 * const patient = RetryPolicy.make({
 *   patience: "10 minutes",
 *   tiers: { only: { attempts: 8, base: "2 seconds", ceiling: "1 minute" } },
 *   tierOf: { RateLimited: "only", Overloaded: "only" }
 * }).pipe(Either.getOrThrow)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Either.Either<RetryPolicy, PolicyInvalid> =>
  Either.gen(function*() {
    const { beyond = "defer", tierOf } = options
    const patience = yield* millisOf("patience", options.patience ?? "75 seconds", REACH)
    const within = options.within === undefined
      ? Option.none()
      : Option.some(yield* millisOf("within", options.within, Number.MAX_SAFE_INTEGER))
    if (Option.isSome(within) && Duration.equals(within.value, Duration.zero)) {
      return yield* invalid("within", "longer than nothing, or left out for no limit")
    }
    if (beyond !== "defer" && beyond !== "clamp" && beyond !== "ignore") {
      return yield* invalid("beyond", "defer, clamp or ignore")
    }
    const tiers: { [tier: string]: Tier } = {}
    for (const [name, tier] of Object.entries(options.tiers)) tiers[name] = yield* tierFrom(name, tier)
    for (const [tag, tier] of Object.entries(tierOf)) {
      if (!Fault.isRetryable(tag)) {
        return yield* invalid(`tierOf.${tag}`, "not a tag that a retry can help; leave it out")
      }
      if (tier !== undefined && !Object.hasOwn(tiers, tier)) {
        return yield* invalid(`tierOf.${tag}`, `there is no tier ${tier}; name one of ${Object.keys(tiers).join(", ")}`)
      }
    }
    return { patience, beyond, within, tierOf, tiers }
  })

const named = { standard, brisk, persistent, cautious }

const jitters: { readonly [name: string]: Jitter } = { none, full, equal }

const jitterFrom = (text: string): Either.Either<Jitter, ConfigError.ConfigError> => {
  const most = /^additive:(\d*\.?\d+)$/.exec(text)?.[1]
  const found = most === undefined ? jitters[text] : additive(Number(most))
  return found === undefined
    ? Either.left(ConfigError.InvalidData([], "none, full, equal or additive:0.25"))
    : Either.right(found)
}

const tierConfig = (name: string) =>
  Config.nested(
    Config.all({
      attempts: Config.option(Config.integer("ATTEMPTS")),
      base: Config.option(Config.duration("BASE")),
      factor: Config.option(Config.number("FACTOR")),
      ceiling: Config.option(Config.duration("CEILING")),
      jitter: Config.option(Config.mapOrFail(Config.string("JITTER"), jitterFrom)),
      wait: Config.option(Config.literal("replaces", "atLeast")("WAIT"))
    }),
    name.toUpperCase()
  )

/** What of the settings is set. */
const set = <A extends object>(settings: { readonly [K in keyof A]: Option.Option<A[K]> }): Partial<A> => {
  const found: Partial<A> = {}
  for (const key of Struct.keys(settings)) {
    const setting = settings[key]
    if (Option.isSome(setting)) found[key] = setting.value
  }
  return found
}

/**
 * A policy from the environment: a named one and what differs from it. With `RECOURSE` as its name it reads
 * `RECOURSE_POLICY` (`standard` if it is not set), `RECOURSE_PATIENCE`, `RECOURSE_BEYOND`, `RECOURSE_WITHIN`, and for each
 * tier of that policy `RECOURSE_REFUSED_ATTEMPTS`, `_BASE`, `_FACTOR`, `_CEILING`, `_JITTER` (`none`, `full`, `equal`,
 * `additive:0.25`) and `_WAIT`. What cannot be is refused by a `ConfigError` that names the field and the mend.
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@recourse/core"
 * import { ConfigProvider, Effect } from "effect"
 *
 * const environment = ConfigProvider.fromMap(
 *   new Map([["RECOURSE_POLICY", "brisk"], ["RECOURSE_REFUSED_ATTEMPTS", "9"]]),
 *   { pathDelim: "_" }
 * )
 * const policy = Effect.withConfigProvider(RetryPolicy.config("RECOURSE"), environment)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const config = (name: string): Config.Config<RetryPolicy> =>
  Config.nested(
    Config.all({
      policy: Config.withDefault(Config.literal("standard", "brisk", "persistent", "cautious")("POLICY"), "standard"),
      terms: Config.all({
        patience: Config.option(Config.duration("PATIENCE")),
        beyond: Config.option(Config.literal("defer", "clamp", "ignore")("BEYOND")),
        within: Config.option(Config.duration("WITHIN"))
      }),
      tiers: Config.all({
        transient: tierConfig("transient"),
        refused: tierConfig("refused"),
        malformed: tierConfig("malformed")
      })
    }).pipe(
      Config.mapOrFail(({ policy, terms, tiers }) => {
        const { within, ...base } = named[policy]
        const changed: { [tier: string]: TierOptions } = { ...base.tiers }
        for (const [tier, settings] of Object.entries(tiers)) {
          const changes = set<TierOptions>(settings)
          const before = base.tiers[tier]
          if (before !== undefined) changed[tier] = { ...before, ...changes }
          else if (Object.keys(changes).length > 0) {
            return Either.left(
              ConfigError.InvalidData([tier.toUpperCase()], `${policy} has no such tier; leave it out`)
            )
          }
        }
        return Either.mapLeft(
          make({
            ...base,
            ...Option.match(within, { onNone: () => ({}), onSome: (within) => ({ within }) }),
            ...set(terms),
            tiers: changed
          }),
          ({ field, mend }) =>
            ConfigError.InvalidData(field.split(".").slice(field.startsWith("tiers") ? 1 : 0), `${field}: ${mend}`)
        )
      })
    ),
    name
  )

// --- schedules ---------------------------------------------------------------------------------------------------------

/**
 * A schedule that hands each input to one of several, every one of which keeps its own state and counts only what it was
 * handed. An input that is routed to none of them ends it.
 *
 * It outputs what the chosen schedule put out, and nothing when it ends.
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@recourse/core"
 * import { Option, Schedule } from "effect"
 *
 * const byParity = RetryPolicy.routed(
 *   (n: number) => Option.some([n % 2 === 0 ? "even" : "odd", n] as const),
 *   { even: Schedule.recurs(2), odd: Schedule.recurs(5) }
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const routed = <In, K extends string, Routed, Out, R>(
  select: (input: In) => Option.Option<readonly [route: K, input: Routed]>,
  routes: { readonly [P in K]: Schedule.Schedule<Out, Routed, R> }
): Schedule.Schedule<Option.Option<Out>, In, R> =>
  Schedule.makeWithState(initialStates, (now, input: In, states: States) =>
    Option.match(select(input), {
      onNone: () => Effect.succeed([states, Option.none<Out>(), ScheduleDecision.done] as const),
      onSome: ([route, handed]) => {
        const chosen = routes[route]
        const state = Object.hasOwn(states, route) ? states[route] : chosen.initial
        return Effect.map(
          chosen.step(now, handed, state),
          ([next, out, decision]) => [{ ...states, [route]: next }, Option.some(out), decision] as const
        )
      }
    }))

type States = { readonly [route: string]: unknown }

const initialStates: States = {}

/**
 * The same schedule, ended before it would recur later than `limit` after its first step. Unlike `Schedule.upTo`, which
 * looks at the time that has passed, it looks ahead: no wait is entered that would pass the limit.
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@recourse/core"
 * import { Schedule } from "effect"
 *
 * // recurs after 1, 3, 7, 15 and 31 s; the wait that would end at 63 s is not entered
 * const minute = Schedule.exponential("1 second").pipe(RetryPolicy.within("1 minute"))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const within: {
  (limit: Duration.DurationInput): <Out, In, R>(self: Schedule.Schedule<Out, In, R>) => Schedule.Schedule<Out, In, R>
  <Out, In, R>(self: Schedule.Schedule<Out, In, R>, limit: Duration.DurationInput): Schedule.Schedule<Out, In, R>
} = dual(
  2,
  <Out, In, R>(self: Schedule.Schedule<Out, In, R>, limit: Duration.DurationInput): Schedule.Schedule<Out, In, R> => {
    const millis = Duration.toMillis(limit)
    const initial: readonly [began: number | undefined, state: unknown] = [undefined, self.initial]
    return Schedule.makeWithState(
      initial,
      (now, input: In, [began = now, state]) =>
        Effect.map(self.step(now, input, state), ([next, out, decision]) => [
          [began, next] as const,
          out,
          ScheduleDecision.isContinue(decision) && ScheduleIntervals.start(decision.intervals) - began > millis
            ? ScheduleDecision.done
            : decision
        ])
    )
  }
)

/**
 * The schedule of one tier: grow, cap, jitter, bound; then the named wait as an override. It must be handed only faults that
 * belong to the tier; `schedule` routes them.
 *
 * @category conversions
 * @since 0.1.0
 */
export const tierSchedule = (tier: Tier, terms: Remedy.Terms): Schedule.Schedule<Fault.Fault, Fault.Fault> => {
  // a curve that begins at its ceiling is a straight line
  const capped: Schedule.Schedule<unknown> = Duration.equals(tier.base, tier.ceiling)
    ? Schedule.spaced(tier.base)
    : Schedule.exponential(tier.base, tier.factor).pipe(
      Schedule.modifyDelay((_, delay) => Duration.min(delay, tier.ceiling))
    )
  const { high, low } = tier.jitter
  const curve: Schedule.Schedule<unknown, Fault.Fault> = low === 1 && high === 1
    ? capped
    : Schedule.jitteredWith(capped, { min: low, max: high })
  // a fault that stands for several attempts, because somebody below has retried, counts for as many
  const standsFor = (fault: Fault.Fault): number => Math.max(1, fault.attempts)
  return Schedule.passthrough(curve).pipe(
    Schedule.reduce(0, (before, fault) => before + standsFor(fault)),
    Schedule.check((fault, before) => before + standsFor(fault) < tier.attempts),
    Schedule.passthrough,
    Schedule.modifyDelayEffect((fault, delay) => {
      const remedy = Remedy.fromFault(fault, terms)
      if (remedy._tag !== "Retry" || Option.isNone(remedy.wait)) return Effect.succeed(delay)
      const until = fault.received.epochMillis + remedy.wait.value.millis
      return Effect.map(Clock.currentTimeMillis, (now) => {
        const left = Duration.millis(Math.max(0, until - now))
        return tier.wait === "atLeast" ? Duration.max(delay, left) : left
      })
    })
  )
}

/**
 * The policy as a `Schedule` for any plain `Effect.retry`, whatever else is in its error channel: an input that is no
 * fault ends it, and so does a fault whose remedy is to surface or to defer. Each tier grows, caps, jitters and bounds its
 * own waits; a named wait then overrides the computed one and ends at the reset, wherever the clock stands by then; the
 * total time is looked ahead to, counted from the first failure.
 *
 * It sleeps once for each wait, by the timer of the platform: a machine that slept meanwhile, or a wall clock that was set,
 * is noticed by `Recovery.recover` and not here. Time and chance come from Effect's `Clock` and `Random`, so a seed and a
 * test clock reproduce every wait.
 *
 * @example
 * ```ts
 * import { Diagnosis, RetryPolicy } from "@recourse/core"
 * import { Effect } from "effect"
 *
 * const call = Effect.fail(Diagnosis.fromResponse({ status: 529 }, { received: Date.now() }))
 * const patient = Effect.retry(call, RetryPolicy.schedule(RetryPolicy.standard))
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const schedule = (policy: RetryPolicy): Schedule.Schedule<Option.Option<Fault.Fault>> => {
  const tiers: { [tier: string]: Schedule.Schedule<Fault.Fault, Fault.Fault> } = {}
  for (const [name, tier] of Object.entries(policy.tiers)) tiers[name] = tierSchedule(tier, policy)
  const all = routed((input: unknown) => {
    if (!Fault.isFault(input)) return Option.none()
    const remedy = Remedy.fromFault(input, policy)
    return remedy._tag === "Retry" ? Option.some([remedy.tier, input] as const) : Option.none()
  }, tiers)
  return Option.match(policy.within, { onNone: () => all, onSome: (limit) => within(all, limit) })
}

// --- beforehand --------------------------------------------------------------------------------------------------------

/**
 * One wait of a timeline: between the fault and the attempt that replaces it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Step {
  readonly fault: Fault.Fault
  readonly tier: string
  /** Whether the provider named the wait; a computed one lies between its least and its most, as jitter has it. */
  readonly named: boolean
  readonly least: Duration.Duration
  readonly most: Duration.Duration
  /** When the next attempt begins, counted from the first failure, if attempts took no time. */
  readonly begins: { readonly least: Duration.Duration; readonly most: Duration.Duration }
}

/**
 * Why nothing follows a fault: its kind is surfaced, its reset is deferred, its tier is spent, or the total time is.
 *
 * @category models
 * @since 0.1.0
 */
export type Ended = "tag" | "deferred" | "tier" | "time"

/**
 * What a run of faults would bring.
 *
 * @category models
 * @since 0.1.0
 */
export interface Timeline {
  readonly steps: ReadonlyArray<Step>
  /** Why the last fault is given back; nothing if the run of faults is over and the next attempt answers. */
  readonly ended: Ended | undefined
}

const minMax = (tier: Tier, failures: number): readonly [least: number, most: number] => {
  const curve = Math.min(Duration.toMillis(tier.base) * tier.factor ** failures, Duration.toMillis(tier.ceiling))
  return [curve * tier.jitter.low, curve * tier.jitter.high]
}

/**
 * The waits that a run of faults would bring, each with its least and most under jitter. Pure: no clock, no chance; each
 * fault is taken as met at its instant of receipt, and attempts as taking no time. It ends where jitter could first make the
 * total time run out only if it does so at the least of all waits.
 *
 * @example
 * ```ts
 * import { Diagnosis, RetryPolicy } from "@recourse/core"
 *
 * const busy = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
 * RetryPolicy.timeline(RetryPolicy.brisk, [busy, busy, busy]).ended // "tier"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const timeline = (policy: RetryPolicy, faults: Iterable<Fault.Fault>): Timeline => {
  const steps: Array<Step> = []
  const made = new Map<string, number>()
  const failures = new Map<string, number>()
  let least = 0
  let most = 0
  for (const fault of faults) {
    const remedy = Remedy.fromFault(fault, policy)
    if (remedy._tag !== "Retry") return { steps, ended: remedy._tag === "Defer" ? "deferred" : "tag" }
    const tier = policy.tiers[remedy.tier]
    if (tier === undefined) return { steps, ended: "tag" }
    const attempts = (made.get(remedy.tier) ?? 0) + Math.max(1, fault.attempts)
    made.set(remedy.tier, attempts)
    if (attempts >= tier.attempts) return { steps, ended: "tier" }
    const before = failures.get(remedy.tier) ?? 0
    failures.set(remedy.tier, before + 1)
    const [low, high] = minMax(tier, before)
    const wait = Option.map(remedy.wait, ({ millis }) => millis)
    const floor = tier.wait === "atLeast"
    const shortest = Option.match(wait, {
      onNone: () => low,
      onSome: (millis) => floor ? Math.max(low, millis) : millis
    })
    const longest = Option.match(wait, {
      onNone: () => high,
      onSome: (millis) => floor ? Math.max(high, millis) : millis
    })
    if (Option.isSome(policy.within) && least + shortest > Duration.toMillis(policy.within.value)) {
      return { steps, ended: "time" }
    }
    least += shortest
    most += longest
    steps.push({
      fault,
      tier: remedy.tier,
      named: Option.isSome(wait),
      least: Duration.millis(shortest),
      most: Duration.millis(longest),
      begins: { least: Duration.millis(least), most: Duration.millis(most) }
    })
  }
  return { steps, ended: undefined }
}
