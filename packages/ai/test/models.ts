import * as AnthropicClient from "@effect/ai-anthropic/AnthropicClient"
import * as AnthropicLanguageModel from "@effect/ai-anthropic/AnthropicLanguageModel"
import * as GoogleClient from "@effect/ai-google/GoogleClient"
import * as GoogleLanguageModel from "@effect/ai-google/GoogleLanguageModel"
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as OpenRouterClient from "@effect/ai-openrouter/OpenRouterClient"
import * as OpenRouterLanguageModel from "@effect/ai-openrouter/OpenRouterLanguageModel"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

const tier = { attempts: 3, base: 1, ceiling: 2 }

/** `standard` with three attempts a tier and hardly a wait of its own. */
export const quick: RetryPolicy.RetryPolicy = Either.getOrThrow(
  RetryPolicy.make({ tierOf: RetryPolicy.standard.tierOf, tiers: { transient: tier, refused: tier, malformed: tier } })
)

const apiKey = Redacted.make("none")

type Transform = (client: HttpClient.HttpClient) => HttpClient.HttpClient

const witnessed: Transform = RecourseClient.witnessed()

type Model = Layer.Layer<LanguageModel.LanguageModel>

/** The model of each provider's own adapter, at a scripted provider. */
export const models: ReadonlyArray<
  readonly [name: string, at: (url: string, transformClient?: Transform) => Model]
> = [
  ["@effect/ai-openai", (url, transformClient = witnessed) =>
    OpenAiLanguageModel.layer({ model: "scripted" }).pipe(
      Layer.provide(OpenAiClient.layer({ apiKey, apiUrl: `${url}/v1`, transformClient })),
      Layer.provide(FetchHttpClient.layer)
    )],
  [
    "@effect/ai-anthropic",
    (url, transformClient = witnessed) =>
      AnthropicLanguageModel.layer({ model: "scripted", config: { max_tokens: 1_000 } }).pipe(
        Layer.provide(AnthropicClient.layer({ apiKey, apiUrl: url, transformClient })),
        Layer.provide(FetchHttpClient.layer)
      )
  ],
  [
    "@effect/ai-google",
    (url, transformClient = witnessed) =>
      GoogleLanguageModel.layer({ model: "scripted", config: { toolConfig: {} } }).pipe(
        Layer.provide(GoogleClient.layer({ apiKey, apiUrl: url, transformClient })),
        Layer.provide(FetchHttpClient.layer)
      )
  ],
  [
    "@effect/ai-openrouter",
    (url, transformClient = witnessed) =>
      OpenRouterLanguageModel.layer({ model: "vendor/scripted" }).pipe(
        Layer.provide(OpenRouterClient.layer({ apiKey, apiUrl: `${url}/v1`, transformClient })),
        Layer.provide(FetchHttpClient.layer)
      )
  ]
]

const Look = Tool.make("look", { parameters: { at: Schema.String }, success: Schema.String })

export const toolkit = Toolkit.make(Look)

/** Tools that count how often they ran. */
export const counting = () => {
  const ran: Array<string> = []
  const layer = toolkit.toLayer({
    look: ({ at }) =>
      Effect.sync(() => {
        ran.push(at)
        return `saw ${at}`
      })
  })
  return { ran, layer }
}
