import { NodeInspectSymbol } from "effect/Inspectable"
import { type Answer, type Answers, unwrap } from "./answers.ts"
import { eachHeader } from "./headers.ts"
import { mask, maskBody } from "./mask.ts"
import { textOf } from "./peek.ts"

/** An answer as it reached us, which only Diagnosis and Reset may see. */
export interface Raw {
  readonly status: number | undefined
  readonly headers: unknown
  /** Text, or a value that was parsed already. */
  readonly body: unknown
  /** Where it was met; a 2xx on a thrown object says nothing. */
  readonly origin: "http" | "frame" | "thrown"
  /** What the object says about itself that carried the answer, when it was thrown. */
  readonly carrier?: Answer | undefined
  /** What was written to a log is masked and cut already, and its sentence was read when it was whole. */
  readonly logged?: { readonly message: string | undefined; readonly page: string | undefined } | undefined
}

const MESSAGE_CAP = 1_024
const HEADER_CAP = 256
const HEADERS_CAP = 64

const readable =
  /^(?:content-type|date|server|via|cf-ray|cf-mitigated|x-should-retry|x-request-id|request-id|x-amzn-requestid|x-amzn-errortype|x-ms-request-id|apim-request-id|x-ms-region|(?:x-(?:ms-)?)?retry-after(?:-ms)?|reset_at|x-codex-.*|(?:.*-)?rate-?limit(?:-.*)?)$/

/** Whether a header names a request, for whoever is asked about it. */
export const isRequestId = (name: string): boolean => /(?:^|-)request-?id$|^cf-ray$/.test(name)

let readRaw: (response: Response) => Raw
let readAnswers: (response: Response) => Answers
let transportProse: (leaf: Transport) => Prose
let terminalProse: (leaf: Terminal) => Prose

export class Response {
  readonly _tag = "Response"
  /** The HTTP status; a frame has none. */
  readonly status: number | undefined
  /** Where it was met. */
  readonly origin: Raw["origin"]
  readonly #raw: Raw
  #answers: Answers | undefined
  #headers: Readonly<Record<string, string>> | undefined
  #text: string | undefined
  #message: string | undefined

  static {
    readRaw = (response) => response.#raw
    readAnswers = (response) =>
      response.#answers ??= unwrap(response.#raw.body, response.#raw.origin === "frame", response.#raw.carrier)
  }

  constructor(raw: Raw) {
    this.status = raw.status
    this.origin = raw.origin
    this.#raw = raw
    this.#message = raw.logged?.message
  }

  /** The headers that say how to proceed or whom to ask, lower case, masked; at most 64 of 256 characters. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#headers === undefined) {
      const found: Array<readonly [string, string]> = []
      eachHeader(this.#raw.headers, (held, value) => {
        const name = held.length <= 64 ? held.toLowerCase() : ""
        if (found.length < HEADERS_CAP && readable.test(name) && !/key|token$|secret|auth|cookie/.test(name)) {
          found.push([name, this.#shown(value, HEADER_CAP)])
        }
      })
      this.#headers = Object.fromEntries(found)
    }
    return this.#headers
  }

  /** The body as text, masked, at most 16,384 characters. */
  get text(): string | undefined {
    if (this.#text === undefined) {
      const text = textOf(this.#raw.body)
      if (text !== undefined) this.#text = this.#raw.logged === undefined ? maskBody(text) : text
    }
    return this.#text
  }

  /** The masked text parsed as JSON; nothing if it is none, or was cut. */
  get body(): unknown {
    try {
      const value: unknown = JSON.parse(this.text ?? "")
      return value
    } catch {
      return undefined
    }
  }

  /** The sentence of the innermost answer, masked, at most 1,024 characters; an HTML page has none. */
  get message(): string | undefined {
    if (this.#message === undefined && this.#raw.logged === undefined && this.page === undefined) {
      const text = readAnswers(this).list.find((answer) => answer.texts.length > 0)?.texts[0]
      if (text !== undefined) this.#message = maskBody(text, MESSAGE_CAP)
    }
    return this.#message
  }

  /** The title of an HTML page, empty if the page has none; nothing for any other body. */
  get page(): string | undefined {
    if (this.#raw.logged !== undefined) return this.#raw.logged.page
    const title = readAnswers(this).page
    return title === undefined ? undefined : this.#shown(title, HEADER_CAP)
  }

  #shown(text: string, most?: number): string {
    return this.#raw.logged === undefined ? mask(text, most) : text
  }

  /** @internal */
  toJSON(): unknown {
    return { _tag: this._tag, status: this.status, headers: this.headers, message: this.message, text: this.text }
  }

  /** @internal */
  [NodeInspectSymbol](): unknown {
    return this.toJSON()
  }
}

/** A failure that is no answer, as it was met. */
export interface Prose {
  /** The deepest cause's own message. */
  readonly detail: string
  /** All messages of the chain, the deepest first; what markers may look at. */
  readonly text: string
  /** The names that the errors of the chain go by, the deepest first. */
  readonly names: ReadonlyArray<string>
  /** What was written to a log is masked and cut already. */
  readonly logged?: boolean
}

const shown = ({ detail, logged }: Prose): string => logged === true ? detail : mask(detail, MESSAGE_CAP)

export class Transport {
  readonly _tag = "Transport"
  /** `ECONNRESET`, `UND_ERR_SOCKET`, `TimeoutError`, `WS_1006`: what the layer below named, if it named anything. */
  readonly code: string | undefined
  readonly #prose: Prose
  #detail: string | undefined

  static {
    transportProse = (transport) => transport.#prose
  }

  constructor(prose: Prose, code: string | undefined) {
    this.code = code
    this.#prose = prose
  }

  /** The deepest cause's own message, masked, at most 1,024 characters: every wrapper says the same generic thing. */
  get detail(): string {
    return this.#detail ??= shown(this.#prose)
  }

  /** @internal */
  toJSON(): unknown {
    return { _tag: this._tag, code: this.code, detail: this.detail }
  }

  /** @internal */
  [NodeInspectSymbol](): unknown {
    return this.toJSON()
  }
}

export class Terminal {
  readonly _tag = "Terminal"
  /** `DEPTH_ZERO_SELF_SIGNED_CERT`, `ERR_INVALID_URL`: what the layer below named, if it named anything. */
  readonly code: string | undefined
  readonly #prose: Prose
  #description: string | undefined

  static {
    terminalProse = (terminal) => terminal.#prose
  }

  constructor(prose: Prose, code: string | undefined) {
    this.code = code
    this.#prose = prose
  }

  /** The deepest cause's own message, masked, at most 1,024 characters. */
  get description(): string {
    return this.#description ??= shown(this.#prose)
  }

  /** @internal */
  toJSON(): unknown {
    return { _tag: this._tag, code: this.code, description: this.description }
  }

  /** @internal */
  [NodeInspectSymbol](): unknown {
    return this.toJSON()
  }
}

/** The unredacted answer. */
export const rawOf = (response: Response): Raw => readRaw(response)

/** What the answer says, unwrapped once. */
export const answersOf = (response: Response): Answers => readAnswers(response)

/** The unredacted messages. */
export const proseOf = (leaf: Transport | Terminal): Prose =>
  leaf._tag === "Transport" ? transportProse(leaf) : terminalProse(leaf)
