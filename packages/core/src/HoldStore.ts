/**
 * Where refusals are remembered: the storage beneath `Hold`, which has the rule. A store merges and forgets; it decides nothing.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Fault } from "./Fault.ts"

/**
 * A refusal that is remembered under a key: an account, or a model of it, as `account/model`. An account has no slash.
 *
 * @category models
 * @since 0.1.0
 */
export interface Held {
  readonly key: string
  /** The fault that named the latest reset. */
  readonly fault: Fault
  /** When the refusal ends, in epoch milliseconds of the wall clock. */
  readonly until: number
  /** The same in milliseconds of the clock that nobody sets, where the reset was named as a delta and met by this process. */
  readonly elapses?: number
  /** When it was met last, in epoch milliseconds: a success that began later clears it. */
  readonly refused: number
}

/**
 * How long a refusal still lasts, in milliseconds; zero or less once it has ended. A delta ends by the time that passes, an
 * instant by the wall clock.
 *
 * @category conversions
 * @since 0.1.0
 */
export const left = ({ elapses, until }: Held, clock: Clock.Clock): number =>
  elapses === undefined
    ? until - clock.unsafeCurrentTimeMillis()
    : elapses - elapsed(clock)

/**
 * The time on the clock that nobody sets, in milliseconds.
 *
 * @category conversions
 * @since 0.1.0
 */
export const elapsed = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos()) / 1e6

/**
 * The two refusals of one key as one: it lasts as long as the one that lasts longer, and was met at the later of both.
 *
 * @category combinators
 * @since 0.1.0
 */
export const merge = (self: Held, that: Held, clock: Clock.Clock): Held => {
  const later = left(that, clock) > left(self, clock) ? that : self
  return { ...later, refused: Math.max(self.refused, that.refused) }
}

/**
 * The store cannot be reached. The hold lets calls through, and says so.
 *
 * @category errors
 * @since 0.1.0
 */
export class HoldStoreAway extends Data.TaggedError("HoldStoreAway")<{ readonly cause: unknown }> {
  override get message(): string {
    return `The store of holds cannot be reached: ${String(this.cause)}`
  }
}

/**
 * The storage of holds.
 *
 * @category tags
 * @since 0.1.0
 */
export class HoldStore extends Context.Tag("@recourse/core/HoldStore")<HoldStore, {
  /** The refusals of these keys; those that have ended may be among them. */
  readonly find: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Held>, HoldStoreAway>
  /** Whether this process knows, without asking anybody, that nothing is remembered of an account and of a model of it. */
  readonly isFree: (account: string, model: string) => boolean
  /** How many refusals this process has learnt of: as long as that does not change, nobody who was free is held. */
  readonly learnt: () => number
  /** Remembers a refusal, merged with what is remembered under its key; gives the merged one. */
  readonly extend: (held: Held) => Effect.Effect<Held, HoldStoreAway>
  /** Forgets a key that was refused before an instant, in epoch milliseconds; tells whether it did. */
  readonly forget: (key: string, before: number) => Effect.Effect<boolean, HoldStoreAway>
  readonly all: Effect.Effect<ReadonlyArray<Held>, HoldStoreAway>
}>() {}

/**
 * How a store in memory is bounded.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How many keys it remembers, 131,072 by default; beyond that, it forgets the one that it has remembered longest. */
  readonly capacity?: number
}

/** An account's own refusal, beside those of its models. */
const OWN = ""

/** So many holds that have ended are forgotten when somebody looks; more are looked for, so that they leave nothing behind. */
const FEW = 1_024

/** How often holds that have ended are looked for, at most, and at least: milliseconds. */
const SWEEP = 1_000
const LOOK = 60_000

/**
 * A store of this process. Holds that have ended are forgotten: by themselves where they are more than 1,024, else when somebody
 * looks, since a timer would keep a program from ending.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory = (
  { capacity = 131_072 }: Options = {}
): Effect.Effect<Context.Tag.Service<HoldStore>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const clock = yield* Effect.clock
    const map = new Map<string, Held>()
    // what is asked at every call is asked by account and by model: no key is made for it
    const models = new Map<string, Set<string>>()
    let sweeper: Fiber.RuntimeFiber<void> | undefined
    let wakes = 0
    let learnt = 0

    const partsOf = (key: string): readonly [account: string, model: string] => {
      const slash = key.indexOf("/")
      return slash < 0 ? [key, OWN] : [key.slice(0, slash), key.slice(slash + 1)]
    }

    const drop = (key: string): void => {
      const [account, model] = partsOf(key)
      const held = models.get(account)
      held?.delete(model)
      if (held?.size === 0) models.delete(account)
      map.delete(key)
    }

    const sweep: Effect.Effect<void> = Effect.suspend(() => {
      let next = Number.POSITIVE_INFINITY
      for (const [key, held] of map) {
        const rest = left(held, clock)
        if (rest <= 0) drop(key)
        else next = Math.min(next, rest)
      }
      // a timer keeps a process from ending, which a few holds are not worth
      if (map.size <= FEW) {
        sweeper = undefined
        return Effect.void
      }
      // the wall clock may be set meanwhile
      const nap = Math.min(Math.max(next, SWEEP), LOOK)
      wakes = elapsed(clock) + nap
      return Effect.zipRight(clock.sleep(Duration.millis(nap)), sweep)
    })

    /** Sees to it that a hold which ends so soon is swept then. */
    const arm = (held: Held): Effect.Effect<void> => {
      if (map.size <= FEW) return Effect.void
      const due = elapsed(clock) + Math.max(left(held, clock), SWEEP)
      if (sweeper !== undefined && due >= wakes) return Effect.void
      sweeper?.unsafeInterruptAsFork(FiberId.none)
      wakes = due
      // whoever refuses may be beyond interruption; what sweeps is not
      return Effect.map(Effect.forkIn(Effect.interruptible(sweep), scope), (fiber) => {
        sweeper = fiber
      })
    }

    const remember = (held: Held): Held => {
      const known = map.get(held.key)
      const merged = known === undefined ? held : merge(known, held, clock)
      map.set(held.key, merged)
      learnt++
      if (known === undefined) {
        const [account, model] = partsOf(held.key)
        const names = models.get(account)
        if (names === undefined) models.set(account, new Set([model]))
        else names.add(model)
      }
      if (map.size > capacity) {
        for (const key of map.keys()) {
          drop(key)
          break
        }
      }
      return merged
    }

    return HoldStore.of({
      find: (keys) =>
        Effect.sync(() => {
          const found: Array<Held> = []
          for (const key of keys) {
            const held = map.get(key)
            if (held === undefined) continue
            if (left(held, clock) > 0) found.push(held)
            else drop(key)
          }
          return found
        }),
      isFree: (account, model) => {
        const held = models.get(account)
        return held === undefined || !(held.has(model) || held.has(OWN))
      },
      learnt: () => learnt,
      extend: (held) =>
        Effect.suspend(() => {
          const merged = remember(held)
          return Effect.as(arm(merged), merged)
        }),
      forget: (key, before) =>
        Effect.sync(() => {
          const known = map.get(key)
          if (known === undefined || known.refused >= before) return false
          drop(key)
          return true
        }),
      all: Effect.sync(() => {
        for (const [key, held] of map) if (left(held, clock) <= 0) drop(key)
        return [...map.values()]
      })
    })
  })

/**
 * A store of this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<HoldStore> = Layer.scoped(HoldStore, makeMemory())
