import * as Diagnosis from "@recourse/core/Diagnosis"
import type * as Fault from "@recourse/core/Fault"
import * as StreamEnd from "@recourse/core/StreamEnd"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { createParser } from "eventsource-parser"
import type { Options, Part, Protocol } from "../Protocol.ts"
import { at } from "./frames.ts"

export class FrameTooLong extends Error {
  override readonly name = "FrameTooLong"

  constructor(limit: number) {
    super(`a frame of the stream is longer than ${limit} characters`)
  }
}

const LONGEST = 4_194_304

/** The frame in a text, or the text itself. */
const frameOf = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return data
  }
}

const isError = (frame: unknown, event: string | undefined): boolean => {
  const error = at(frame, "error") ?? at(frame, "choices", 0, "error")
  return event === "error" || at(frame, "type") === "error" || (error !== undefined && error !== null)
}

export type Ended = (received: number) => Fault.Fault

/** Takes the bytes of one answer apart. */
export class Decoder {
  readonly #text = new TextDecoder("utf-8", { fatal: true })
  readonly #read: ReturnType<Protocol["reader"]>
  readonly #options: Options
  readonly #parser: ReturnType<typeof createParser>
  #parts: Array<Part> = []
  /** A line that the end of the bytes has completed, and not its own. */
  #last = false
  isOver = false
  /** The bytes have ended without a terminal event. */
  isCut = false
  fault: Ended | undefined

  constructor(protocol: Protocol, options: Options) {
    this.#options = options
    this.#read = protocol.reader()
    const { frame: longest = LONGEST } = options
    this.#parser = createParser({
      maxBufferSize: longest,
      onEvent: ({ data, event }) => this.#take(data, event),
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.#threw(new FrameTooLong(longest))
      }
    })
  }

  /** What some bytes add, up to the first fault. */
  feed(chunk: Iterable<Uint8Array>): ReadonlyArray<Part> {
    for (const bytes of chunk) {
      if (this.fault !== undefined) break
      try {
        this.#parser.feed(this.#text.decode(bytes, { stream: true }))
      } catch (error) {
        this.#threw(error)
      }
    }
    return this.#out()
  }

  /** What the end of the bytes adds, a last frame that lacks but its empty line; without a terminal event it is a cut. */
  finish(): ReadonlyArray<Part> {
    this.#last = true
    if (this.fault === undefined) this.#parser.feed("\n\n")
    if (this.fault === undefined && !this.isOver) {
      this.isCut = true
      this.fault = (received) => Diagnosis.fromCut({ received })
    }
    return this.#out()
  }

  #out(): ReadonlyArray<Part> {
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  #threw(error: unknown): void {
    // an answer that is whole has nothing more to lose
    if (this.fault === undefined && !this.isOver) {
      this.fault = (received) => Diagnosis.fromUnknown(error, { received })
    }
  }

  #take(data: string, event: string | undefined): void {
    if (this.fault !== undefined) return
    const frame = frameOf(data)
    const end = StreamEnd.fromFrame(frame)
    const text = typeof frame === "string"
    // half a frame is no frame
    if (text && end === undefined && this.#last) return
    const ends = end !== undefined && (end._tag === "Complete" || end._tag === "OutputCap")
    if (!this.isOver && (isError(frame, event) || (end === undefined ? text : !ends))) {
      const { codes } = this.#options
      this.fault = (received) => Diagnosis.fromFrame(frame, codes === undefined ? { received } : { received, codes })
      return
    }
    const parts = text ? [] : this.#read(frame)
    this.#parts.push(...parts)
    if (ends) {
      this.isOver = true
      this.#parts.push({ _tag: "End", end })
    } else if (parts.length === 0) this.#parts.push({ _tag: "Other", frame })
  }
}

type Next = Effect.Effect<Chunk.Chunk<Part>, Option.Option<Fault.Fault>>

/** What a decoder makes of the next bytes, or of their end; nothing where they have but begun something. */
export const taken = (decoder: Decoder, bytes: Iterable<Uint8Array> | undefined): Next | undefined => {
  const parts = bytes === undefined ? decoder.finish() : decoder.feed(bytes)
  return parts.length > 0
    ? Effect.succeed(Chunk.unsafeFromArray(parts))
    : decoder.fault !== undefined
    ? failing(decoder.fault)
    : bytes === undefined
    ? Effect.fail(Option.none())
    : undefined
}

/** The parts of what is pulled, as it is pulled: one chunk of bytes gives at most one of parts. */
export const decoded = <E, R>(
  decoder: Decoder,
  bytes: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<E>, R>
): Effect.Effect<Chunk.Chunk<Part>, Option.Option<E | Fault.Fault>, R> => {
  const ended = Effect.suspend(() => taken(decoder, undefined) ?? Effect.fail(Option.none()))
  type All = Effect.Effect<Chunk.Chunk<Part>, Option.Option<E | Fault.Fault>, R>
  const next: All = Effect.suspend(() =>
    decoder.fault !== undefined ? failing(decoder.fault) : Effect.matchEffect(bytes, {
      onFailure: (error): All => Option.isNone(error) || decoder.isOver ? ended : Effect.fail(error),
      onSuccess: (chunk): All => taken(decoder, chunk) ?? next
    })
  )
  return next
}

export const failing = (fault: Ended): Effect.Effect<never, Option.Option<Fault.Fault>> =>
  Effect.flatMap(Clock.currentTimeMillis, (received) => Effect.fail(Option.some(fault(received))))
