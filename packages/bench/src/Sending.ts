import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Recovery from "@recourse/core/Recovery"
import * as NodeClient from "@recourse/platform/NodeClient"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as RecourseFetch from "@recourse/platform/RecourseFetch"
import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import OpenAI from "openai"
import type { Row } from "./Bench.ts"

const CALLS = 2_000
const WARM = 300
const ABORTS = 300

const apiKey = "none"
const messages = [{ role: "user" as const, content: "Say something." }]
const request = { method: "POST", body: JSON.stringify({ model: "m", messages }) }

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const began = process.hrtime.bigint()
  await run()
  return Number(process.hrtime.bigint() - began)
}

/** The calls of a bare client and of a recovered one, one after the other, so that whatever happens falls on both. */
const beside = async (
  group: string,
  bare: () => Promise<unknown>,
  recovered: () => Promise<unknown>
): Promise<ReadonlyArray<Row>> => {
  const times: { readonly bare: Array<number>; readonly recovered: Array<number> } = { bare: [], recovered: [] }
  for (let i = 0; i < CALLS + WARM; i++) {
    const first = await timed(bare)
    const second = await timed(recovered)
    if (i < WARM) continue
    times.bare.push(first)
    times.recovered.push(second)
  }
  return [["p50", 0.5], ["p99", 0.99]].flatMap(([name, share]): ReadonlyArray<Row> => {
    const base = percentile(times.bare, Number(share))
    const nanos = percentile(times.recovered, Number(share))
    return [
      { group, name: `bare, ${name}`, nanos: base, ratio: 1, goal: undefined },
      { group, name: `recovered, ${name}`, nanos, ratio: nanos / base, goal: undefined }
    ]
  })
}

const path = "/v1/chat/completions"

/** What recovery adds to a call that succeeds, over loopback, whole answers. */
export const goodPath = async (): Promise<ReadonlyArray<Row>> => {
  const child = spawn(process.execPath, [fileURLToPath(new URL("./provider.js", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const url = String((await once(child.stdout, "data"))[0]).trim()
  const runtimes = {
    fetch: ManagedRuntime.make(FetchHttpClient.layer),
    undici: ManagedRuntime.make(NodeClient.layer())
  }
  const through = (
    runtime: ManagedRuntime.ManagedRuntime<HttpClient.HttpClient, never>,
    change: (client: HttpClient.HttpClient) => HttpClient.HttpClient.With<unknown>
  ) => {
    const call = Effect.flatMap(HttpClient.HttpClient, (client) =>
      Effect.flatMap(
        change(client).execute(
          HttpClientRequest.post(`${url}${path}`).pipe(HttpClientRequest.bodyUnsafeJson({ model: "m", messages }))
        ),
        (response) => response.json
      ))
    return () => runtime.runPromise(call)
  }
  const fetching = (fetch: RecourseFetch.Fetch) => async () => (await fetch(`${url}${path}`, request)).json()
  const asking = (fetch: RecourseFetch.Fetch) => {
    const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, fetch })
    return () => client.chat.completions.create({ model: "m", messages })
  }
  const bare = (client: HttpClient.HttpClient) => client
  const recovered = (client: HttpClient.HttpClient) => RecourseClient.recover(client)
  try {
    return [
      ...await beside("a good answer through fetch", fetching(fetch), fetching(RecourseFetch.make())),
      ...await beside("a good answer through openai", asking(fetch), asking(RecourseFetch.make())),
      ...await beside(
        "a good answer through HttpClient over fetch",
        through(runtimes.fetch, bare),
        through(runtimes.fetch, recovered)
      ),
      ...await beside(
        "a good answer through HttpClient over undici",
        through(runtimes.undici, bare),
        through(runtimes.undici, recovered)
      )
    ]
  } finally {
    await runtimes.fetch.dispose()
    await runtimes.undici.dispose()
    child.stdin.end()
  }
}

/** From a caller's abort to the rejection of its promise: of a bare fetch that is answered late, and of a call that waits. */
export const aborting = (): Promise<ReadonlyArray<Row>> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const provider = yield* ScriptedProvider.make()
    const late = Array.from({ length: ABORTS }, () => ScriptedProvider.silent)
    const refused = Array.from({ length: ABORTS }, () =>
      ScriptedProvider.answer(429, { headers: { "retry-after": "30" }, body: {} }))
    let waiting = (): void =>
      undefined
    const recovering = yield* RecourseFetch.effect({ memory: 0 }).pipe(
      Recovery.withListener((event) => Effect.sync(() => event._tag === "Retrying" && setImmediate(waiting)))
    )
    const times = async (fetch: RecourseFetch.Fetch, begun: () => Promise<unknown>): Promise<ReadonlyArray<number>> => {
      const all: Array<number> = []
      for (let i = 0; i < ABORTS; i++) {
        const controller = new AbortController()
        const ready = begun()
        const call = fetch(`${provider.url}${path}`, { ...request, signal: controller.signal }).catch(() => undefined)
        await ready
        all.push(
          await timed(() => {
            controller.abort()
            return call
          })
        )
      }
      return all
    }
    yield* provider.play(...late)
    const bare = yield* Effect.promise(() => times(fetch, () => new Promise((resolve) => setTimeout(resolve, 5))))
    yield* provider.play(...refused)
    const recovered = yield* Effect.promise(() =>
      times(recovering, () =>
        new Promise((resolve) => {
          waiting = () => resolve(undefined)
        }))
    )
    const group = "an abort, from the signal to the rejection"
    const base = percentile(bare, 0.5)
    const nanos = percentile(recovered, 0.5)
    return [
      { group, name: "a bare fetch", nanos: base, ratio: 1, goal: undefined },
      { group, name: "RecourseFetch, during a wait", nanos, ratio: nanos / base, goal: 2 }
    ]
  })))
