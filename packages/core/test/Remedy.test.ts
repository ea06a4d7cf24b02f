import { assert, describe, it } from "@effect/vitest"
import * as Fault from "@recourse/core/Fault"
import * as Remedy from "@recourse/core/Remedy"
import * as Reset from "@recourse/core/Reset"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Arbitrary from "effect/Arbitrary"
import * as Duration from "effect/Duration"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"

const fault = Arbitrary.make(Fault.Schema)
const terms: FastCheck.Arbitrary<Remedy.Terms> = FastCheck.record({
  patience: FastCheck.integer({ min: 0, max: 2 ** 31 - 1 }).map((millis) => Duration.millis(millis)),
  beyond: FastCheck.constantFrom("defer" as const, "clamp" as const, "ignore" as const),
  tierOf: FastCheck.record({
    RateLimited: FastCheck.constant("refused"),
    Overloaded: FastCheck.constant("transient"),
    Unavailable: FastCheck.constant("transient")
  }, { requiredKeys: ["RateLimited"] })
})

describe("Remedy", () => {
  it.prop(
    "a wait never exceeds the patience, and no kind that surfaces is retried",
    [fault, terms],
    ([fault, terms]) => {
      const remedy = Remedy.fromFault(fault, terms)
      if (remedy._tag === "Surface") {
        assert.isTrue(!Fault.isRetryable(fault._tag) || terms.tierOf[fault._tag] === undefined)
        return
      }
      assert.isTrue(Fault.isRetryable(fault._tag))
      if (remedy._tag === "Defer") {
        assert.strictEqual(terms.beyond, "defer")
        assert.isAbove(remedy.until.waitMillis, Duration.toMillis(terms.patience))
        return
      }
      const named = fault.resetsAt?.waitMillis
      const fits = named !== undefined && named <= Duration.toMillis(terms.patience)
      assert.isFalse(named !== undefined && !fits && terms.beyond === "defer")
      assert.strictEqual(Option.isSome(remedy.wait), fits || (named !== undefined && terms.beyond === "clamp"))
      if (Option.isSome(remedy.wait)) {
        assert.isAtMost(remedy.wait.value.millis, Duration.toMillis(terms.patience))
        if (fits) assert.strictEqual(remedy.wait.value.millis, named)
      }
    },
    { fastCheck: { numRuns: 300 } }
  )

  it.prop("attempts do not count", [fault, FastCheck.nat(), terms], ([fault, attempts, terms]) => {
    assert.deepStrictEqual(Remedy.fromFault(Fault.withAttempts(fault, attempts), terms), Remedy.fromFault(fault, terms))
  }, { fastCheck: { numRuns: 100 } })

  it("the patience itself still fits, a millisecond more does not", () => {
    const reset = (waitMillis: number) => Reset.make({ received: 0, waitMillis, named: "delta", by: "test" })
    assert.isTrue(Option.isSome(Remedy.Wait.within(Duration.millis(500), reset(500))))
    assert.isTrue(Option.isNone(Remedy.Wait.within(Duration.millis(500), reset(501))))
    assert.strictEqual(Remedy.Wait.clamped(Duration.millis(500), reset(501)).millis, 500)
  })

  it("every policy's tiers exist and every default is finite", () => {
    for (const policy of [RetryPolicy.standard, RetryPolicy.brisk, RetryPolicy.persistent, RetryPolicy.cautious]) {
      for (const tier of Object.values(policy.tierOf)) {
        const found = policy.tiers[tier]
        assert.isTrue(found !== undefined && found.attempts >= 1 && Number.isFinite(found.attempts))
      }
      assert.isAtMost(Duration.toMillis(policy.patience), 2 ** 31 - 1)
    }
  })
})
