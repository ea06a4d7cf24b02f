import type * as Fault from "@recourse/core/Fault"
import * as Remedy from "@recourse/core/Remedy"
import type * as Reset from "@recourse/core/Reset"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "tstyche"

declare const reset: Reset.Reset
declare const call: Effect.Effect<string, Fault.Fault | Error>

describe("Fault", () => {
  it("catching one tag leaves the rest", () => {
    const answered = Effect.catchTag(call, "ContextOverflowed", (fault) => {
      expect(fault).type.toBe<Fault.ContextOverflowed>()
      return Effect.succeed(0)
    })
    expect(answered).type.toBe<
      Effect.Effect<string | number, Exclude<Fault.Fault, Fault.ContextOverflowed> | Error>
    >()
  })

  it("a throttle says which limit and whose", () => {
    Effect.catchTag(call, "RateLimited", (fault) => {
      expect(fault.limit).type.toBe<"rate" | "allowance">()
      expect(fault.scope).type.toBe<"account" | "model">()
      return Effect.void
    })
  })

  it("the remedy table without one tag does not compile", () => {
    type Table = { readonly [Tag in Fault.Fault["_tag"]]: "retry" | "surface" }
    type Short = Omit<typeof Fault.worth, "StreamCut">
    expect<typeof Fault.worth>().type.toBeAssignableTo<Table>()
    expect<Short>().type.not.toBeAssignableTo<Table>()
  })

  it("only a tag that a retry helps can have a tier", () => {
    expect<{ RateLimited: string }>().type.toBeAssignableTo<Remedy.Terms["tierOf"]>()
    expect<keyof Remedy.Terms["tierOf"]>().type.toBe<Fault.Retryable>()
    expect<Fault.Retryable>().type.toBe<
      | "RateLimited"
      | "Overloaded"
      | "Unavailable"
      | "Unreachable"
      | "TimedOut"
      | "StreamCut"
      | "GenerationMalformed"
    >()
  })

  it("a wait cannot be made by hand", () => {
    // @ts-expect-error Constructor of class 'Wait' is private
    void new Remedy.Wait(5, reset)
  })
})
