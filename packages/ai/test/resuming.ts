// A process that is killed while it waits for a reset, and started again: what it remembers is on disk. Told where the provider is and
// where its state is, it asks once, and goes on with what it was refused for once it is woken.
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
import * as Hold from "@recourse/core/Hold"
import * as Resume from "@recourse/core/Resume"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as PersistedHoldStore from "@recourse/platform/PersistedHoldStore"
import * as PersistedResumeStore from "@recourse/platform/PersistedResumeStore"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

const [, , url = "", state = ""] = process.argv

// the adapters of `models.ts` are much to load for each process
const model = OpenAiLanguageModel.layer({ model: "scripted" }).pipe(
  Layer.provide(OpenAiClient.layer({ apiUrl: `${url}/v1`, transformClient: RecourseClient.witnessed() })),
  Layer.provide(FetchHttpClient.layer)
)

const policy = { ...RetryPolicy.standard, patience: Duration.seconds(1) }

const ask = (prompt: string) =>
  RecoveredLanguageModel.generateText({ prompt }).pipe(
    Effect.flatMap(({ text }) => Console.log(`answered: ${text}`)),
    Effect.catchTag("RateLimited", (fault) =>
      Effect.zipRight(Console.log(`refused, ${fault.attempts} sent`), Effect.fail(fault))),
    Resume.arming("the conversation")
  )

await Effect.runPromise(
  Effect.gen(function*() {
    yield* Effect.ignore(ask("Go on."))
    yield* Console.log("waiting")
    const { wakeups } = yield* Resume.Resume
    yield* Stream.runForEach(
      Stream.take(wakeups, 1),
      ({ conversation, sentence }) => Effect.zipRight(Console.log(`woken: ${conversation}`), ask(sentence))
    )
  }).pipe(
    Effect.provide(
      RecoveredLanguageModel.layer({ policy, target: { account: Redacted.make("a key"), model: "scripted" } }).pipe(
        Layer.provide(model),
        Layer.provide(Layer.provide(Hold.layer, PersistedHoldStore.layer())),
        Layer.merge(Layer.provide(Resume.layer({ spread: 0 }), PersistedResumeStore.layer())),
        Layer.provide(KeyValueStore.layerFileSystem(state)),
        Layer.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer))
      )
    )
  )
)
