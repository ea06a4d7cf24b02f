/**
 * Where wake-ups are remembered: the storage beneath `Resume`, which has the rule.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Fault } from "./Fault.ts"

/**
 * A wake-up that is armed, of which a conversation has one at most.
 *
 * @category models
 * @since 0.1.0
 */
export interface Armed {
  readonly conversation: string
  /** The fault that was deferred. */
  readonly fault: Fault
  /** When it was met, and until when it refuses, in epoch milliseconds of the wall clock. */
  readonly from: number
  readonly until: number
  /** When it wakes, in epoch milliseconds of the wall clock: at the reset, and somewhat later. */
  readonly wakes: number
  /** The same in milliseconds of the clock that nobody sets, where the reset was named as a delta and armed by this process. */
  readonly elapses?: number
}

/**
 * The store cannot be reached. Nothing is armed then, and a warning says so.
 *
 * @category errors
 * @since 0.1.0
 */
export class ResumeStoreAway extends Data.TaggedError("ResumeStoreAway")<{ readonly cause: unknown }> {
  override get message(): string {
    return `The store of wake-ups cannot be reached: ${String(this.cause)}`
  }
}

/**
 * The storage of wake-ups.
 *
 * @category tags
 * @since 0.1.0
 */
export class ResumeStore extends Context.Tag("@recourse/core/ResumeStore")<ResumeStore, {
  /** Remembers a wake-up, in place of whatever the conversation had. */
  readonly put: (armed: Armed) => Effect.Effect<void, ResumeStoreAway>
  /** Forgets the wake-up of a conversation, or only the one that wakes at an instant; tells whether it did. */
  readonly remove: (conversation: string, wakes?: number) => Effect.Effect<boolean, ResumeStoreAway>
  readonly all: Effect.Effect<ReadonlyArray<Armed>, ResumeStoreAway>
}>() {}

/**
 * A store of this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory = (initial: ReadonlyArray<Armed> = []): Context.Tag.Service<ResumeStore> => {
  const map = new Map(initial.map((armed) => [armed.conversation, armed]))
  return {
    put: (armed) =>
      Effect.sync(() => {
        map.set(armed.conversation, armed)
      }),
    remove: (conversation, wakes) =>
      Effect.sync(() => (wakes === undefined || map.get(conversation)?.wakes === wakes) && map.delete(conversation)),
    all: Effect.sync(() => [...map.values()])
  }
}

/**
 * A store of this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<ResumeStore> = Layer.sync(ResumeStore, () => makeMemory())
