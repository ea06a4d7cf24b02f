import * as Effect from "effect/Effect"

/**
 * Goes on without a store that is away: what is asked of it gets another answer, and one warning says so, until all of what was away is
 * back.
 */
export const away = (consequence: string) => {
  const kinds = new Set<"read" | "written">()
  return {
    isAway: (): boolean => kinds.size > 0,
    open: <A, E extends { readonly message: string }>(
      kind: "read" | "written",
      effect: Effect.Effect<A, E>,
      otherwise: A
    ): Effect.Effect<A> =>
      Effect.matchEffect(effect, {
        onFailure: ({ message }) => {
          const known = kinds.size > 0
          kinds.add(kind)
          return known
            ? Effect.succeed(otherwise)
            : Effect.as(Effect.logWarning(`${message} ${consequence}`), otherwise)
        },
        onSuccess: (value) => {
          kinds.delete(kind)
          return Effect.succeed(value)
        }
      })
  }
}
