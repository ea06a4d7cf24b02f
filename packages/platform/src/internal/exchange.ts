import * as Attempt from "@recourse/core/Attempt"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Hash from "effect/Hash"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as AnthropicMessages from "../AnthropicMessages.ts"
import * as Gemini from "../Gemini.ts"
import * as Liveness from "../Liveness.ts"
import * as OpenAiChat from "../OpenAiChat.ts"
import * as OpenAiResponses from "../OpenAiResponses.ts"
import type { Part, Protocol } from "../Protocol.ts"
import { Decoder } from "./decoder.ts"

/** What both doors are told. */
export interface Options {
  /** How long silence is borne, to the headers and between two chunks. */
  readonly liveness?: Liveness.Options
  /** How much of a body is read before it is judged. */
  readonly body?: {
    /** Bytes; 1 MiB by default. A longer good answer is handed on unjudged; a longer failure is judged by what was read. */
    readonly bytes?: number
    /** How long the body of a failure may take; 10 seconds by default. It is judged by what has come by then. */
    readonly within?: Duration.DurationInput
  }
  /** Codes of a private gateway and what they mean. */
  readonly codes?: Diagnosis.Options["codes"]
  /**
   * Whom a request asks, for the hold where there is one; by default the host and its credential, and the model that its body or its
   * path names. Nothing takes the request out of the hold.
   */
  readonly target?: (request: Asked) => Hold.Target | undefined
  /** What a refusal that the hold knows does to a call that would wait it out: `open`, the default, or `wait`. */
  readonly gate?: Hold.Call["gate"]
  /** Told of every event of a call as it happens, beside the listener of an Effect program; see `Recovery.Event`. */
  readonly listener?: (event: Recovery.Event) => void
  /** Which requests are recovered; by default those that ask a model for something, by method and path, on any host. */
  readonly recovers?: (request: { readonly method: string; readonly url: URL }) => boolean
}

/** An option that cannot be. */
export class OptionInvalid
  extends Data.TaggedError("OptionInvalid")<{ readonly field: string; readonly mend: string }>
{
  override get message(): string {
    return `${this.field}: ${this.mend}`
  }
}

const kinds = new Set<unknown>([
  ...Object.keys(Fault.plain),
  "RateLimited",
  "RateLimited:rate",
  "RateLimited:allowance"
])

/** Throws for an option that cannot be: it is a mistake in a program, and is met before the first call. */
export const check = (options: Options & Recovery.Options & { readonly memory?: unknown }): void => {
  const { body, codes = {}, liveness, memory, policy } = options
  const durations = {
    "liveness.headers": liveness?.headers,
    "liveness.chunk": liveness?.chunk,
    "body.within": body?.within,
    memory
  }
  for (const [field, value] of Object.entries(durations)) {
    if (value !== undefined && Option.isNone(Duration.decodeUnknown(value))) {
      throw new OptionInvalid({ field, mend: "a duration, such as \"30 seconds\", or milliseconds" })
    }
  }
  if (body?.bytes !== undefined && !(body.bytes >= 0)) {
    throw new OptionInvalid({ field: "body.bytes", mend: "a number of bytes, 0 at least" })
  }
  for (const [code, meaning] of Object.entries(codes)) {
    if (!kinds.has(meaning)) {
      throw new OptionInvalid({ field: `codes.${code}`, mend: `a kind of fault: ${[...kinds].join(", ")}` })
    }
  }
  if (policy !== undefined && (typeof policy !== "object" || !("tiers" in policy) || !("tierOf" in policy))) {
    throw new OptionInvalid({ field: "policy", mend: "a policy, such as RetryPolicy.brisk" })
  }
}

const inference =
  /(?:\/(?:chat\/completions|completions|messages|responses|chat|embed|embeddings|rerank|moderations|api\/generate|converse|converse-stream|invoke|invoke-with-response-stream)|:(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|countTokens|predict|rawPredict|streamRawPredict))$/

/** A request as it is looked at, to tell whom it asks. */
export interface Asked {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  /** Its text, where it is a text. */
  readonly body: string | undefined
}

/** The headers that say whose a request is. */
export const credentials = ["authorization", "x-api-key", "api-key", "x-goog-api-key"]

/** How far into a body its model is looked for; it stands near the front. */
const SCAN = 65_536

const modelOf = ({ body, url }: Asked): string =>
  /\/(?:models?|deployments|engines)\/([^/:?]{1,200})/.exec(url.pathname)?.[1] ??
    /"model"\s{0,8}:\s{0,8}"([^"\\]{1,200})"/.exec(body?.slice(0, SCAN) ?? "")?.[1] ?? "any"

/** The wrappers of the credentials that were sent last, by a hash: what is digested for one of them is not digested again. */
const wrapped = new Map<number, Redacted.Redacted>()

const WRAPPED = 256

const wrap = (credential: string): Redacted.Redacted => {
  const hash = Hash.string(credential)
  const known = wrapped.get(hash)
  if (known !== undefined && Redacted.value(known) === credential) return known
  const made = Redacted.make(credential)
  wrapped.set(hash, made)
  for (const oldest of wrapped.keys()) if (wrapped.size > WRAPPED) wrapped.delete(oldest)
  return made
}

/** The host and its credential are the account, so that the same key at two hosts is two accounts. */
const targetOf = (asked: Asked): Hold.Target => {
  const sent = credentials.map((name) => asked.headers.get(name)).find((value) => value !== null) ??
    asked.url.searchParams.get("key") ?? ""
  // a signature is another one for each request; whose it is stands in front
  const credential = /^AWS4-\S{1,64} Credential=([^/,\s]{1,256})/.exec(sent)?.[1] ?? sent
  return { account: wrap(`${asked.url.host}\n${credential}`), model: modelOf(asked) }
}

/** Whether a request is one to recover. */
export const isRecovered = (method: string, url: URL, { recovers }: Options): boolean =>
  recovers === undefined ? method === "POST" && inference.test(url.pathname) : recovers({ method, url })

/** An answer that is handed on, whole or chunk by chunk, and what hangs up on the rest of it. */
export interface Handed {
  readonly response: Response
  readonly headers: Headers
  /** Reads on until something comes of what is read, which is nothing at the end, or of what broke the body. */
  readonly reading: <A, E>(
    take: (bytes: Uint8Array | undefined) => Effect.Effect<A, E> | undefined,
    threw: (reason: unknown) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  readonly hangUp: () => void
}

/** The last attempt of a call that failed: what its caller gets as it came, if there is no other attempt. */
export class Last<E> {
  readonly #added: Readonly<Record<string, string>>
  #answer: Answer | undefined
  #handBack: Effect.Effect<Handed, E> | undefined

  /** `added` are headers of ours for an answer that is handed back. */
  constructor(added: Readonly<Record<string, string>> = {}) {
    this.#added = added
  }

  /** The provider's own answer, or the transport's own error; what says that nothing was sent, if a hold answered. */
  handBack(fault: Fault.Fault): Effect.Effect<Handed, E> {
    return this.#handBack ?? Effect.map(Clock.currentTimeMillis, (now) => unsent(fault, now, this.#added))
  }

  answered(answer: Answer): void {
    this.#answer = answer
    this.#handBack = Effect.sync(() => answer.handed(this.#added))
  }

  threw(error: E): void {
    this.#handBack = Effect.fail(error)
  }

  /** There is another attempt: hangs up on what is left of this one. */
  discard(): void {
    this.#answer?.discard()
    this.#answer = undefined
    this.#handBack = undefined
  }
}

/** The answer of a hold: a 429 that nobody sent, with a true `retry-after`. */
const unsent = (fault: Fault.Fault, now: number, added: Readonly<Record<string, string>>): Handed => {
  const until = fault.resetsAt?.at.epochMillis ?? now
  const message = `Nothing was sent: this model or account is refused until ${
    new Date(until).toISOString()
  }. ${fault.message}`
  const response = new Response(
    JSON.stringify({ error: { type: "rate_limit_error", code: "recourse_held", message } }),
    {
      status: 429,
      headers: {
        "content-type": "application/json",
        "retry-after": String(Math.max(0, Math.ceil((until - now) / 1_000))),
        ...added
      }
    }
  )
  return { response, headers: response.headers, reading: (_, threw) => threw(fault), hangUp: () => undefined }
}

/** An answer at its head, whoever asked for it; every `Response` is one. */
export interface Head {
  readonly status: number
  readonly statusText: string
  readonly url: string
  readonly redirected: boolean
  readonly type: ResponseType
  readonly headers: Headers
  readonly body: { readonly getReader: () => Reader } | Source | null
}

/** What reads a `ReadableStream`. */
interface Reader {
  readonly read: () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  readonly cancel: (reason?: unknown) => Promise<void>
}

/** What gives a body chunk by chunk, to one who asks at a time. */
export interface Source {
  /** Asks for the next chunk, which is none at the end. */
  readonly next: (onChunk: (chunk: Uint8Array | undefined) => void, onError: (reason: unknown) => void) => void
  /** Hangs up. Nobody is told of what comes then. */
  readonly cancel: (reason: unknown) => void
}

const sourceOf = (body: Head["body"]): Source | undefined => {
  if (body === null) return undefined
  if ("next" in body) return body
  const reader = body.getReader()
  return {
    next: (onChunk, onError) => {
      reader.read().then(({ done, value }) => onChunk(done ? undefined : value), onError)
    },
    // a stream that has failed already has nothing to cancel
    cancel: (reason) => {
      reader.cancel(reason).catch(() => undefined)
    }
  }
}

/** Why a body is broken that ended in order. */
class CutOff extends Error {
  override readonly name = "StreamCut"
  readonly code = "RECOURSE_STREAM_CUT"

  constructor() {
    super("the stream ended before its terminal event")
  }
}

/** Told of a fault, which is made with the time at which it was received. */
export type OnFault = (fault: (received: number) => Fault.Fault) => void

type Arrived = { readonly chunk: Uint8Array | undefined } | { readonly reason: unknown }

/**
 * An answer that is read as far as it has to be, and can still be handed on whole: what was read, and behind it whatever the
 * provider goes on to send.
 */
export class Answer {
  readonly head: Head
  readonly #watch: Liveness.Watch
  readonly #source: Source | undefined
  readonly #parts: Array<Uint8Array> = []
  // what was asked for and has not come, and what came for nobody: giving up on a read loses no byte
  #asked = false
  #taker: ((arrived: Arrived) => void) | undefined
  #arrived: Arrived | undefined
  #length = 0
  #over = false
  /** What looks for the terminal event of a stream in what is handed on. */
  #decoder: Decoder | undefined
  #onFault: OnFault | undefined
  #error: { readonly reason: unknown } | undefined

  constructor(head: Head, watch: Liveness.Watch) {
    this.head = head
    this.#watch = watch
    this.#source = sourceOf(head.body)
    if (this.#source === undefined) watch.close()
  }

  /** What has been read so far. */
  get bytes(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.#length)
    let at = 0
    for (const part of this.#parts) {
      whole.set(part, at)
      at += part.length
    }
    return whole
  }

  /** The next bytes, which are kept for whoever it is handed to; nothing at the end. */
  get next(): Effect.Effect<Uint8Array | undefined, unknown> {
    return this.#pull
  }

  get length(): number {
    return this.#length
  }

  /** Breaks the body that is handed on where it ends without a terminal event: its reader would take a clean end for the whole. */
  follow(decoder: Decoder): void {
    this.#decoder = decoder
  }

  /** Somebody is told what breaks the body that is handed on, whatever its reader makes of it. */
  tell(onFault: OnFault): void {
    this.#onFault = onFault
  }

  /** Reads on until the end, or until more than `most` bytes have come; tells which. Fails as the body fails. */
  read(most: number): Effect.Effect<"whole" | "more", unknown> {
    return Effect.suspend(() =>
      this.#length > most
        ? Effect.succeed("more")
        : Effect.flatMap(this.#pull, (part) => part === undefined ? Effect.succeed("whole") : this.read(most))
    )
  }

  readonly #pull: Effect.Effect<Uint8Array | undefined, unknown> = Effect.async((resume) => {
    const stop = this.#next(
      (part) => {
        if (part !== undefined) {
          this.#parts.push(part)
          this.#length += part.length
        }
        resume(Effect.succeed(part))
      },
      (reason) => resume(Effect.fail(reason))
    )
    return Effect.sync(stop)
  })

  /** What was read first, and then what comes; nothing of it is kept. */
  #reading<A, E>(
    take: (bytes: Uint8Array | undefined) => Effect.Effect<A, E> | undefined,
    threw: (reason: unknown) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    // a canceller for each chunk would cost more than the chunk: what came for one who was interrupted is there for the next
    let given: Effect.Effect<A, E> | undefined
    return Effect.async((resume) => {
      const give = (next: Effect.Effect<A, E>): void => {
        given = next
        resume(Effect.suspend(() => {
          given = undefined
          return next
        }))
      }
      if (given !== undefined) return give(given)
      const read = (): void => {
        // what is there at once is read in a loop, however many pieces of it come to nothing
        let more: boolean
        do {
          more = false
          let here = true
          const taken = (bytes: Uint8Array | undefined): void => {
            const next = take(bytes)
            if (next !== undefined) give(next)
            else if (here) more = true
            else read()
          }
          const part = this.#parts.shift()
          if (part === undefined) this.#next(taken, (reason) => give(threw(reason)))
          else taken(part)
          here = false
        } while (more)
      }
      read()
    })
  }

  /** The one pull of everything here: the next chunk, or silence. Returns what gives up on it. */
  #next(onPart: (part: Uint8Array | undefined) => void, onError: (reason: unknown) => void): () => void {
    if (this.#error !== undefined) {
      onError(this.#error.reason)
      return () => undefined
    }
    const source = this.#source
    if (this.#over || source === undefined) {
      onPart(undefined)
      return () => undefined
    }
    const take = (arrived: Arrived): void => {
      this.#taker = undefined
      if ("reason" in arrived) {
        this.#error = arrived
        this.#watch.close()
        onError(arrived.reason)
        return
      }
      if (arrived.chunk === undefined) {
        this.#over = true
        this.#watch.close()
      } else this.#watch.end()
      onPart(arrived.chunk)
    }
    const known = this.#arrived
    if (known !== undefined) {
      this.#arrived = undefined
      take(known)
      return () => undefined
    }
    this.#taker = take
    if (!this.#asked) {
      this.#asked = true
      source.next(this.#onChunk, this.#onError)
    }
    if (this.#taker === take) {
      this.#watch.begin("chunk", (silence) => {
        if (this.#taker !== take) return
        take({ reason: silence })
        this.discard(silence)
      })
    }
    return () => {
      if (this.#taker !== take) return
      this.#taker = undefined
      this.#watch.close()
    }
  }

  readonly #onChunk = (chunk: Uint8Array | undefined): void => this.#arrive({ chunk })

  readonly #onError = (reason: unknown): void => this.#arrive({ reason })

  #arrive(arrived: Arrived): void {
    this.#asked = false
    if (this.#taker === undefined) this.#arrived = arrived
    else this.#taker(arrived)
  }

  /** Hangs up on what has not been read. */
  discard(reason?: unknown): void {
    this.#watch.close()
    this.#source?.cancel(reason)
  }

  /** The provider's own answer, to be read by whoever asked. */
  handed(added?: Readonly<Record<string, string>>): Handed {
    const whole = (): Response => this.whole(added)
    return {
      get response() {
        return whole()
      },
      headers: this.head.headers,
      reading: (take, threw) => this.#reading(take, threw),
      hangUp: () => this.discard()
    }
  }

  /** The provider's own answer, with its whole body, and headers of ours added. */
  whole(added: Readonly<Record<string, string>> = {}): Response {
    const { headers } = this.head
    const own = new Headers(headers)
    for (const [name, value] of Object.entries(added)) own.set(name, value)
    const body = this.#source === undefined
      ? null
      : this.#over && this.#error === undefined && this.#decoder?.fault === undefined
      ? this.bytes
      : this.#rest()
    return responseOf(this.head, own, body)
  }

  /** The error of a stream that ends here without having ended. */
  #broken(next: Uint8Array | undefined): Error | undefined {
    const decoder = this.#decoder
    if (decoder === undefined || decoder.isOver || (decoder.fault !== undefined && !decoder.isCut)) return undefined
    if (next !== undefined) decoder.feed([next])
    else if (!decoder.isCut) decoder.finish()
    if (decoder.fault !== undefined) this.#onFault?.(decoder.fault)
    return next === undefined && decoder.isCut ? new TypeError("terminated", { cause: new CutOff() }) : undefined
  }

  #rest(): ReadableStream<Uint8Array> {
    const parts = [...this.#parts]
    let stop = (): void => undefined
    return new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const part = parts.shift()
        if (part !== undefined) {
          controller.enqueue(part)
          return undefined
        }
        return new Promise((resolve) => {
          stop = this.#next((next) => {
            const broken = this.#broken(next)
            if (broken !== undefined) controller.error(broken)
            else if (next === undefined) controller.close()
            else controller.enqueue(next)
            resolve()
          }, (reason) => {
            if (this.#decoder?.isOver !== true) {
              this.#onFault?.((received) => Diagnosis.fromUnknown(reason, { received }))
            }
            controller.error(reason)
            resolve()
          })
        })
      },
      cancel: (reason) => {
        stop()
        this.discard(reason)
      }
    }, { highWaterMark: 0 })
  }
}

/** A `Response` that says of itself what its constructor cannot be told: where it came from, and a status of any kind. */
const responseOf = (head: Head, headers: Headers, body: BodyInit | null): Response => {
  const { redirected, status, statusText, type, url } = head
  const usual = status >= 200 && status <= 599
  const response = new Response(body, { status: usual ? status : 200, statusText, headers })
  Object.defineProperties(response, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    ...(usual ? {} : { status: { value: status }, ok: { value: false } })
  })
  return response
}

const streamed = /event-?stream|ndjson|jsonl|stream\+json/i

/** Whether an answer comes piece by piece, and is worth handing on before it is whole. */
const isStream = ({ headers }: Head, url: URL): boolean =>
  streamed.test(headers.get("content-type") ?? "") || url.pathname.endsWith(":streamGenerateContent")

/** Whether an answer is a stream of server-sent events. */
export const isEvents = (headers: Headers): boolean => /event-?stream/i.test(headers.get("content-type") ?? "")

const MIB = 1_048_576

/** The dialect of a path, if it is one of ours. */
export const protocolOf = ({ pathname }: URL): Protocol | undefined =>
  pathname.endsWith("/chat/completions")
    ? OpenAiChat.protocol
    : pathname.endsWith("/messages")
    ? AnthropicMessages.protocol
    : pathname.endsWith("/responses")
    ? OpenAiResponses.protocol
    : pathname.endsWith(":streamGenerateContent")
    ? Gemini.protocol
    : undefined

/** How much of a stream is held back until its first content: frames, and bytes. */
const OPENING = { frames: 64, bytes: 262_144 }

const isContent = ({ _tag }: Part): boolean => _tag === "Text" || _tag === "Reasoning" || _tag === "ToolCall"

/** What an attempt is made of. */
interface Parts<E, F, R> {
  readonly send: (watch: Liveness.Watch) => Effect.Effect<Head, E, R>
  /** Puts what the transport threw to the right, to be read, and leaves every other error as it is. */
  readonly sort: (error: E) => Either.Either<unknown, F>
  readonly url: URL
  /** Whether an answer is looked into that is no failure by its status. */
  readonly judges: boolean
  /** Told of what breaks the body of an answer after it was handed on. */
  readonly onFault?: OnFault
  /** Whether an event stream is handed on at its head, by whoever recovers the rest too. */
  readonly atHead?: boolean
  readonly options: Options
  /** Where the answer of an attempt that failed is kept, if somebody may want it. */
  readonly last: Last<E> | undefined
}

/**
 * One attempt: sends, reads as much as a verdict needs, and fails with the fault if there is one. An event stream is handed on at
 * its first content if its dialect is known, else at its head; any other answer when it is whole. How it ended is put into `last`.
 */
export const attempt = <E, F, R>(
  { atHead = false, judges, last, onFault, options: { body, codes, liveness }, send, sort, url }: Parts<E, F, R>
): Effect.Effect<Handed, F | Fault.Fault, R> => {
  const most = body?.bytes ?? MIB
  const told = codes === undefined ? {} : { codes }
  const threw = (error: E): Effect.Effect<never, F | Fault.Fault> => {
    last?.threw(error)
    return Either.match(sort(error), {
      onLeft: (other) => Effect.fail(other),
      onRight: (cause) =>
        Effect.flatMap(
          Clock.currentTimeMillis,
          (received) => Effect.fail(Diagnosis.fromUnknown(cause, { received, ...told }))
        )
    })
  }
  const judged = (
    answer: Answer,
    fault: (options: Diagnosis.Options & { readonly received: number }) => Fault.Fault | undefined
  ) =>
    Effect.flatMap(Clock.currentTimeMillis, (received): Effect.Effect<Handed, Fault.Fault> => {
      const found = fault({ received, ...told })
      if (found === undefined) return Effect.sync(() => answer.handed())
      if (last === undefined) answer.discard()
      else last.answered(answer)
      return Effect.fail(found)
    })
  const good = (answer: Answer): Effect.Effect<Handed, Fault.Fault> =>
    Effect.matchEffect(answer.read(most), {
      onSuccess: (read) =>
        read === "more" ? Effect.sync(() => answer.handed()) : judged(answer, (told) => inSuccess(answer, told)),
      onFailure: (error) => judged(answer, (told) => Diagnosis.fromUnknown(error, told))
    })
  const bad = (answer: Answer): Effect.Effect<Handed, Fault.Fault> =>
    Effect.zipRight(
      // the status has spoken: a body that breaks, or is slow or endless, takes nothing of that away
      Effect.raceFirst(Effect.exit(answer.read(most)), Effect.sleep(body?.within ?? "10 seconds")),
      judged(answer, (told) => Diagnosis.fromResponse(read(answer, new TextDecoder().decode(answer.bytes)), told))
    )
  const opening = (answer: Answer, protocol: Protocol): Effect.Effect<Handed, Fault.Fault> => {
    const decoder = new Decoder(protocol, told)
    answer.follow(decoder)
    let frames = 0
    const on: Effect.Effect<Handed, Fault.Fault> = Effect.matchEffect(answer.next, {
      onFailure: (error) => judged(answer, (told) => Diagnosis.fromUnknown(error, told)),
      onSuccess: (bytes) => {
        const parts = bytes === undefined ? decoder.finish() : decoder.feed([bytes])
        const { fault } = decoder
        frames += parts.length
        // what is handed on holds both: its content, and the fault behind it
        if (fault !== undefined) onFault?.(fault)
        return parts.some(isContent) || decoder.isOver
          ? Effect.sync(() => answer.handed())
          : fault !== undefined
          ? judged(answer, ({ received }) => fault(received))
          : frames > OPENING.frames || answer.length > OPENING.bytes
          ? Effect.sync(() => answer.handed())
          : on
      }
    })
    return on
  }
  return Effect.flatMap(Liveness.watch(liveness), (watch) =>
    Effect.matchEffect(
      Effect.onExit(send(watch), (exit) => Exit.isFailure(exit) ? Effect.sync(() => watch.close()) : Effect.void),
      {
        onFailure: threw,
        onSuccess: (head) => {
          const answer = new Answer(head, watch)
          if (onFault !== undefined) answer.tell(onFault)
          const ok = head.status >= 200 && head.status < 300
          const protocol = atHead ? undefined : protocolOf(url)
          const handled = (judges ? ok && isStream(head, url) : head.status < 400)
            ? judges && protocol !== undefined && isEvents(head.headers)
              ? Effect.onInterrupt(opening(answer, protocol), () => Effect.sync(() => answer.discard()))
              : Effect.sync(() => answer.handed())
            : Effect.onInterrupt(ok ? good(answer) : bad(answer), () => Effect.sync(() => answer.discard()))
          return ok ? Effect.zipRight(Effect.flatMap(Attempt.Attempt, ({ admitted }) => admitted), handled) : handled
        }
      }
    ))
}

/** A policy by which an attempt is made once, and what it is worth is read all the same. */
const single = (policy: RetryPolicy.RetryPolicy): RetryPolicy.RetryPolicy => ({
  ...policy,
  tiers: Record.map(policy.tiers, (tier) => ({ ...tier, attempts: 1 }))
})

/** The hold of a program, and whom a call asks, unless it is nobody's business. */
const heldIn = (context: Context.Context<never>, { target = targetOf }: Options, asked: () => Asked) =>
  Option.flatMap(
    Context.getOption(context, Hold.Hold),
    (hold) => Option.map(Option.fromNullable(target(asked())), (target) => ({ hold, target }))
  )

/** What a recovery beneath is told of a request. */
interface Beneath {
  readonly asked: () => Asked
  readonly last?: Last<never> | Last<unknown>
  /** Whether it may be made but once. */
  readonly once?: boolean
}

/**
 * A recovery beneath the hold, where there is one, whose listeners are told: the one of the options, and the program's own. What is
 * left of an attempt is hung up on as soon as there will be another.
 */
export const beneath = <A, E, R>(
  options: Recovery.Options & Options,
  { asked, last, once = false }: Beneath,
  free: (options: Recovery.Free) => Effect.Effect<A, E, R>,
  shared: (options: Recovery.Held) => Effect.Effect<A, E, R | Hold.Hold>
): Effect.Effect<A, E, R> =>
  Effect.contextWithEffect((context: Context.Context<never>) => {
    const outer = Context.get(context, Recovery.Listener)
    const { gate = "open", listener, policy: given = RetryPolicy.standard } = options
    const policy = once ? single(given) : given
    const call = Option.match(heldIn(context, options, asked), {
      onNone: () => free({ policy }),
      onSome: ({ hold, target }) => Effect.provideService(shared({ policy, target, gate }), Hold.Hold, hold)
    })
    return last === undefined && listener === undefined
      ? call
      : Recovery.withListener(call, (event) =>
        Effect.suspend(() => {
          if (event._tag === "Retrying") last?.discard()
          listener?.(event)
          return outer === undefined ? Effect.void : outer(event)
        }))
  })

/** An attempt, recovered beneath. */
export const recovered = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options: Recovery.Options & Options,
  told: Beneath
): Effect.Effect<A, E | Fault.Fault, R> =>
  beneath<A, E | Fault.Fault, R>(
    options,
    told,
    (options) => Recovery.recover(self, options),
    (options) => Recovery.recover(self, options)
  )

const read = ({ head: { headers, status } }: Answer, body: string) => ({ status, headers, body })

/** The fault of a whole 2xx, if it has one. */
const inSuccess = (answer: Answer, told: Diagnosis.Options): Fault.Fault | undefined => {
  const { bytes } = answer
  // gzip that a client leaves to its caller is for the caller to read
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return undefined
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch (error) {
    return Diagnosis.fromUnknown(error, told)
  }
  return Diagnosis.fromAnswer(read(answer, text), told)
}
