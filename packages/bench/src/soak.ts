// Two hundred streams at a time through one client, whose requests meet faults at random. Prints what came of them as JSON.
//   node --expose-gc soak.js [seconds]
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Fault from "@recourse/core/Fault"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import type * as StreamRecovery from "@recourse/core/StreamRecovery"
import * as NodeClient from "@recourse/platform/NodeClient"
import type * as Protocol from "@recourse/platform/Protocol"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { SPOKEN } from "./provider.ts"

const seconds = Number(process.argv[2] ?? 60)
const AT_ONCE = 200

export interface Soaked {
  readonly streams: number
  readonly whole: number
  readonly cut: number
  readonly failed: number
  readonly interrupted: number
  readonly retries: number
  /** Streams whose text was no beginning of the answer, or ended as a whole one and was not. */
  readonly wrong: number
  readonly unhandled: number
  readonly sockets: { readonly before: number; readonly after: number }
  readonly heap: { readonly before: number; readonly after: number }
}

let unhandled = 0
process.on("unhandledRejection", () => unhandled++)

const child = spawn(process.execPath, [fileURLToPath(new URL("./provider.js", import.meta.url)), "faults"], {
  stdio: ["pipe", "pipe", "inherit"]
})
const url = String((await once(child.stdout, "data"))[0]).trim()

const tier = { attempts: 4, base: 5, ceiling: 20 }
const policy = Either.getOrThrow(
  RetryPolicy.make({ tierOf: RetryPolicy.standard.tierOf, tiers: { transient: tier, refused: tier, malformed: tier } })
)

const paths = [
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1beta/models/scripted:streamGenerateContent"
]
const counts = { streams: 0, whole: 0, cut: 0, failed: 0, interrupted: 0, retries: 0, wrong: 0 }

type Part = Protocol.Part | StreamRecovery.Boundary | StreamRecovery.CutShort

const one = (client: HttpClient.HttpClient): Effect.Effect<void> =>
  Effect.suspend(() => {
    const request = HttpClientRequest.post(`${url}${paths[counts.streams++ % paths.length]}`).pipe(
      HttpClientRequest.bodyUnsafeJson({ model: "scripted", stream: true })
    )
    let text = ""
    let last: Part | undefined
    const stream = RecourseClient.stream(client, request, {
      policy,
      liveness: { headers: 500, chunk: 500 },
      listener: ({ _tag }) => {
        if (_tag === "Retrying") counts.retries++
      }
    })
    const read = Stream.runForEach(stream, (part) =>
      Effect.sync(() => {
        last = part
        if (part._tag === "Text") text += part.text
      }))
    // one that says nothing but that it is alive is given up on
    return Effect.map(Effect.timeoutOption(Effect.either(read), 1_000 + Math.random() * 3_000), (ended) => {
      const isCut = last?._tag === "Stalled" || last?._tag === "OutputCap"
      if (ended._tag === "None") counts.interrupted++
      else if (Either.isLeft(ended.value)) counts.failed++
      else if (isCut) counts.cut++
      else counts.whole++
      const isWhole = ended._tag === "Some" && Either.isRight(ended.value) && !isCut
      const isKnown = ended._tag === "None" || Either.isRight(ended.value) || Fault.isFault(ended.value.left)
      if (!isKnown || !SPOKEN.startsWith(text) || (isWhole && text !== SPOKEN)) counts.wrong++
    })
  })

const until = (end: number): Promise<void> => {
  const runtime = ManagedRuntime.make(NodeClient.layer())
  const program = Effect.flatMap(HttpClient.HttpClient, (client) =>
    Effect.forEach(
      Array.from({ length: AT_ONCE }),
      () => Effect.whileLoop({ while: () => Date.now() < end, body: () => one(client), step: () => undefined }),
      { concurrency: "unbounded", discard: true }
    ))
  return runtime.runPromise(program).finally(() => runtime.dispose())
}

const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

/** What is left when everything that ends has ended. */
const settled = async (): Promise<{ readonly heap: number; readonly sockets: number }> => {
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return { heap: process.memoryUsage().heapUsed, sockets: sockets() }
}

// what is compiled and cached by the first streams is not what a stream leaves behind
await until(Date.now() + Math.min(5_000, seconds * 250))
const before = await settled()
await until(Date.now() + seconds * 1_000)
const after = await settled()

const soaked: Soaked = {
  ...counts,
  unhandled,
  sockets: { before: before.sockets, after: after.sockets },
  heap: { before: before.heap, after: after.heap }
}
console.log(JSON.stringify(soaked))
child.stdin.end()
process.exit(0)
