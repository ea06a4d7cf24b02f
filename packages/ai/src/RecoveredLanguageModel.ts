/**
 * Recovery beneath the agent loop: a `LanguageModel` of `@effect/ai` over another one, whose faults are retried, held or surfaced
 * where the request still holds the transcript, so that the loop above never learns of them.
 *
 * `layer` provides it under the tag of `@effect/ai`, behind which every error is an `AiError`: a fault is its cause, and
 * `Fault.fromAiError` gets it back. `generateText`, `generateObject` and `streamText` of this module are the typed door to the same
 * model: faults are named tags in the error channel, and a stream says where it was cut.
 *
 * A tool runs once for an answer that was received whole, and not at all for another: retries are made beneath its resolution.
 *
 * @since 0.1.0
 */
import type * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Response from "@effect/ai/Response"
import { CurrentSpanTransformer } from "@effect/ai/Telemetry"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import type { StreamEnd } from "@recourse/core/StreamEnd"
import * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { NoExcessProperties } from "effect/Types"
import {
  failedWith,
  faultOf,
  fold,
  type Free,
  type Held,
  read,
  recovered,
  told,
  witnessing
} from "./internal/faults.ts"

const MODULE = "RecoveredLanguageModel"

/**
 * How a model is recovered: under which policy, at whom it asks, and what the codes of a private gateway mean. A `target` shares what is
 * known of refusals with every other caller of it, and brings `Hold` into the requirements.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = Free | Held

/**
 * The recovered model behind the typed door. `layer` provides it beside the `LanguageModel` of `@effect/ai`.
 *
 * @category tags
 * @since 0.1.0
 */
export class RecoveredLanguageModel extends Context.Tag("@recourse/ai/RecoveredLanguageModel")<
  RecoveredLanguageModel,
  LanguageModel.Service
>() {}

// --- the model beneath -------------------------------------------------------------------------------------------------

type Tools = Record<string, Tool.Any>

/** The tools as they are declared to a model that must not run them. */
const declared = (tools: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Tools> => ({
  tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])),
  handle: (name) => Effect.dieMessage(`The tool ${name} is run above the recovery, never beneath it.`)
})

const asked = ({ prompt, toolChoice, tools }: LanguageModel.ProviderOptions) =>
  tools.length === 0
    ? { prompt }
    : { prompt, toolChoice, toolkit: declared(tools), disableToolCallResolution: true as const }

/** What a model beneath is told: who hears its provider; the caller's span is transformed above, once. */
const beneath =
  (witness: NonNullable<Context.Tag.Service<RecourseClient.Witness>>) =>
  (context: Context.Context<never>): Context.Context<never> =>
    Context.add(Context.omit(CurrentSpanTransformer)(context), RecourseClient.Witness, witness)

const whole = (
  inner: LanguageModel.Service,
  options: LanguageModel.ProviderOptions,
  codes: Diagnosis.Options["codes"]
): Effect.Effect<Array<Response.PartEncoded>, Fault.Fault> =>
  Effect.suspend(() => {
    const witness = witnessing()
    const { responseFormat: format, tools } = options
    const answer = format.type === "text"
      ? inner.generateText(asked(options))
      : inner.generateObject({
        ...asked(options),
        objectName: format.objectName,
        schema: Schema.make<unknown, Record<string, unknown>>(format.schema.ast)
      })
    return answer.pipe(
      Effect.mapInputContext(beneath(witness)),
      Effect.flatMap(({ content }) => Schema.encode(Schema.Array(Response.Part(declared(tools))))(content)),
      Effect.matchEffect({
        onFailure: (error) => Effect.flatMap(read(error, witness.fault, codes), Effect.fail),
        onSuccess: (parts) => {
          const ended = parts.find((part) => part.type === "finish")
          if (witness.fault !== undefined) return Effect.fail(witness.fault)
          if (ended?.reason === "error") return Effect.flatMap(failedWith(ended.reason, codes), Effect.fail)
          // the calls of an answer that was cut short may be half of what they were to be
          const isCut = ended?.reason === "length" || ended?.reason === "content-filter"
          return Effect.succeed(isCut ? parts.filter(({ type }) => !type.startsWith("tool-")) : [...parts])
        }
      })
    )
  })

type Encoded = Response.StreamPartEncoded
type Marked = Encoded | StreamRecovery.Boundary | StreamRecovery.CutShort

const ends: { readonly [reason: string]: StreamEnd } = {
  length: { _tag: "OutputCap", reason: "length" },
  "content-filter": { _tag: "Refused", reason: "content_filter" },
  error: { _tag: "Failed", reason: "error" }
}

/** A stream in another context. `Stream.mapInputContext` takes nothing out of it: what a channel provides is added to its fiber's. */
const within =
  (change: (context: Context.Context<never>) => Context.Context<never>) =>
  <A, E>(self: Stream.Stream<A, E>): Stream.Stream<A, E> =>
    StreamRecovery.fromPull(Effect.map(Stream.toPull(self), (pull) => Effect.mapInputContext(pull, change)))

/** The parts of a streamed answer, recovered, with what the recovery says between them. */
const streamed = (
  inner: LanguageModel.Service,
  options: LanguageModel.ProviderOptions,
  { codes, ...recovery }: Options,
  hold: Context.Tag.Service<Hold.Hold> | undefined
): Stream.Stream<Marked, Fault.Fault> => {
  let witness = witnessing()
  const attempt = Stream.suspend(() => {
    const heard = witnessing()
    witness = heard
    const encode = Schema.encode(Schema.ChunkFromSelf(Response.StreamPart(declared(options.tools))))
    return inner.streamText(asked(options)).pipe(
      Stream.mapChunksEffect(encode),
      within(beneath(heard)),
      Stream.catchAll((error) => Stream.fromEffect(Effect.flatMap(read(error, heard.fault, codes), Effect.fail))),
      // an adapter may skip a frame that says why there is no end
      Stream.concat(Stream.suspend(() => heard.fault === undefined ? Stream.empty : Stream.fail(heard.fault)))
    )
  })
  const describe = (part: Encoded, received: number): StreamRecovery.Description => {
    switch (part.type) {
      case "text-delta":
        return { _tag: "Text", text: part.delta }
      case "reasoning-delta":
        return { _tag: "Reasoning" }
      case "tool-params-start":
      case "tool-params-delta":
      case "tool-params-end":
      case "tool-call":
      case "tool-result":
        return { _tag: "Tool" }
      case "error":
        return {
          _tag: "Failed",
          fault: witness.fault ?? Diagnosis.fromFrame(part.error, told(received, codes))
        }
      case "finish":
        return witness.fault === undefined
          ? { _tag: "End", end: ends[part.reason] ?? { _tag: "Complete", reason: part.reason } }
          : { _tag: "Failed", fault: witness.fault }
      default:
        return { _tag: "Other" }
    }
  }
  return recovery.target === undefined || hold === undefined
    ? StreamRecovery.recover(attempt, { ...recovery, target: undefined, gate: undefined, describe })
    : Stream.provideService(StreamRecovery.recover(attempt, { ...recovery, describe }), Hold.Hold, hold)
}

/**
 * Keeps attempts apart: each gives what it says names of its own, and what one that failed has thought is never ended, so that no
 * transcript takes it up. The text of an answer that breaks off is ended, to be taken up as far as it goes.
 */
const sealed = <E>(
  parts: Stream.Stream<Marked, E>,
  mark: (mark: StreamRecovery.Boundary | StreamRecovery.CutShort) => ReadonlyArray<Encoded> | { readonly error: E }
): Stream.Stream<Encoded, E> =>
  Stream.suspend(() => {
    const texts = new Set<string>()
    // what is the answer's only once it has begun
    let held: Array<Encoded> = []
    let attempt = ""
    let failure: { readonly error: E } | undefined
    const named = <P extends { readonly id: string }>(part: P): P =>
      attempt === "" ? part : { ...part, id: `${part.id}${attempt}` }
    const ends = (): ReadonlyArray<Encoded> => {
      const all = Array.from(texts, (id): Encoded => ({ type: "text-end", id }))
      texts.clear()
      held = []
      return all
    }
    /** What is handed on for a part. */
    const take = (part: Marked, out: Array<Encoded>): void => {
      if ("_tag" in part) {
        if (part._tag === "Boundary") {
          attempt = `#${part.attempt}`
          ends()
        } else out.push(...ends())
        const marks = mark(part)
        if ("error" in marks) failure = marks
        else out.push(...marks)
        return
      }
      switch (part.type) {
        case "reasoning-start":
        case "reasoning-delta":
          out.push(named(part))
          return
        case "response-metadata":
          out.push(part)
          return
        case "reasoning-end":
        case "text-start":
          held.push(named(part))
          return
        case "text-delta":
        case "text-end": {
          const { id } = named(part)
          if (part.type === "text-end" ? !texts.delete(id) : part.delta === "") {
            held.push(named(part))
            return
          }
          if (part.type === "text-delta") texts.add(id)
          out.push(...held, named(part))
          break
        }
        default:
          out.push(...held, part)
      }
      held = []
    }
    return parts.pipe(
      Stream.mapChunks((chunk) => {
        const out: Array<Encoded> = []
        for (const part of chunk) take(part, out)
        return Chunk.unsafeFromArray(out)
      }),
      Stream.catchAll((error) => Stream.suspend(() => Stream.concat(Stream.fromIterable(ends()), Stream.fail(error)))),
      Stream.concat(Stream.suspend(() => failure === undefined ? Stream.empty : Stream.fail(failure.error)))
    )
  })

/** Both models over the one in the context: behind the tag of `@effect/ai`, and behind the typed door. */
const models = (
  options: Options,
  hold: Context.Tag.Service<Hold.Hold> | undefined
): Effect.Effect<
  Context.Context<LanguageModel.LanguageModel | RecoveredLanguageModel>,
  never,
  LanguageModel.LanguageModel
> =>
  Effect.gen(function*() {
    const inner = yield* LanguageModel.LanguageModel
    const { codes, ...recovery } = options
    const generateText = (asked: LanguageModel.ProviderOptions) =>
      Effect.mapError(
        recovered(whole(inner, asked, codes), recovery, hold),
        fold(MODULE, asked.responseFormat.type === "text" ? "generateText" : "generateObject")
      )
    const parts = (asked: LanguageModel.ProviderOptions) =>
      Stream.mapError(streamed(inner, asked, options, hold), fold(MODULE, "streamText"))
    const plain = yield* LanguageModel.make({
      generateText,
      streamText: (asked) =>
        sealed(
          parts(asked),
          (mark) => mark._tag === "Stalled" ? { error: fold(MODULE, "streamText")(mark.fault) } : []
        )
    })
    const typed = yield* LanguageModel.make({
      generateText,
      streamText: (asked) => sealed(parts(asked), (mark) => [{ type: "error", error: mark }])
    })
    return Context.make(LanguageModel.LanguageModel, plain).pipe(Context.add(RecoveredLanguageModel, typed))
  })

/**
 * The `LanguageModel` that is provided to it, recovered, and the same behind the typed door.
 *
 * Put `RecourseClient.witnessed()` into the hook for the client of the provider's adapter: adapters forget some of what a provider
 * says, a failure that a terminal event reports among them, and the recovery then hears of it from there.
 *
 * @example
 * ```ts
 * import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
 * import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
 * import * as LanguageModel from "@effect/ai/LanguageModel"
 * import { FetchHttpClient } from "@effect/platform"
 * import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
 * import * as RecourseClient from "@recourse/platform/RecourseClient"
 * import { Effect, Layer } from "effect"
 *
 * const model = RecoveredLanguageModel.layer().pipe(
 *   Layer.provide(OpenAiLanguageModel.layer({ model: "gpt-5" })),
 *   Layer.provide(OpenAiClient.layer({ transformClient: RecourseClient.witnessed() })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 *
 * // whatever asks a LanguageModel is recovered beneath
 * const program = LanguageModel.generateText({ prompt: "Say something." }).pipe(Effect.provide(model))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export function layer(
  options: Held
): Layer.Layer<
  LanguageModel.LanguageModel | RecoveredLanguageModel,
  never,
  LanguageModel.LanguageModel | Hold.Hold
>
export function layer(
  options?: Free
): Layer.Layer<LanguageModel.LanguageModel | RecoveredLanguageModel, never, LanguageModel.LanguageModel>
export function layer(
  options: Options = {}
): Layer.Layer<
  LanguageModel.LanguageModel | RecoveredLanguageModel,
  never,
  LanguageModel.LanguageModel | Hold.Hold
> {
  return Layer.effectContext(
    options.target === undefined
      ? models(options, undefined)
      : Effect.flatMap(Hold.Hold, (hold) => models(options, hold))
  )
}

// --- the typed door ----------------------------------------------------------------------------------------------------

// the errors are written out: of an alias an editor would show the name and its argument, of these it shows the tags

/** The names of options, whose types stand beside it: a toolkit of some tools is none of all tools. */
type Known<Of> = { readonly [Name in keyof Of]?: unknown }

/**
 * `LanguageModel.generateText`, with faults as named tags.
 *
 * @example
 * ```ts
 * import * as RecoveredLanguageModel from "@recourse/ai/RecoveredLanguageModel"
 * import { Effect } from "effect"
 *
 * const answer = RecoveredLanguageModel.generateText({ prompt: "Say something." }).pipe(
 *   Effect.map(({ text }) => text),
 *   Effect.catchTag("ContextOverflowed", () => Effect.succeed("compact, and ask again"))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const generateText = <
  Options extends NoExcessProperties<Known<LanguageModel.GenerateTextOptions<Tools>>, Options>,
  OwnTools extends Tools = {}
>(
  options: Options & LanguageModel.GenerateTextOptions<OwnTools>
): Effect.Effect<
  LanguageModel.GenerateTextResponse<OwnTools>,
  Exclude<LanguageModel.ExtractError<Options> | Fault.Fault, AiError.AiError>,
  RecoveredLanguageModel | LanguageModel.ExtractContext<Options>
> => Effect.flatMap(RecoveredLanguageModel, (model) => Effect.catchAll(model.generateText(options), faultOf))

/**
 * `LanguageModel.generateObject`, with faults as named tags.
 *
 * @category combinators
 * @since 0.1.0
 */
export const generateObject = <
  A,
  I extends Record<string, unknown>,
  R,
  Options extends NoExcessProperties<Known<LanguageModel.GenerateObjectOptions<Tools, A, I, R>>, Options>,
  OwnTools extends Tools = {}
>(
  options: Options & LanguageModel.GenerateObjectOptions<OwnTools, A, I, R>
): Effect.Effect<
  LanguageModel.GenerateObjectResponse<OwnTools, A>,
  Exclude<LanguageModel.ExtractError<Options> | Fault.Fault, AiError.AiError>,
  RecoveredLanguageModel | R | LanguageModel.ExtractContext<Options>
> => Effect.flatMap(RecoveredLanguageModel, (model) => Effect.catchAll(model.generateObject(options), faultOf))

/**
 * `LanguageModel.streamText`, with faults as named tags, and what the recovery says among the parts: a `Boundary` before what another
 * attempt says, and a `CutShort` as the last part of an answer that was cut.
 *
 * @category combinators
 * @since 0.1.0
 */
export const streamText = <
  Options extends NoExcessProperties<Known<LanguageModel.GenerateTextOptions<Tools>>, Options>,
  OwnTools extends Tools = {}
>(
  options: Options & LanguageModel.GenerateTextOptions<OwnTools>
): Stream.Stream<
  Response.StreamPart<OwnTools> | StreamRecovery.Boundary | StreamRecovery.CutShort,
  Exclude<LanguageModel.ExtractError<Options> | Fault.Fault, AiError.AiError>,
  RecoveredLanguageModel | LanguageModel.ExtractContext<Options>
> =>
  Stream.unwrap(Effect.map(RecoveredLanguageModel, (model) =>
    model.streamText(options).pipe(
      Stream.catchAll((error) => Stream.fromEffect(faultOf(error))),
      Stream.map((part) =>
        part.type === "error" && (StreamRecovery.isBoundary(part.error) || StreamRecovery.isCutShort(part.error))
          ? part.error
          : part
      )
    )))
