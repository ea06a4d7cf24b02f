// What an editor shows of an exchange; see Types.test.ts.
import * as Chat from "@effect/ai/Chat"
import * as Exchange from "@recourse/ai/Exchange"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { toolkit } from "./models.ts"

export const text = RecoveredLanguageModel.generateText({ prompt: "Go on." })

export const tools = RecoveredLanguageModel.generateText({ prompt: "Go on.", toolkit })

export const exchange = Effect.map(
  Chat.empty,
  ({ history }) =>
    Exchange.streamText({ history, prompt: "Go on.", turn: (prompt) => RecoveredLanguageModel.streamText({ prompt }) })
)

export type Faults = Stream.Stream.Error<Effect.Effect.Success<typeof exchange>>

export const caught = Effect.catchTag(text, "ContextOverflowed", () => Effect.succeed("compacted"))
