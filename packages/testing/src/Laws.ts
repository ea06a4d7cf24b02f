/**
 * Laws that a retry policy, or any schedule that is handed faults, should keep. Each function tries them on runs of failures
 * and throws `LawBroken`, with the law and the smallest run that breaks it. Nothing sleeps: time is counted, not spent.
 *
 * @since 0.1.0
 */
import * as Fault from "@recourse/core/Fault"
import * as Remedy from "@recourse/core/Remedy"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type * as Schedule from "effect/Schedule"
import * as ScheduleDecision from "effect/ScheduleDecision"
import * as ScheduleIntervals from "effect/ScheduleIntervals"
import * as Arbitraries from "./Arbitraries.ts"

/**
 * A law and the smallest run of failures that breaks it.
 *
 * @category errors
 * @since 0.1.0
 */
export class LawBroken extends Error {
  override readonly name = "LawBroken"
  readonly law: string
  readonly run: ReadonlyArray<Arbitraries.Failure>

  constructor(law: string, run: ReadonlyArray<Arbitraries.Failure>, how: string) {
    super(`"${law}" is broken by [${run.map(shown).join(", ")}]: ${how}`)
    this.law = law
    this.run = run
  }
}

const shown = ({ attempts, named, tag, wait }: Arbitraries.Failure): string =>
  `${tag}${wait === undefined ? "" : ` in ${Duration.format(wait)}${named === "instant" ? ", as an instant" : ""}`}${
    attempts === undefined ? "" : ` after ${attempts} attempts`
  }`

/**
 * One wait of a run that was driven.
 *
 * @category models
 * @since 0.1.0
 */
export interface Waited {
  readonly failure: Arbitraries.Failure
  readonly fault: Fault.Fault
  /** When the fault was met, in milliseconds from the first one. */
  readonly met: number
  /** Milliseconds to the next attempt. */
  readonly wait: number
}

/** A clock that stands where it is put. */
const standing = (now: () => number): Clock.Clock => ({
  ...Clock.make(),
  unsafeCurrentTimeMillis: now,
  unsafeCurrentTimeNanos: () => BigInt(Math.round(now() * 1e6)),
  currentTimeMillis: Effect.sync(now),
  currentTimeNanos: Effect.sync(() => BigInt(Math.round(now() * 1e6)))
})

/**
 * Drives a schedule through a run of failures, each met when the wait before it is over. Pure for a seed: time is counted and
 * chance is drawn from the seed. It gives the waits that were entered, which end where the schedule ends or the run does.
 *
 * @category constructors
 * @since 0.1.0
 */
export const drive = (
  schedule: Schedule.Schedule<unknown, Fault.Fault>,
  run: ReadonlyArray<Arbitraries.Failure>,
  seed: unknown = 0
): ReadonlyArray<Waited> => {
  let now = 0
  const waited: Array<Waited> = []
  const driven = Effect.gen(function*() {
    let state: unknown = schedule.initial
    for (const failure of run) {
      const fault = Arbitraries.fault(failure, now)
      const [next, , decision] = yield* schedule.step(now, fault, state)
      if (ScheduleDecision.isDone(decision)) return
      state = next
      const start = ScheduleIntervals.start(decision.intervals)
      waited.push({ failure, fault, met: now, wait: start - now })
      // clocks count whole milliseconds, and no timer fires early
      now = Math.ceil(start)
    }
  })
  Effect.runSync(driven.pipe(Effect.withClock(standing(() => now)), Effect.withRandom(Random.make(seed))))
  return waited
}

/** Says how a run breaks a law, or nothing if it keeps it. */
type Law = (run: ReadonlyArray<Arbitraries.Failure>, seed: number) => string | undefined

const check = (laws: { readonly [law: string]: Law }, runs: number): void => {
  for (const [law, breaks] of Object.entries(laws)) {
    const { counterexample, failed } = FastCheck.check(
      FastCheck.property(Arbitraries.failures, FastCheck.nat(), (run, seed) => breaks(run, seed) === undefined),
      { numRuns: runs }
    )
    if (failed && counterexample !== null) {
      const [run, seed] = counterexample
      throw new LawBroken(law, run, breaks(run, seed) ?? "it threw")
    }
  }
}

/** Rounding of a millisecond, as durations make it. */
const SLACK = 1e-6

const longest = (waits: ReadonlyArray<Waited>): string => `waits ${waits.map(({ wait }) => wait).join(", ")} ms`

const sameWaits = (schedule: Schedule.Schedule<unknown, Fault.Fault>): Law => (run, seed) => {
  const once = longest(drive(schedule, run, seed))
  const again = longest(drive(schedule, run, seed))
  return once === again ? undefined : `one seed gave ${once}, and then ${again}`
}

/**
 * What is said of a schedule beside it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScheduleOptions {
  /** The most requests that it may make of a call, the first included. */
  readonly requests: number
  /** How long a named wait it must honour; 75 seconds by default. */
  readonly patience?: Duration.DurationInput
  /** How many runs each law is tried on; 200 by default. */
  readonly runs?: number
}

/**
 * Tries the laws of any schedule that is handed faults: it ends, its waits are finite and the same for a seed, nothing follows
 * a fault that a retry cannot help, and no attempt begins before a named instant that the patience covers.
 *
 * @example
 * ```ts
 * import { Schedule } from "effect"
 * import * as Laws from "@recourse/testing/Laws"
 *
 * try {
 *   Laws.schedule(Schedule.recurs(3), { requests: 4 })
 * } catch (broken) {
 *   console.log(broken) // "nothing follows a fault that a retry cannot help" is broken by [CredentialRejected]: …
 * }
 * ```
 *
 * @category laws
 * @since 0.1.0
 */
export const schedule = (
  schedule: Schedule.Schedule<unknown, Fault.Fault>,
  { patience = "75 seconds", requests, runs = 200 }: ScheduleOptions
): void => {
  const patient = Duration.toMillis(patience)
  check({
    "requests are bounded": (run) => {
      const made = 1 +
        drive(
          schedule,
          run.length === 0
            ? run
            : Array.from({ length: requests + 8 }, (_, i) => run[i % run.length] ?? { tag: "Overloaded" })
        ).length
      return made <= requests ? undefined : `${made} requests, and at most ${requests}`
    },
    "waits are finite": (run, seed) => {
      const odd = drive(schedule, run, seed).find(({ wait }) => !(wait >= 0 && wait <= 2 ** 31 - 1))
      return odd === undefined ? undefined : `a wait of ${odd.wait} ms`
    },
    "the same seed gives the same waits": sameWaits(schedule),
    "nothing follows a fault that a retry cannot help": (run, seed) => {
      const followed = drive(schedule, run, seed).find(({ fault }) => !Fault.isRetryable(fault._tag))
      return followed === undefined ? undefined : `${followed.fault._tag} was retried after ${followed.wait} ms`
    },
    "no attempt begins before a named instant": (run, seed) => {
      const early = drive(schedule, run, seed).find(({ fault, wait }) => {
        const named = fault.resetsAt?.waitMillis
        return named !== undefined && named <= patient && wait + SLACK < named
      })
      return early === undefined
        ? undefined
        : `${early.fault.resetsAt?.waitMillis} ms were named, and ${early.wait} ms waited`
    }
  }, runs)
}

const tierOf = (policy: RetryPolicy.RetryPolicy, fault: Fault.Fault): string | undefined => {
  const remedy = Remedy.fromFault(fault, policy)
  return remedy._tag === "Retry" ? remedy.tier : undefined
}

/**
 * Tries the laws of a policy on the schedule that it makes.
 *
 * - requests never exceed 1 + Σ(attempts − 1) over its tiers
 * - tags in one tier share its counter, tags in two do not
 * - every computed wait lies in its band, [low, high] × min(ceiling, curve)
 * - an override never ends before the named instant, unless the policy clamps
 * - no attempt begins past `within`
 * - the same seed gives the same waits
 * - `timeline` and the schedule agree
 * - nothing follows a fault whose remedy is to surface or to defer
 *
 * @example
 * ```ts
 * import * as RetryPolicy from "@recourse/core/RetryPolicy"
 * import * as Laws from "@recourse/testing/Laws"
 *
 * Laws.policy(RetryPolicy.standard)
 * ```
 *
 * @category laws
 * @since 0.1.0
 */
export const policy = (policy: RetryPolicy.RetryPolicy, options: { readonly runs?: number } = {}): void => {
  const made = RetryPolicy.schedule(policy)
  const most = 1 + Object.values(policy.tiers).reduce((sum, { attempts }) => sum + attempts - 1, 0)
  check({
    "requests never exceed 1 + Σ(attempts − 1) over the tiers": (run, seed) => {
      const requests = 1 + drive(made, run, seed).length
      return requests <= most ? undefined : `${requests} requests, and at most ${most}`
    },
    "tags in one tier share its counter, tags in two do not": (run, seed) => {
      const waited = drive(made, run, seed)
      const counts = new Map<string, number>()
      for (const { fault } of waited) {
        const tier = tierOf(policy, fault) ?? "none"
        counts.set(tier, (counts.get(tier) ?? 0) + 1)
      }
      for (const [tier, count] of counts) {
        const allowed = (policy.tiers[tier]?.attempts ?? 1) - 1
        if (count > allowed) return `${count} retries in tier ${tier}, which allows ${allowed}`
      }
      const next = run[waited.length]
      if (next === undefined) return undefined
      const met = waited.reduce((_, { met, wait }) => met + wait, 0)
      const tier = tierOf(policy, Arbitraries.fault(next, met))
      if (tier === undefined || Option.isSome(policy.within)) return undefined
      const allowed = (policy.tiers[tier]?.attempts ?? 1) - 1
      return (counts.get(tier) ?? 0) >= allowed
        ? undefined
        : `it ended at ${counts.get(tier) ?? 0} retries in tier ${tier}, which allows ${allowed}`
    },
    "every computed wait lies in its band, [low, high] × min(ceiling, curve)": (run, seed) => {
      const failures = new Map<string, number>()
      for (const { fault, wait } of drive(made, run, seed)) {
        const remedy = Remedy.fromFault(fault, policy)
        if (remedy._tag !== "Retry") continue
        const tier = policy.tiers[remedy.tier]
        if (tier === undefined) continue
        const before = failures.get(remedy.tier) ?? 0
        failures.set(remedy.tier, before + 1)
        const curve = Math.min(Duration.toMillis(tier.ceiling), Duration.toMillis(tier.base) * tier.factor ** before)
        const [low, high] = [curve * tier.jitter.low, curve * tier.jitter.high]
        const floor = Option.match(remedy.wait, { onNone: () => 0, onSome: ({ millis }) => millis })
        if (Option.isSome(remedy.wait) && tier.wait === "replaces") continue
        if (wait < Math.max(low, floor) - SLACK || wait > Math.max(high, floor) + SLACK) {
          return `a wait of ${wait} ms where ${low} to ${high} ms were computed`
        }
      }
      return undefined
    },
    "an override never ends before the named instant, unless the policy clamps": (run, seed) => {
      for (const { fault, wait } of drive(made, run, seed)) {
        const named = fault.resetsAt?.waitMillis
        if (named === undefined) continue
        const patience = Duration.toMillis(policy.patience)
        const due = named <= patience ? named : policy.beyond === "clamp" ? patience : 0
        if (wait + SLACK < Math.floor(due)) return `${named} ms were named, and ${wait} ms waited`
      }
      return undefined
    },
    "no attempt begins past within": (run, seed) => {
      const limit = Option.getOrUndefined(policy.within)
      if (limit === undefined) return undefined
      const late = drive(made, run, seed).find(({ met, wait }) => met + wait > Duration.toMillis(limit) + SLACK)
      return late === undefined
        ? undefined
        : `an attempt began at ${late.met + late.wait} ms of ${Duration.toMillis(limit)} ms`
    },
    "the same seed gives the same waits": sameWaits(made),
    "timeline and the schedule agree": (run, seed) => {
      const waited = drive(made, run, seed)
      let met = 0
      const faults = run.map((failure, i) => {
        const one = waited[i]
        met = one === undefined ? met : one.met
        return Arbitraries.fault(failure, met)
      })
      const { ended, steps } = RetryPolicy.timeline(policy, faults)
      for (const [i, { wait }] of waited.entries()) {
        const step = steps[i]
        if (step === undefined) return `the timeline ends (${ended}) before wait ${i + 1}, of ${wait} ms`
        if (wait < Duration.toMillis(step.least) - SLACK || wait > Duration.toMillis(step.most) + SLACK) {
          return `wait ${i + 1} is ${wait} ms, and the timeline has ${Duration.format(step.least)} to ${
            Duration.format(step.most)
          }`
        }
      }
      const beyond = steps[waited.length]
      return beyond === undefined || Option.match(policy.within, {
          onNone: () => false,
          onSome: (limit) => Duration.greaterThan(beyond.begins.most, limit)
        })
        ? undefined
        : `the schedule ends after ${waited.length} waits, and the timeline goes on`
    },
    "nothing follows a fault whose remedy is to surface or to defer": (run, seed) => {
      const followed = drive(made, run, seed).find(({ fault }) => tierOf(policy, fault) === undefined)
      return followed === undefined ? undefined : `${followed.fault._tag} was retried after ${followed.wait} ms`
    }
  }, options.runs ?? 200)
}
