/**
 * One refusal, known to every caller: a provider that refuses an account or a model refuses all of its callers, so one of them asks
 * and the others do not.
 *
 * Every fault that names a reset is remembered under its account or its model. A call that its own policy would defer until then
 * fails at once with the same fault, and nothing is sent; a nearer reset lets it through, or holds it at the gate if it asks for
 * that. After the reset one caller probes, and the others follow in groups that double. The rule is here; what remembers is
 * `HoldStore`. When the store cannot be reached, calls are let through, and a warning says so.
 *
 * @since 0.1.0
 */
import * as Brand from "effect/Brand"
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Attempt from "./Attempt.ts"
import * as Fault from "./Fault.ts"
import * as HoldStore from "./HoldStore.ts"
import { away } from "./internal/away.ts"
import * as Reset from "./Reset.ts"
import type * as RetryPolicy from "./RetryPolicy.ts"

// --- targets -----------------------------------------------------------------------------------------------------------

/**
 * The SHA-256 of a credential, in hexadecimal: what an account goes by. The credential itself is never kept.
 *
 * @category models
 * @since 0.1.0
 */
export type Account = string & Brand.Brand<"@recourse/core/Hold/Account">

/**
 * What a call asks: a model, for an account.
 *
 * @category models
 * @since 0.1.0
 */
export interface Target {
  /** The credential, or what `account` made of it. */
  readonly account: Redacted.Redacted | Account
  readonly model: string
}

declare const crypto: {
  readonly subtle: { readonly digest: (algorithm: "SHA-256", data: Uint8Array) => Promise<ArrayBuffer> }
}

declare class TextEncoder {
  encode(text: string): Uint8Array
}

// by the wrapper of a secret, so that the secret itself is nobody's key
const digests = new WeakMap<Redacted.Redacted, Account>()

const branded = Brand.nominal<Account>()

/**
 * The account that a credential belongs to. Digested once for a wrapper, and kept as long as that is.
 *
 * @category constructors
 * @since 0.1.0
 */
export const account = (secret: Redacted.Redacted): Effect.Effect<Account> => {
  const known = digests.get(secret)
  return known === undefined
    ? Effect.promise(async () => {
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(Redacted.value(secret)))
      const made = branded(Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join(""))
      digests.set(secret, made)
      return made
    })
    : Effect.succeed(known)
}

/** The keys of a target: its account's, and its model's. */
type Keys = readonly [account: string, model: string]

const keysOf = (of: Account, model: string): Keys => [of, `${of}/${model}`]

/** The account of a target whose credential has been digested. */
const digested = ({ account: of }: Target): Account | undefined => typeof of === "string" ? of : digests.get(of)

const resolved = ({ account: of, model }: Target): Effect.Effect<Keys> =>
  Effect.map(typeof of === "string" ? Effect.succeed(of) : account(of), (of) => keysOf(of, model))

// --- the service -------------------------------------------------------------------------------------------------------

/**
 * What became of a key.
 *
 * @category models
 * @since 0.1.0
 */
export type Change =
  | { readonly _tag: "Held"; readonly held: HoldStore.Held }
  | { readonly _tag: "Released"; readonly key: string }

/**
 * A call as the hold sees it, the same over its attempts.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly target: Target
  readonly policy: RetryPolicy.RetryPolicy
  /** `open` lets a call through that its policy would not defer; `wait` makes it wait for the reset first. */
  readonly gate: "open" | "wait"
  /** Its place among those that wait: the lower, the earlier. */
  readonly order: number
  /** When it must have ended its last wait, in milliseconds of the clock that nobody sets. */
  readonly deadline: number
  /** Told when it begins to wait at a gate, and when it is let go. */
  readonly onGate: (waits: boolean) => void
}

/**
 * What is known of refusals, and how calls go about them.
 *
 * @category tags
 * @since 0.1.0
 */
export class Hold extends Context.Tag("@recourse/core/Hold")<Hold, {
  /** The refusal that concerns a target now, the longest if there are several. */
  readonly get: (target: Target) => Effect.Effect<Option.Option<HoldStore.Held>>
  /** Every refusal that has not ended. */
  readonly all: Effect.Effect<ReadonlyArray<HoldStore.Held>>
  /** What becomes of keys from now on; a reader that falls 1,024 changes behind misses the oldest. */
  readonly changes: Stream.Stream<Change>
  /** Forgets what is known of a target and of its account, and lets everybody go who waits for it: "retry now". */
  readonly clear: (target: Target) => Effect.Effect<void>
  /** Whether it is known here, without asking anybody, that nothing stands against a target. */
  readonly isFree: (target: Target) => boolean
  /** How many refusals are known to have been met so far: a target that was free is free as long as that does not change. */
  readonly learnt: () => number
  /** Forgets the refusals of a target that were met before a call began that has succeeded, in epoch milliseconds. */
  readonly succeeded: (target: Target, began: number) => Effect.Effect<void>
  /** Remembers what a fault says of its reset. A fault that names none, or that no wait cures, changes nothing. */
  readonly settle: (target: Target, fault: Fault.Fault) => Effect.Effect<void>
  /** Makes an attempt, unless the hold answers for it; what comes of the attempt is settled. */
  readonly through: <A, E, R>(self: Effect.Effect<A, E, R>, call: Call) => Effect.Effect<A, E | Fault.Fault, R>
}>() {}

// --- the gate ----------------------------------------------------------------------------------------------------------

/** How long the others wait for what became of those that were let go. */
const PROBE = 2_000
/** How often a wait for an instant looks at the wall clock again. */
const LOOK = 5_000
/** The longest that a timer waits in one go. */
const REACH = 2 ** 31 - 1
/** How many waiters are let go in one go. */
const SLICE = 500

interface Waiter {
  readonly call: Call
  readonly keys: Keys
  readonly resume: (next: Effect.Effect<Pass | undefined, Fault.Fault>) => void
  /** It waits no longer. */
  gone: boolean
  pass: Pass | undefined
}

/** Leave to make one attempt, whose outcome is awaited by those behind. */
interface Pass {
  readonly gate: Gate
}

/** The leave that the attempt around a call has: a gate does not wait for itself. */
class Around extends Context.Reference<Around>()("@recourse/core/Hold/Around", {
  defaultValue: (): Pass | undefined => undefined
}) {}

/** Those who wait for one key: until its reset, and then for those who were let go before them. */
class Gate {
  readonly key: string
  readonly #clock: Clock.Clock
  readonly #runtime: Runtime.Runtime<never>
  readonly #onEmpty: (gate: Gate) => void
  /** In the order of their calls; those that have gone are skipped. */
  #waiting: Array<Waiter> = []
  #live = 0
  /** The fault of the refusal that was met last. */
  #fault: Fault.Fault
  /** What is waited for; nothing once its reset has passed. */
  #held: HoldStore.Held | undefined
  #out = new Set<Pass>()
  #size = 1
  #due = 0
  #timer: Fiber.RuntimeFiber<void> | undefined
  #wakes = 0
  /** Refusals in a row that named no reset. */
  refusals = 0

  constructor(
    held: HoldStore.Held,
    clock: Clock.Clock,
    runtime: Runtime.Runtime<never>,
    onEmpty: (gate: Gate) => void
  ) {
    this.key = held.key
    this.#held = held
    this.#fault = held.fault
    this.#clock = clock
    this.#runtime = runtime
    this.#onEmpty = onEmpty
  }

  get isClosed(): boolean {
    return this.#held !== undefined
  }

  get fault(): Fault.Fault {
    return this.#fault
  }

  /** Waits for a place among those that are let go, or for news that sends it to look again, without a pass. */
  join(call: Call, keys: Keys): Effect.Effect<Pass | undefined, Fault.Fault> {
    return Effect.async((resume) => {
      const waiter: Waiter = { call, keys, resume, gone: false, pass: undefined }
      let low = 0
      let high = this.#waiting.length
      while (low < high) {
        const middle = (low + high) >>> 1
        if ((this.#waiting[middle]?.call.order ?? 0) > call.order) high = middle
        else low = middle + 1
      }
      this.#waiting.splice(low, 0, waiter)
      this.#live++
      this.#arm()
      return Effect.sync(() => {
        if (waiter.pass === undefined) this.#leave(waiter)
        else this.abandoned(waiter.pass)
      })
    })
  }

  /** The key is refused, or refused for longer; never for less. */
  close(held: HoldStore.Held): void {
    const rest = HoldStore.left(held, this.#clock)
    if (this.#held !== undefined && HoldStore.left(this.#held, this.#clock) >= rest) return
    this.#held = held
    this.#fault = held.fault
    this.#size = 1
    this.#out.clear()
    const end = this.#now() + rest
    // a wait that its policy defers, or that its total time does not cover, is not gone on with
    this.#refuse(({ deadline, policy }) => end > deadline || isDeferred(held, rest, policy))
    this.#arm()
    this.#emptied()
  }

  /** Another key is refused: those that it concerns look again. */
  recall(key: string): void {
    for (const waiter of this.#waiting) {
      if (waiter.gone || !waiter.keys.includes(key)) continue
      this.#leave(waiter)
      waiter.resume(Effect.succeed(undefined))
    }
  }

  #refuse(whom: (call: Call) => boolean): void {
    for (const waiter of this.#waiting) {
      if (waiter.gone || !whom(waiter.call)) continue
      this.#leave(waiter)
      waiter.resume(Effect.fail(Fault.withAttempts(this.#fault, 0)))
    }
  }

  /** The refusal was taken back: everybody goes, and nobody waits for what becomes of them. */
  free(): void {
    this.#held = undefined
    this.#out.clear()
    const everybody = this.#waiting.filter(({ gone }) => !gone)
    this.#waiting = []
    this.#live = 0
    this.#let(everybody)
    this.#out.clear()
    this.#emptied()
  }

  admitted(pass: Pass): void {
    this.refusals = 0
    if (this.#out.delete(pass) && this.#out.size === 0) this.#letGo()
  }

  /** Nothing can be said of the attempt: another takes its place. */
  abandoned(pass: Pass): void {
    if (!this.#out.delete(pass) || this.isClosed) return
    const next = this.#take()
    if (next !== undefined) {
      this.#due = this.#now() + PROBE
      this.#let([next])
    } else if (this.#out.size === 0) this.#letGo()
  }

  #now(): number {
    return HoldStore.elapsed(this.#clock)
  }

  #leave(waiter: Waiter): void {
    if (waiter.gone) return
    waiter.gone = true
    this.#live--
    if (this.#waiting.length > 64 && this.#live * 2 < this.#waiting.length) {
      this.#waiting = this.#waiting.filter(({ gone }) => !gone)
    }
    this.#emptied()
  }

  #emptied(): void {
    if (this.#live > 0 || this.#out.size > 0) return
    this.#waiting = []
    this.#stop()
    this.#onEmpty(this)
  }

  #take(): Waiter | undefined {
    let taken = 0
    while (this.#waiting[taken]?.gone === true) taken++
    const next = this.#waiting[taken]
    this.#waiting.splice(0, taken + 1)
    if (next !== undefined) {
      next.gone = true
      this.#live--
    }
    return next
  }

  /** Lets waiters go, in slices, so that nothing else stands still for them. */
  #let(waiters: ReadonlyArray<Waiter>): void {
    for (const waiter of waiters) {
      waiter.gone = true
      waiter.pass = { gate: this }
      this.#out.add(waiter.pass)
    }
    const from = (start: number): void => {
      for (const { pass, resume } of waiters.slice(start, start + SLICE)) {
        if (pass !== undefined) resume(Effect.succeed(pass))
      }
      if (start + SLICE < waiters.length) {
        Runtime.runFork(this.#runtime)(
          Effect.zipRight(this.#clock.sleep(Duration.zero), Effect.sync(() => from(start + SLICE)))
        )
      }
    }
    from(0)
  }

  /** Lets the next group go, oldest call first. */
  #letGo(): void {
    const now = this.#now()
    this.#refuse(({ deadline }) => now > deadline)
    const size = Math.min(this.#size, this.#live)
    this.#size *= 2
    this.#out.clear()
    this.#due = this.#now() + PROBE
    const group: Array<Waiter> = []
    for (let i = 0; i < this.#waiting.length && group.length < size; i++) {
      const waiter = this.#waiting[i]
      if (waiter !== undefined && !waiter.gone) group.push(waiter)
    }
    this.#live -= group.length
    this.#let(group)
    this.#waiting = this.#waiting.filter(({ gone }) => !gone)
    this.#arm()
    this.#emptied()
  }

  /** Sees to it that somebody looks when the next thing is due. */
  #arm(): void {
    if (this.#live === 0) return
    const due = this.#held === undefined
      ? this.#due
      : this.#now() + Math.max(0, HoldStore.left(this.#held, this.#clock))
    if (this.#timer !== undefined && due >= this.#wakes) return
    this.#stop()
    this.#wakes = due
    this.#timer = Runtime.runFork(this.#runtime)(this.#look)
  }

  #stop(): void {
    this.#timer?.unsafeInterruptAsFork(FiberId.none)
    this.#timer = undefined
  }

  readonly #look: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#live === 0) {
      this.#timer = undefined
      return Effect.void
    }
    const rest = this.#held === undefined ? this.#due - this.#now() : HoldStore.left(this.#held, this.#clock)
    if (rest > 0) {
      this.#wakes = this.#now() + rest
      const slice = this.#held?.elapses === undefined ? LOOK : REACH
      return Effect.zipRight(this.#clock.sleep(Duration.millis(Math.min(rest, slice))), this.#look)
    }
    this.#timer = undefined
    this.#held = undefined
    this.#letGo()
    return Effect.void
  })
}

// --- the rule ----------------------------------------------------------------------------------------------------------

/** Whether a provider answered at all, so that those behind need not wait to hear of it. */
const isAnswered = (fault: Fault.Fault): boolean => fault.evidence._tag === "Response"

const isRefusal = (fault: Fault.Fault): boolean => fault._tag === "RateLimited" || fault._tag === "Overloaded"

/** Whether a policy would defer a call for as long as this. */
const isDeferred = (
  held: HoldStore.Held,
  rest: number,
  { beyond, patience, tierOf }: RetryPolicy.RetryPolicy
): boolean =>
  beyond === "defer" && rest > Duration.toMillis(patience) && Fault.isRetryable(held.fault._tag) &&
  tierOf[held.fault._tag] !== undefined

/** The wait of the tier that a fault falls in, after so many refusals in a row. */
const curve = ({ tierOf, tiers }: RetryPolicy.RetryPolicy, fault: Fault.Fault, refusals: number): number => {
  const name = Fault.isRetryable(fault._tag) ? tierOf[fault._tag] : undefined
  const tier = name === undefined ? undefined : tiers[name]
  return tier === undefined
    ? 0
    : Math.min(Duration.toMillis(tier.ceiling), Duration.toMillis(tier.base) * tier.factor ** Math.min(refusals, 64))
}

/**
 * The hold over a store.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Context.Tag.Service<Hold>, never, HoldStore.HoldStore | Scope.Scope> = Effect.gen(
  function*() {
    const store = yield* HoldStore.HoldStore
    const clock = yield* Effect.clock
    const runtime = yield* Effect.runtime()
    const changes = yield* PubSub.sliding<Change>(1_024)
    const gates = new Map<string, Gate>()
    let closed = false
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closed = true
        for (const gate of Array.from(gates.values())) gate.free()
        return PubSub.shutdown(changes)
      })
    )
    const { open } = away("Calls are let through.")
    // how often something was cleared: what was found before is stale
    let clears = 0

    // what is told to a closed one interrupts whoever tells it
    const tell = (change: Change): Effect.Effect<void> => closed ? Effect.void : PubSub.publish(changes, change)

    const find = (keys: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<HoldStore.Held>> =>
      open("read", store.find(keys), [])

    /** The refusal that ends last, of those that have not ended. */
    const governing = (found: ReadonlyArray<HoldStore.Held>): HoldStore.Held | undefined => {
      let last: HoldStore.Held | undefined
      let most = 0
      for (const held of found) {
        const rest = HoldStore.left(held, clock)
        if (rest > most) {
          most = rest
          last = held
        }
      }
      return last
    }

    const gateOf = (held: HoldStore.Held): Gate => {
      const standing = gates.get(held.key)
      // somebody else may have extended what is held
      standing?.close(held)
      const gate = standing ??
        new Gate(held, clock, runtime, (empty) => {
          if (gates.get(empty.key) === empty) gates.delete(empty.key)
        })
      gates.set(held.key, gate)
      return gate
    }

    /** The gates of other keys at which somebody may wait whom a key concerns. */
    const related = (key: string): ReadonlyArray<Gate> => {
      const slash = key.indexOf("/")
      const account = gates.get(key.slice(0, slash))
      return slash < 0
        ? Array.from(gates.values()).filter((gate) => gate.key.startsWith(`${key}/`))
        : account === undefined
        ? []
        : [account]
    }

    const remember = (held: HoldStore.Held): Effect.Effect<void> =>
      Effect.flatMap(open("written", store.extend(held), held), (merged) => {
        gates.get(merged.key)?.close(merged)
        for (const gate of related(merged.key)) gate.recall(merged.key)
        return tell({ _tag: "Held", held: merged })
      })

    const settle = (keys: Keys, fault: Fault.Fault): Effect.Effect<void> => {
      const { resetsAt } = fault
      if (resetsAt === undefined || !Fault.isRetryable(fault._tag)) return Effect.void
      const until = resetsAt.at.epochMillis
      const rest = Math.max(0, until - clock.unsafeCurrentTimeMillis())
      return remember({
        key: fault._tag === "RateLimited" && fault.scope === "account" ? keys[0] : keys[1],
        fault,
        until,
        ...(resetsAt.named === "delta" ? { elapses: HoldStore.elapsed(clock) + rest } : {}),
        refused: fault.received.epochMillis
      })
    }

    const cleared = (keys: ReadonlyArray<string>, before: number): Effect.Effect<void> =>
      Effect.forEach(keys, (key) =>
        Effect.flatMap(open("written", store.forget(key, before), false), (forgotten) => {
          const gate = gates.get(key)
          if (forgotten || before === Number.POSITIVE_INFINITY) clears++
          if (before === Number.POSITIVE_INFINITY || (forgotten && gate?.isClosed === true)) gate?.free()
          return forgotten ? tell({ _tag: "Released", key }) : Effect.void
        }), { discard: true })

    const lookUp = (keys: Keys): Effect.Effect<ReadonlyArray<HoldStore.Held>> =>
      Effect.suspend(() => {
        const seen = clears
        return Effect.flatMap(find(keys), (found) => seen === clears ? Effect.succeed(found) : lookUp(keys))
      })

    const enter = (
      call: Call,
      keys: Keys,
      around: Pass | undefined,
      pass: Pass | undefined
    ): Effect.Effect<Pass | undefined, Fault.Fault> =>
      Effect.flatMap(lookUp(keys), (found) => {
        if (closed) return Effect.succeed(pass)
        const deferred = found.find((one) => isDeferred(one, HoldStore.left(one, clock), call.policy))
        const held = deferred ?? governing(found)
        const now = HoldStore.elapsed(clock)
        const refuse = (fault: Fault.Fault): Effect.Effect<never, Fault.Fault> => {
          pass?.gate.abandoned(pass)
          return Effect.fail(Fault.withAttempts(fault, 0))
        }
        const wait = (gate: Gate): Effect.Effect<Pass | undefined, Fault.Fault> => {
          pass?.gate.abandoned(pass)
          call.onGate(true)
          return Effect.flatMap(
            Effect.tapError(gate.join(call, keys), () => Effect.sync(() => call.onGate(false))),
            (next) => {
              call.onGate(false)
              return Effect.onExit(
                enter(call, keys, around, next),
                (exit) => Exit.isFailure(exit) ? Effect.sync(() => next?.gate.abandoned(next)) : Effect.void
              )
            }
          )
        }
        if (held === undefined) {
          const busy = call.gate === "wait"
            ? keys.map((key) => gates.get(key)).find((gate) =>
              gate !== undefined && gate !== pass?.gate && gate !== around?.gate
            )
            : undefined
          const last = busy ?? pass?.gate
          if (now > call.deadline && last !== undefined) return refuse(last.fault)
          return busy === undefined ? Effect.succeed(pass) : wait(busy)
        }
        if (deferred !== undefined) return refuse(deferred.fault)
        if (call.gate === "open") return Effect.succeed(pass)
        return now + HoldStore.left(held, clock) > call.deadline ? refuse(held.fault) : wait(gateOf(held))
      })

    /** What an attempt that failed says of its target. */
    const failed = (call: Call, keys: Keys, pass: Pass | undefined, error: unknown): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (!Fault.isFault(error)) {
          pass?.gate.abandoned(pass)
          return Effect.void
        }
        if (pass !== undefined && isRefusal(error) && error.resetsAt === undefined) {
          const rest = Math.max(1, Math.ceil(curve(call.policy, error, pass.gate.refusals++)))
          const now = clock.unsafeCurrentTimeMillis()
          const reset = Reset.make({ received: now, waitMillis: rest, named: "delta", by: "the curve of its tier" })
          return remember({
            key: pass.gate.key,
            fault: Fault.withReset(error, reset),
            until: now + rest,
            elapses: HoldStore.elapsed(clock) + rest,
            refused: error.received.epochMillis
          })
        }
        return Effect.map(settle(keys, error), () => {
          if (pass === undefined) return
          if (isAnswered(error)) pass.gate.admitted(pass)
          else pass.gate.abandoned(pass)
        })
      })

    const succeeded = (keys: Keys, pass: Pass | undefined, began: number): Effect.Effect<void> => {
      pass?.gate.admitted(pass)
      return cleared(keys, began)
    }

    const held = <A, E, R>(
      self: Effect.Effect<A, E, R>,
      call: Call,
      keys: Keys
    ): Effect.Effect<A, E | Fault.Fault, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.flatMap(Around, (around) => restore(enter(call, keys, around, undefined))), (pass) => {
          const began = clock.unsafeCurrentTimeMillis()
          const attempt = pass === undefined ?
            self :
            Effect.flatMap(Attempt.Attempt, (attempt) =>
              Effect.provide(
                self,
                Context.make(Around, pass).pipe(Context.add(Attempt.Attempt, {
                  ...attempt,
                  admitted: Effect.sync(() => pass.gate.admitted(pass))
                }))
              ))
          return Effect.matchCauseEffect(restore(attempt), {
            onFailure: (cause) => {
              const failure = Exit.failCause(cause)
              return Option.match(Cause.failureOption(cause), {
                onNone: () => {
                  pass?.gate.abandoned(pass)
                  return failure
                },
                onSome: (error) => Effect.zipRight(failed(call, keys, pass, error), failure)
              })
            },
            onSuccess: (answer) => Effect.as(succeeded(keys, pass, began), answer)
          })
        })
      )

    return Hold.of({
      get: (target) =>
        Effect.flatMap(
          resolved(target),
          (keys) => Effect.map(find(keys), (found) => Option.fromNullable(governing(found)))
        ),
      all: Effect.map(open("read", store.all, []), (found) => found.filter((held) => HoldStore.left(held, clock) > 0)),
      changes: Stream.fromPubSub(changes),
      clear: (target) => Effect.flatMap(resolved(target), (keys) => cleared(keys, Number.POSITIVE_INFINITY)),
      isFree: (target) => {
        const of = digested(target)
        return of !== undefined && store.isFree(of, target.model) &&
          (gates.size === 0 || !keysOf(of, target.model).some((key) => gates.has(key)))
      },
      learnt: store.learnt,
      succeeded: (target, began) => Effect.flatMap(resolved(target), (keys) => cleared(keys, began)),
      settle: (target, fault) => Effect.flatMap(resolved(target), (keys) => settle(keys, fault)),
      through: (self, call) => Effect.flatMap(resolved(call.target), (keys) => held(self, call, keys))
    })
  }
)

/**
 * The hold over whatever store is provided.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Hold, never, HoldStore.HoldStore> = Layer.scoped(Hold, make)

/**
 * The hold of one process, in memory.
 *
 * @example
 * ```ts
 * import { Hold, Recovery } from "@recourse/core"
 * import { Effect, Redacted } from "effect"
 *
 * const target = { account: Redacted.make("a key"), model: "a-model" }
 * const call = Effect.tryPromise({ try: () => Promise.resolve("an answer"), catch: (error) => error })
 * const recovered = call.pipe(
 *   Recovery.read,
 *   Recovery.recover({ target, gate: "wait" }),
 *   Effect.provide(Hold.layerMemory)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Hold> = Layer.provide(layer, HoldStore.layerMemory)
