import { assert } from "@effect/vitest"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Either from "effect/Either"

const tier = { attempts: 3, base: 1, ceiling: 2 }

/** `standard` with three attempts a tier and hardly a wait of its own: what a test waits for is what a provider names. */
export const quick: RetryPolicy.RetryPolicy = Either.getOrThrow(
  RetryPolicy.make({ tierOf: RetryPolicy.standard.tierOf, tiers: { transient: tier, refused: tier, malformed: tier } })
)

/** What a promise was rejected with; a test that gets an answer instead fails. */
export const thrownBy = async (run: () => Promise<unknown>): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    return error
  }
  return assert.fail("nothing was thrown")
}
