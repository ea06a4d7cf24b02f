import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** A list of records in a `KeyValueStore`. */
export interface Document<A> {
  /** What could be read of it when it was opened. */
  readonly initial: ReadonlyArray<A>
  /**
   * Writes what it should hold by the time that it is written, one after the other; whoever asks meanwhile waits for the same write,
   * which goes on when he gives up. Where it fails, it is said once, until it succeeds again: what is remembered is still this process's.
   */
  readonly write: (current: Effect.Effect<ReadonlyArray<A>>) => Effect.Effect<void>
}

const Written = Schema.parseJson(Schema.Struct({ revision: Schema.Number, records: Schema.Array(Schema.Unknown) }))

/**
 * Opens a list of records, which is written in turns under two keys: what is killed while it writes one has the other. What is torn, or
 * somebody else's, is dropped with a warning. Where it cannot be read it is not written either, so that nothing is lost.
 */
export const open = <A, I>(
  key: string,
  schema: Schema.Schema<A, I>
): Effect.Effect<Document<A>, never, KeyValueStore.KeyValueStore> =>
  Effect.gen(function*() {
    const store = yield* KeyValueStore.KeyValueStore
    const keys = [`${key}-0`, `${key}-1`] as const
    let unread = false
    let revision = 0
    let records: ReadonlyArray<unknown> = []
    for (const name of keys) {
      const text = yield* Effect.catchAll(store.get(name), (error) => {
        unread = true
        return Effect.as(
          Effect.logWarning(`What is remembered under ${name} cannot be read, and is left as it is: ${error.message}.`),
          Option.none<string>()
        )
      })
      if (Option.isNone(text)) continue
      const written = Schema.decodeOption(Written)(text.value)
      if (Option.isNone(written)) {
        yield* Effect.logWarning(`What is remembered under ${name} is torn or somebody else's, and is dropped.`)
      } else if (written.value.revision > revision) {
        revision = written.value.revision
        records = written.value.records
      }
    }
    const initial: Array<A> = []
    for (const record of records) {
      const one = Schema.decodeUnknownOption(schema)(record)
      if (Option.isSome(one)) initial.push(one.value)
    }
    if (initial.length < records.length) {
      yield* Effect.logWarning(
        `Of what is remembered under ${key}, ${records.length - initial.length} torn or somebody else's are dropped.`
      )
    }

    const turn = yield* Effect.makeSemaphore(1)
    const encode = Schema.encode(Schema.Array(schema))
    let failing = false
    let queued: Fiber.Fiber<void> | undefined
    const writing = (current: Effect.Effect<ReadonlyArray<A>>): Effect.Effect<void> =>
      current.pipe(
        Effect.flatMap(encode),
        Effect.flatMap((records) => {
          revision++
          return store.set(keys[revision % 2] ?? keys[0], JSON.stringify({ revision, records }))
        }),
        Effect.matchEffect({
          onFailure: (error) => {
            const known = failing
            failing = true
            return known
              ? Effect.void
              : Effect.logWarning(
                `What is remembered under ${key} does not outlive this process: it cannot be written (${error.message}).`
              )
          },
          onSuccess: () =>
            Effect.sync(() => {
              failing = false
            })
        })
      )
    return {
      initial,
      write: (current) =>
        Effect.suspend(() => {
          if (unread) return Effect.void
          if (queued !== undefined) return Fiber.join(queued)
          const begun = Effect.suspend(() => {
            queued = undefined
            return writing(current)
          })
          return Effect.flatMap(Effect.forkDaemon(Effect.uninterruptible(turn.withPermits(1)(begun))), (fiber) => {
            queued = fiber
            return Fiber.join(fiber)
          })
        })
    }
  })
