import { assert, describe, it } from "@effect/vitest"
import * as RepairBudget from "@recourse/core/RepairBudget"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"

describe("RepairBudget", () => {
  it.effect.prop(
    "gives so many in a row, and as many again once it is cleared",
    [FastCheck.nat({ max: 5 }), FastCheck.array(FastCheck.constantFrom("take", "clear"), { maxLength: 30 })],
    ([consecutive, steps]) =>
      Effect.gen(function*() {
        const budget = yield* RepairBudget.RepairBudget
        let left = consecutive
        for (const step of steps) {
          if (step === "clear") {
            yield* budget.clear
            left = consecutive
          } else {
            assert.strictEqual(yield* budget.take, left > 0)
            left = Math.max(0, left - 1)
          }
          assert.strictEqual(yield* budget.left, left)
        }
      }).pipe(Effect.provide(RepairBudget.layer({ consecutive })))
  )

  it.effect("three by default", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* RepairBudget.make().left, 3)
    }))
})
