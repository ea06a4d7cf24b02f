import type * as Fault from "@recourse/core/Fault"
import type * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import type * as Effect from "effect/Effect"
import { describe, expect, it } from "tstyche"

declare const call: Effect.Effect<string, Fault.RateLimited | Error, "needed">
declare const target: Hold.Target
declare const perhaps: { readonly target?: Hold.Target }

describe("Recovery.recover", () => {
  it("leaves a call's type as it is", () => {
    expect(Recovery.recover(call)).type.toBe<Effect.Effect<string, Fault.RateLimited | Error, "needed">>()
    expect(call.pipe(Recovery.recover())).type.toBe<Effect.Effect<string, Fault.RateLimited | Error, "needed">>()
  })

  it("brings the hold, and the faults that it may answer with, where a target is named", () => {
    type Held = Effect.Effect<string, Fault.Fault | Error, "needed" | Hold.Hold>
    expect(Recovery.recover(call, { target })).type.toBe<Held>()
    expect(call.pipe(Recovery.recover({ target, gate: "wait" }))).type.toBe<Held>()
  })

  it("drops no hold in silence", () => {
    expect(Recovery.recover).type.not.toBeCallableWith(call, perhaps)
    expect(Recovery.recover).type.not.toBeCallableWith(call, { gate: "wait" as const })
    expect(Recovery.recover).type.not.toBeCallableWith(call, { targets: target })
  })
})
