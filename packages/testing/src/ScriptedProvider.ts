/**
 * A provider on loopback that fails as it is told: real sockets, a script that says what happens to each request, and a record
 * of the requests that it saw. For testing your own recovery, whatever makes the calls.
 *
 * It speaks OpenAI's chat completions and responses, Anthropic's messages and Gemini's `generateContent`, plain and streamed, by the
 * path of the request and its `stream` field, well enough for their official clients. It does not check keys, count tokens or read prompts. It runs on
 * Node, of whose modules alone it is made.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import * as Http2 from "node:http2"
import type * as Net from "node:net"
import * as Tls from "node:tls"
import { gzipSync } from "node:zlib"
import { answerTo, type Ending, type Said } from "./internal/dialects.ts"

// --- steps -------------------------------------------------------------------------------------------------------------

/**
 * What is done to one request. Made by the constructors of this module.
 *
 * @category models
 * @since 0.1.0
 */
export type Step =
  | {
    readonly _tag: "Good"
    readonly said: Said
    readonly ending?: Ending
    readonly kept?: number | undefined
    readonly flaw?: "truncated" | "notUtf8" | "brokenGzip"
  }
  | {
    readonly _tag: "Answer"
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: string | Uint8Array
  }
  | {
    readonly _tag: "Partly"
    readonly of: Whole
    readonly keep: { readonly share: number } | { readonly bytes: number }
    readonly after: "fin" | "silence" | "reset"
  }
  | {
    readonly _tag: "Paced"
    readonly of: Whole
    readonly bytes: number
    readonly every: number
    readonly resetAfter: number
  }
  | { readonly _tag: "KeepAlive"; readonly every: number }
  | { readonly _tag: "Unread" | "Reset" | "Silent" | "GoAway" }

/**
 * A step that sends a whole answer.
 *
 * @category models
 * @since 0.1.0
 */
export type Whole = Extract<Step, { readonly _tag: "Good" | "Answer" }>

/**
 * What a good answer holds beside its text: reasoning before it, a tool call after it, and whether it stops at its output cap.
 *
 * @category models
 * @since 0.1.0
 */
export interface GoodOptions {
  readonly reasoning?: string
  readonly tool?: { readonly name: string; readonly input: unknown }
  readonly capped?: boolean
}

/**
 * A good answer, in the dialect and the form that the request asks for.
 *
 * @category constructors
 * @since 0.1.0
 */
export const good = (text = "Here is the answer.", options: GoodOptions = {}): Whole => ({
  _tag: "Good",
  said: { text, ...options }
})

/**
 * A streamed answer that ends otherwise than by its terminal event: by `nothing`, by an `error` frame, or by a terminal event
 * that reports a `failure`; after `kept` frames of its content, all by default. A plain answer stays as it is.
 *
 * @example
 * ```ts
 * import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
 *
 * // an overload after two frames
 * ScriptedProvider.ends("error", { kept: 2 })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const ends = (
  ending: Exclude<Ending, "terminal">,
  options: GoodOptions & { readonly text?: string; readonly kept?: number } = {}
): Whole => {
  const { kept, text = "Here is the answer.", ...rest } = options
  return { _tag: "Good", said: { text, ...rest }, ending, kept }
}

/**
 * An answer as it is given: a status, headers, and a body as text, as bytes, or as a value that is sent as JSON. With no body it
 * is an empty one; with no content type it is JSON.
 *
 * @example
 * ```ts
 * import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
 *
 * ScriptedProvider.answer(429, { headers: { "retry-after": "1" }, body: { error: { message: "Rate limited" } } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const answer = (
  status: number,
  options: { readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown } = {}
): Whole => ({
  _tag: "Answer",
  status,
  headers: Object.fromEntries(
    Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
  ),
  body: options.body === undefined
    ? ""
    : typeof options.body === "string" || options.body instanceof Uint8Array
    ? options.body
    : JSON.stringify(options.body)
})

/**
 * An HTML page under a status of 200, as a proxy sends it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const page: Whole = answer(200, {
  headers: { "content-type": "text/html" },
  body: "<!doctype html><html><head><title>Welcome</title></head><body>Please sign in.</body></html>"
})

/**
 * A 200 with nothing in it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Whole = answer(200)

/**
 * A good answer whose JSON breaks off although all the bytes arrive that were announced.
 *
 * @category constructors
 * @since 0.1.0
 */
export const truncated: Step = { _tag: "Good", said: { text: "Here is the answer." }, flaw: "truncated" }

/**
 * A good answer with bytes in its text that are no UTF-8.
 *
 * @category constructors
 * @since 0.1.0
 */
export const notUtf8: Step = { _tag: "Good", said: { text: "Here is the answer." }, flaw: "notUtf8" }

/**
 * A good answer in gzip with bytes in it that are wrong, although as many arrive as were announced.
 *
 * @category constructors
 * @since 0.1.0
 */
export const brokenGzip: Step = { _tag: "Good", said: { text: "Here is the answer." }, flaw: "brokenGzip" }

/**
 * An answer whose body is cut: `keep`, half by default, of its bytes, and then the connection is closed. Of an answer without a
 * body, at least a byte is announced.
 *
 * @category constructors
 * @since 0.1.0
 */
export const cut = (of: Whole = good(), keep = 0.5): Step => ({
  _tag: "Partly",
  of,
  keep: { share: keep },
  after: "fin"
})

/**
 * An answer whose body is cut after so many bytes, but for its last one: by the end of the connection, or by its reset (RST).
 *
 * @category constructors
 * @since 0.1.0
 */
export const cutAfter = (bytes: number, of: Whole = good(), by: "fin" | "reset" = "fin"): Step => ({
  _tag: "Partly",
  of,
  keep: { bytes },
  after: by
})

/**
 * An answer whose body is written in pieces of so many bytes, 1 by default, every so many milliseconds: 50 by default, 0 for as
 * soon as the piece before is out. With `resetAfter`, the connection is reset once so many bytes are out.
 *
 * @category constructors
 * @since 0.1.0
 */
export const paced = (
  of: Whole = good(),
  { bytes = 1, every = 50, resetAfter = Number.POSITIVE_INFINITY }: {
    readonly bytes?: number
    readonly every?: number
    readonly resetAfter?: number
  } = {}
): Step => ({ _tag: "Paced", of, bytes, every, resetAfter })

/**
 * An event stream of keep-alive comments, one every so many milliseconds, until the client gives up.
 *
 * @category constructors
 * @since 0.1.0
 */
export const keepAlive = (every = 50): Step => ({ _tag: "KeepAlive", every })

/**
 * An answer whose body stalls: `keep`, half by default, of its bytes, and then nothing until the client gives up.
 *
 * @category constructors
 * @since 0.1.0
 */
export const stalled = (of: Whole = good(), keep = 0.5): Step => ({
  _tag: "Partly",
  of,
  keep: { share: keep },
  after: "silence"
})

/**
 * The request is read and never answered.
 *
 * @category constructors
 * @since 0.1.0
 */
export const silent: Step = { _tag: "Silent" }

/**
 * The connection is accepted and nothing of it is read. The answer before it closes its connection, so that the client has to
 * open another one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unread: Step = { _tag: "Unread" }

/**
 * The request is read and the connection reset (RST) before any byte of an answer.
 *
 * @category constructors
 * @since 0.1.0
 */
export const reset: Step = { _tag: "Reset" }

/**
 * HTTP/2: a GOAWAY that counts the request among those that were not processed. Under HTTP/1.1 it is a reset.
 *
 * @category constructors
 * @since 0.1.0
 */
export const goAway: Step = { _tag: "GoAway" }

// --- the provider ------------------------------------------------------------------------------------------------------

/**
 * A request as the provider saw it. One whose connection was never read has a method and a path of no characters.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  /** Epoch milliseconds of the wall clock. */
  readonly at: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
}

/**
 * How a provider is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** `http` by default; `https` and `h2` (HTTP/2 over TLS) show `certificate`, which is self-signed. */
  readonly protocol?: "http" | "https" | "h2"
}

/**
 * The scripted provider.
 *
 * @category tags
 * @since 0.1.0
 */
export class ScriptedProvider extends Context.Tag("@recourse/testing/ScriptedProvider")<ScriptedProvider, {
  /** Where it listens, without a slash at the end: `http://127.0.0.1:49152`. */
  readonly url: string
  /** Begins a new script and forgets the requests so far. What is asked for after the last step gets a good answer. */
  readonly play: (...steps: ReadonlyArray<Step>) => Effect.Effect<void>
  /** The requests since the script began, in order. */
  readonly requests: Effect.Effect<ReadonlyArray<Request>>
  /** How many requests are being answered, or kept waiting, now: none once every client has its answer or has hung up. */
  readonly open: Effect.Effect<number>
  /** Closes the port and every connection: whoever connects now is refused. */
  readonly down: Effect.Effect<void>
  /** Listens again, on the same port; a defect if somebody has taken it meanwhile. */
  readonly up: Effect.Effect<void>
}>() {}

/**
 * The provider of a program without Effect; what it does is what the service does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Started {
  readonly url: string
  readonly play: (...steps: ReadonlyArray<Step>) => void
  readonly requests: () => ReadonlyArray<Request>
  readonly open: () => number
  readonly down: () => Promise<void>
  readonly up: () => Promise<void>
  /** Closes the port and every connection, for good. */
  readonly close: () => Promise<void>
}

/**
 * The certificate that `https` and `h2` show, for `localhost` and `127.0.0.1`. It protects nothing: its key is public.
 *
 * @category models
 * @since 0.1.0
 */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUEmB6AM+iOdTTk0a5kGpeC9KEb20wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDAxMjUxM1oYDzIxMjYxMTA2
MDEyNTEzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQpMtGCAOPPfpzsUJa1F0psXySMXE3SjKvyuIhS42dLh+I11pw+5P+x
tz81F9ZVxL/5e3AeWagF0tIH3ckzpRSpo28wbTAdBgNVHQ4EFgQUVtcxwXwyluok
4pkIR0K5jLN2fT4wHwYDVR0jBBgwFoAUVtcxwXwyluok4pkIR0K5jLN2fT4wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAOTO0fSDVxEAcMguV1zcf/Q6N58Ll19qUQcDiDqRBXfzAiB1
R+EGBGFPTe2fV1KmWQlrE1hY4MIZPSdpqmxnviKqsg==
-----END CERTIFICATE-----
`

const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjuWKJYrW98+B3Fwm
DYCU87vEU66R9Lz6OJ2NJsDL6RihRANCAAQpMtGCAOPPfpzsUJa1F0psXySMXE3S
jKvyuIhS42dLh+I11pw+5P+xtz81F9ZVxL/5e3AeWagF0tIH3ckzpRSp
-----END PRIVATE KEY-----
`

type Incoming = Http.IncomingMessage | Http2.Http2ServerRequest
type Outgoing = Http.ServerResponse | Http2.Http2ServerResponse

const isHttp2 = (response: Outgoing): response is Http2.Http2ServerResponse => "stream" in response

/** The bytes of a whole answer, in the pieces in which they are written. */
const render = (step: Whole, request: Request): {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: ReadonlyArray<Uint8Array>
} => {
  if (step._tag === "Answer") {
    const bytes = Buffer.from(step.body)
    return {
      status: step.status,
      headers: { "content-type": "application/json", "content-length": String(bytes.length), ...step.headers },
      pieces: [bytes]
    }
  }
  const { contentType, pieces } = answerTo(request.path, request.body, step.said, step.ending, step.kept)
  const whole = Buffer.from(pieces.join(""))
  if (step.flaw === undefined) {
    const length = pieces.length === 1 ? { "content-length": String(whole.length) } : {}
    return {
      status: 200,
      headers: { "content-type": contentType, ...length },
      pieces: pieces.map((piece) => Buffer.from(piece))
    }
  }
  const half = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, Math.floor(bytes.length / 2))
  switch (step.flaw) {
    case "truncated":
      return flawed(contentType, half(whole))
    case "notUtf8":
      return flawed(
        contentType,
        Buffer.from(whole.toString("latin1").replace("answer", "\u00FF\u00FE\u00FF"), "latin1")
      )
    case "brokenGzip":
      return flawed(contentType, gzipSync(whole).fill(0, 24, 48), { "content-encoding": "gzip" })
  }
}

const flawed = (contentType: string, bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}) => ({
  status: 200,
  headers: { "content-type": contentType, "content-length": String(bytes.length), ...headers },
  pieces: [bytes]
})

/** The first bytes of several pieces, at least one fewer than all. */
const share = (
  pieces: ReadonlyArray<Uint8Array>,
  keep: Extract<Step, { readonly _tag: "Partly" }>["keep"]
): Uint8Array => {
  const whole = Buffer.concat(pieces)
  const most = "bytes" in keep ? keep.bytes : Math.floor(whole.length * keep.share)
  return whole.subarray(0, Math.max(0, Math.min(whole.length - 1, most)))
}

class Server {
  readonly requests: Array<Request> = []
  readonly #sockets = new Set<Net.Socket>()
  readonly #busy = new Set<Net.Socket>()
  readonly #open = new Set<Outgoing>()
  readonly #protocol: NonNullable<Options["protocol"]>
  readonly #parser: Http.Server | Http2.Http2SecureServer
  readonly #listener: Net.Server
  #script: Array<Step> = []
  #port = 0

  constructor(protocol: NonNullable<Options["protocol"]>) {
    this.#protocol = protocol
    const handler = (request: Incoming, response: Outgoing): void => {
      this.#read(request, response)
    }
    this.#parser = protocol === "h2"
      ? Http2.createSecureServer({ key, cert: certificate }, handler)
      : Http.createServer({ keepAliveTimeout: 60_000 }, handler)
    // a connection that is still shaking hands is one to close
    const track = (socket: Net.Socket): void => {
      this.#sockets.add(socket)
      socket.on("close", () => this.#sockets.delete(socket))
    }
    const accept = (socket: Net.Socket): void => {
      track(socket)
      // a client that hangs up is what the scripts are about
      socket.on("error", () => undefined)
      if (this.#script[0]?._tag === "Unread") {
        this.#script.shift()
        this.requests.push({ at: Date.now(), method: "", path: "", headers: {}, body: "" })
        socket.pause()
      } else if (protocol !== "h2") this.#parser.emit("connection", socket)
    }
    this.#listener = protocol === "http"
      ? new Http.Server().removeAllListeners("connection").on("connection", accept)
      : protocol === "https"
      ? Tls.createServer({ key, cert: certificate }, accept).on("connection", track)
      : this.#parser.on("connection", accept)
  }

  get url(): string {
    return `${this.#protocol === "http" ? "http" : "https"}://127.0.0.1:${this.#port}`
  }

  get open(): number {
    return this.#open.size
  }

  play(steps: ReadonlyArray<Step>): void {
    this.#script = [...steps]
    this.requests.length = 0
  }

  readonly up: Effect.Effect<void> = Effect.async((resume) => {
    if (this.#listener.listening) return resume(Effect.void)
    const taken = (error: Error): void => resume(Effect.die(error))
    this.#listener.once("error", taken)
    this.#listener.listen(this.#port, "127.0.0.1", () => {
      this.#listener.off("error", taken)
      const address = this.#listener.address()
      if (typeof address === "object" && address !== null) this.#port = address.port
      resume(Effect.void)
    })
  })

  readonly down: Effect.Effect<void> = Effect.async((resume) => {
    this.#listener.close(() => resume(Effect.void))
    for (const socket of this.#sockets) socket.destroy()
  })

  #read(incoming: Incoming, response: Outgoing): void {
    const at = Date.now()
    const { socket } = incoming
    this.#busy.add(socket)
    this.#open.add(response)
    response.on("close", () => {
      this.#busy.delete(socket)
      this.#open.delete(response)
    })
    const parts: Array<Uint8Array> = []
    incoming.on("data", (part: Uint8Array) => parts.push(part))
    incoming.on("error", () => undefined)
    response.on("error", () => undefined)
    incoming.on("end", () => {
      const request = {
        at,
        method: incoming.method ?? "",
        path: (incoming.url ?? "").split("?", 1)[0] ?? "",
        headers: incoming.headers,
        body: Buffer.concat(parts).toString("utf8")
      }
      this.requests.push(request)
      this.#act(this.#script.shift() ?? good(), request, response)
    })
  }

  #act(step: Step, request: Request, response: Outgoing): void {
    switch (step._tag) {
      case "Good":
      case "Answer": {
        const { headers, pieces, status } = render(step, request)
        this.#head(response, status, headers)
        for (const piece of pieces) write(response, piece)
        response.end()
        return
      }
      case "Partly": {
        const { headers, pieces, status } = render(step.of, request)
        this.#head(
          response,
          status,
          headers["content-length"] === "0" ? { ...headers, "content-length": "1" } : headers
        )
        const sent = share(pieces, step.keep)
        write(response, sent)
        if (step.after === "fin") this.#close(response)
        // what was written is to arrive before the reset
        else if (step.after === "reset") setTimeout(() => this.#hangUp(response), 20)
        return
      }
      case "Paced": {
        const { headers, pieces, status } = render(step.of, request)
        this.#head(response, status, headers)
        const whole = Buffer.concat(pieces)
        let at = 0
        const next = (): void => {
          if (response.destroyed) return
          write(response, whole.subarray(at, at + step.bytes))
          at += step.bytes
          // what was written is to arrive before the reset
          if (at >= step.resetAfter) setTimeout(() => this.#hangUp(response), 20)
          else if (at >= whole.length) response.end()
          else if (step.every === 0) setImmediate(next)
          else setTimeout(next, step.every)
        }
        next()
        return
      }
      case "KeepAlive": {
        this.#head(response, 200, { "content-type": "text/event-stream" })
        const timer = setInterval(() => write(response, Buffer.from(": still here\n\n")), step.every)
        response.on("close", () => clearInterval(timer))
        return
      }
      case "Silent":
      case "Unread":
        return
      case "Reset":
        this.#hangUp(response)
        return
      case "GoAway":
        if (isHttp2(response)) response.stream.session?.goaway(Http2.constants.NGHTTP2_NO_ERROR, 0)
        this.#hangUp(response)
    }
  }

  #head(response: Outgoing, status: number, headers: Readonly<Record<string, string>>): void {
    if (isHttp2(response)) response.writeHead(status, headers)
    else if (this.#script[0]?._tag === "Unread") {
      // only a new connection can stay unread
      for (const socket of this.#sockets) if (!this.#busy.has(socket)) socket.destroy()
      response.writeHead(status, { ...headers, connection: "close" })
    } else response.writeHead(status, headers)
  }

  /** FIN once what was written is out. */
  #close(response: Outgoing): void {
    if (isHttp2(response)) response.stream.close(Http2.constants.NGHTTP2_INTERNAL_ERROR)
    else response.socket?.end()
  }

  #hangUp(response: Outgoing): void {
    if (isHttp2(response)) response.stream.session?.close()
    else if (this.#protocol === "http") response.socket?.resetAndDestroy()
    else response.socket?.destroy()
  }
}

const write = (response: Outgoing, bytes: Uint8Array): void => {
  if (isHttp2(response)) response.write(bytes)
  else response.write(bytes)
}

/**
 * A provider that listens on a port of its own, on loopback, as long as its scope is open.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options = {}
): Effect.Effect<Context.Tag.Service<ScriptedProvider>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.suspend(() => {
        const server = new Server(options.protocol ?? "http")
        return Effect.as(server.up, server)
      }),
      (server) => server.down
    ),
    (server) => ({
      url: server.url,
      play: (...steps) => Effect.sync(() => server.play(steps)),
      requests: Effect.sync(() => [...server.requests]),
      open: Effect.sync(() => server.open),
      up: server.up,
      down: server.down
    })
  )

/**
 * A provider for the tests in its scope.
 *
 * @example
 * ```ts
 * import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
 * import { Effect } from "effect"
 *
 * const test = Effect.gen(function*() {
 *   const provider = yield* ScriptedProvider.ScriptedProvider
 *   yield* provider.play(ScriptedProvider.reset, ScriptedProvider.good("Hello"))
 *   yield* callYourAgent(`${provider.url}/v1`)
 *   const requests = yield* provider.requests // 2, if it recovers
 * }).pipe(Effect.provide(ScriptedProvider.layer()))
 *
 * declare const callYourAgent: (baseUrl: string) => Effect.Effect<string>
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<ScriptedProvider> => Layer.scoped(ScriptedProvider, make(options))

/**
 * A provider for tests without Effect, until it is closed.
 *
 * @example
 * ```ts
 * import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
 *
 * const provider = await ScriptedProvider.start()
 * provider.play(ScriptedProvider.reset, ScriptedProvider.good("Hello"))
 * // … calls to `${provider.url}/v1`
 * provider.requests().length // 2, if they recover
 * await provider.close()
 *
 * export {}
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const start = async ({ protocol = "http" }: Options = {}): Promise<Started> => {
  const server = new Server(protocol)
  await Effect.runPromise(server.up)
  return {
    url: server.url,
    play: (...steps) => server.play(steps),
    requests: () => [...server.requests],
    open: () => server.open,
    up: () => Effect.runPromise(server.up),
    down: () => Effect.runPromise(server.down),
    close: () => Effect.runPromise(server.down)
  }
}
