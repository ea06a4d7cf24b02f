/**
 * A `HoldStore` that survives a restart, over `KeyValueStore`: what was refused before is refused after.
 *
 * It is one process's: what another one writes under the same key is not seen, and lost at the next write.
 *
 * @since 0.1.0
 */
import type * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Fault from "@recourse/core/Fault"
import * as HoldStore from "@recourse/core/HoldStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Persisted from "./internal/persisted.ts"

/**
 * How it is kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** What its two keys begin with; `recourse-holds` by default. */
  readonly key?: string
  /** How many holds it remembers, 1,024 by default: each change writes all of them. Beyond that, the oldest is forgotten. */
  readonly capacity?: number
}

/** A delta that this process has met ends by the time that passes; after a restart, by the wall clock. */
const Held = Schema.Struct({
  key: Schema.String,
  fault: Fault.Schema,
  until: Schema.Number,
  refused: Schema.Number
})

/**
 * A store that is read when it is built and written at each change. A record that is torn, or somebody else's, is dropped with a
 * warning; where it cannot be written, a warning says so, and it goes on in this process.
 *
 * @example
 * ```ts
 * import { KeyValueStore } from "@effect/platform"
 * import { Hold } from "@recourse/core"
 * import * as PersistedHoldStore from "@recourse/platform/PersistedHoldStore"
 * import { Layer } from "effect"
 *
 * // in a program: BunKeyValueStore.layerFileSystem, NodeKeyValueStore.layerFileSystem("state")
 * const hold = Hold.layer.pipe(
 *   Layer.provide(PersistedHoldStore.layer()),
 *   Layer.provide(KeyValueStore.layerMemory)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  { capacity = 1_024, key = "recourse-holds" }: Options = {}
): Layer.Layer<HoldStore.HoldStore, never, KeyValueStore.KeyValueStore> =>
  Layer.scoped(
    HoldStore.HoldStore,
    Effect.gen(function*() {
      const document = yield* Persisted.open(key, Held)
      const memory = yield* HoldStore.makeMemory({ capacity })
      const known = Effect.catchAll(memory.all, () => Effect.succeed([]))
      yield* Effect.ignore(Effect.forEach(document.initial, memory.extend, { discard: true }))
      const write = document.write(known)
      return {
        ...memory,
        extend: (held) => Effect.tap(memory.extend(held), () => write),
        forget: (name, before) =>
          Effect.tap(memory.forget(name, before), (forgotten) => forgotten ? write : Effect.void)
      }
    })
  )
