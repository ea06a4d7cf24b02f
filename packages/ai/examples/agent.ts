// An agent whose provider fails in four ways, and whose transcript does not show it. Nothing but this machine is needed: the provider
// is a script on loopback. Run it with `npm run agent`.
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as Chat from "@effect/ai/Chat"
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Exchange from "@recourse/ai/Exchange"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Recovery from "@recourse/core/Recovery"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import { Console, Duration, Effect, Layer, Ref, Schema, Stream } from "effect"

const Weather = Tool.make("weather", { parameters: { city: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Weather)

const tools = toolkit.toLayer({
  weather: ({ city }) => Effect.as(Console.log(`\n  · weather(${city}) runs`), "12 degrees, rain from the west")
})

const refused = Provider.answer(429, {
  headers: { "retry-after": "1" },
  body: { error: { code: "rate_limit_exceeded", message: "Rate limit reached for requests" } }
})

const script: ReadonlyArray<Provider.Step> = [
  // a throttle that names its wait
  refused,
  Provider.good("I will look. ", { tool: { name: "weather", input: { city: "Porto" } } }),
  // a connection that is reset before the answer
  Provider.reset,
  Provider.good("It rains in Porto: take a coat."),
  // an answer that the provider itself gives up, before its first word
  Provider.ends("failure", { kept: 0 }),
  Provider.good("Then take the train, it is dry."),
  // a stream that breaks in the middle of a sentence: the model is asked to go on
  Provider.ends("nothing", { text: "The train leaves at nine " }),
  Provider.good("from the central station.")
]

const log = (text: string) => Console.log(`\n  · ${text}`)

/** What the recovery does, as it does it. */
const tell = (event: Recovery.Event): Effect.Effect<void> => {
  switch (event._tag) {
    case "Retrying":
      return log(`${event.fault._tag}: asked again after ${Math.round(Duration.toMillis(event.wait))} ms`)
    case "Cut":
      return log(event.cut === "Stalled" ? `${event.fault._tag}: the text is kept` : "the answer reached its cap")
    default:
      return Effect.void
  }
}

/** The loop of the agent: it goes on as long as the model calls tools, and knows of no fault. */
const converse = (history: Ref.Ref<Prompt.Prompt>, prompt: Prompt.RawInput): Effect.Effect<
  void,
  Effect.Effect.Error<ReturnType<typeof turns>>,
  Effect.Effect.Context<ReturnType<typeof turns>>
> =>
  Effect.flatMap(
    Effect.zipRight(turns(history, prompt), Ref.get(history)),
    ({ content }) => content.at(-1)?.role === "tool" ? converse(history, []) : Effect.void
  )

const turns = (history: Ref.Ref<Prompt.Prompt>, prompt: Prompt.RawInput) =>
  Stream.runForEach(
    Exchange.streamText({
      history,
      prompt,
      turn: (prompt) => RecoveredLanguageModel.streamText({ prompt, toolkit })
    }),
    (part) =>
      Effect.sync(() => {
        if ("type" in part && part.type === "text-delta") process.stdout.write(part.delta)
      })
  )

const shown = ({ content, role }: Prompt.Message): string =>
  `${role.padEnd(10)} ${
    typeof content === "string" ? content : content.map((part) =>
      part.type === "text"
        ? part.text
        : part.type === "tool-call"
        ? `→ ${part.name}(${JSON.stringify(part.params)})`
        : part.type === "tool-result"
        ? `← ${JSON.stringify(part.result)}`
        : part.type
    ).join(" ")
  }`

const program = Effect.gen(function*() {
  const { history } = yield* Chat.empty
  for (const prompt of ["What is the weather in Porto?", "How do I get to Braga?", "When does it leave?"]) {
    yield* Console.log(`\n\n> ${prompt}\n`)
    yield* converse(history, prompt)
  }
  yield* Console.log("\n\nThe transcript:\n")
  for (const message of (yield* Ref.get(history)).content) yield* Console.log(shown(message))
  const { requests } = yield* Provider.ScriptedProvider
  yield* Console.log(`\n${(yield* requests).length} requests, four of them failed.`)
}).pipe(Recovery.withListener(tell))

const model = Layer.unwrapEffect(Effect.gen(function*() {
  const provider = yield* Provider.ScriptedProvider
  yield* provider.play(...script)
  return RecoveredLanguageModel.layer().pipe(
    Layer.provide(OpenAiLanguageModel.layer({ model: "scripted" })),
    Layer.provide(OpenAiClient.layer({
      apiUrl: `${provider.url}/v1`,
      transformClient: RecourseClient.witnessed()
    })),
    Layer.provide(FetchHttpClient.layer)
  )
}))

await Effect.runPromise(program.pipe(
  Effect.provide(Layer.merge(model, tools)),
  Effect.provide(Provider.layer())
))
