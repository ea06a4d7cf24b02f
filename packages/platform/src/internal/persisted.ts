import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** A list of records under one key of a `KeyValueStore`. */
export interface Document<A> {
  /** What could be read of it when it was opened. */
  readonly initial: ReadonlyArray<A>
  /**
   * Writes what it should hold by the time that it is written, one after the other. Where that fails, it is said once, until it
   * succeeds again: what is remembered is still this process's.
   */
  readonly write: (current: Effect.Effect<ReadonlyArray<A>>) => Effect.Effect<void>
}

const parsed = (text: string): Either.Either<ReadonlyArray<unknown>, string> =>
  Either.flatMap(
    Either.try({ try: (): unknown => JSON.parse(text), catch: () => "it is no JSON" }),
    (value) => Array.isArray(value) ? Either.right(value) : Either.left("it is no list of records")
  )

/** Opens a list of records. What is torn, or somebody else's, is dropped with a warning. */
export const open = <A, I>(
  key: string,
  schema: Schema.Schema<A, I>
): Effect.Effect<Document<A>, never, KeyValueStore.KeyValueStore> =>
  Effect.gen(function*() {
    const store = yield* KeyValueStore.KeyValueStore
    const dropped = (why: string) => Effect.logWarning(`Of what is remembered under ${key}, some is dropped: ${why}.`)
    const text = yield* Effect.catchAll(
      store.get(key),
      (error) => Effect.as(dropped(`it cannot be read (${error.message})`), Option.none<string>())
    )
    const records = Option.match(text, { onNone: () => Either.right([]), onSome: parsed })
    if (Either.isLeft(records)) yield* dropped(records.left)
    const initial: Array<A> = []
    const decode = Schema.decodeUnknownEither(schema)
    for (const record of Either.getOrElse(records, () => [])) {
      const one = decode(record)
      if (Either.isRight(one)) initial.push(one.right)
      else yield* dropped("a record is torn or somebody else's")
    }
    const turn = yield* Effect.makeSemaphore(1)
    const encode = Schema.encode(Schema.parseJson(Schema.Array(schema)))
    let failing = false
    return {
      initial,
      write: (current) =>
        turn.withPermits(1)(Effect.matchEffect(
          Effect.flatMap(Effect.flatMap(current, encode), (text) => store.set(key, text)),
          {
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
          }
        ))
    }
  })
