/**
 * A `ResumeStore` that survives a restart, over `KeyValueStore`: a conversation that waited for a reset is woken by the next process.
 *
 * It is one process's: what another one writes under the same key is not seen, and lost at the next write.
 *
 * @since 0.1.0
 */
import type * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Fault from "@recourse/core/Fault"
import * as ResumeStore from "@recourse/core/ResumeStore"
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
  /** What its two keys begin with; `recourse-wakeups` by default. */
  readonly key?: string
}

/** A delta that this process has met wakes by the time that passes; after a restart, by the wall clock. */
const Armed = Schema.Struct({
  conversation: Schema.String,
  fault: Fault.Schema,
  from: Schema.Number,
  until: Schema.Number,
  wakes: Schema.Number
})

/**
 * A store that is read when it is built and written at each change. A record that is torn, or somebody else's, is dropped with a
 * warning; where it cannot be written, a warning says so, and it goes on in this process.
 *
 * @example
 * ```ts
 * import { KeyValueStore } from "@effect/platform"
 * import { Resume } from "@recourse/core"
 * import * as PersistedResumeStore from "@recourse/platform/PersistedResumeStore"
 * import { Layer } from "effect"
 *
 * const resume = Resume.layer().pipe(
 *   Layer.provide(PersistedResumeStore.layer()),
 *   Layer.provide(KeyValueStore.layerMemory)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  { key = "recourse-wakeups" }: Options = {}
): Layer.Layer<ResumeStore.ResumeStore, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(
    ResumeStore.ResumeStore,
    Effect.gen(function*() {
      const document = yield* Persisted.open(key, Armed)
      const memory = ResumeStore.makeMemory(document.initial)
      const known = Effect.catchAll(memory.all, () => Effect.succeed([]))
      const write = document.write(known)
      return {
        ...memory,
        put: (armed) => Effect.zipRight(memory.put(armed), write),
        remove: (conversation, wakes) =>
          Effect.tap(memory.remove(conversation, wakes), (removed) => removed ? write : Effect.void)
      }
    })
  )
