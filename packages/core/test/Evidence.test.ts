import { assert, describe, it } from "@effect/vitest"
import * as Diagnosis from "@recourse/core/Diagnosis"
import * as Evidence from "@recourse/core/Evidence"
import * as Fault from "@recourse/core/Fault"
import { build } from "esbuild"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import * as Carriers from "./carriers.ts"

const check = (carriers: Record<string, Carriers.Carrier>) => {
  const read = Object.entries(carriers).map(([name, { thrown }]) => {
    const fault = Diagnosis.fromUnknown(thrown, { received: 1_768_042_800_000 })
    return [name, fault._tag, fault.evidence._tag, fault.resetsAt?.waitMillis, fault.attempts]
  })
  const wanted = Object.entries(carriers).map((
    [name, { attempts, leaf, tag, waitMillis }]
  ) => [name, tag, leaf, waitMillis, attempts ?? 1])
  assert.deepStrictEqual(read, wanted)
}

describe("Evidence", () => {
  it("knows every carrier by an error that its library made", async () => {
    check(await Carriers.make())
  })

  it("knows them after bundling and minifying", async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("./carriers.ts", import.meta.url))],
      bundle: true,
      minify: true,
      write: false,
      platform: "node",
      format: "esm",
      target: "node20",
      logLevel: "silent",
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" }
    })
    const folder = await mkdtemp(join(tmpdir(), "recourse-"))
    try {
      const file = join(folder, "carriers.mjs")
      await writeFile(file, outputFiles[0]?.text ?? "")
      const bundled: typeof Carriers = await import(/* @vite-ignore */ pathToFileURL(file).href)
      check(await bundled.make())
    } finally {
      await rm(folder, { recursive: true })
    }
  }, 60_000)

  it("a fault inside anything thrown comes back as it is", () => {
    const fault = Diagnosis.fromResponse({ status: 529 }, { received: 0 })
    assert.strictEqual(Diagnosis.fromUnknown(new Error("wrapped", { cause: fault }), { received: 1 }), fault)
  })

  it("a foreign tag that looks like ours is not believed", () => {
    const foreign = { _tag: "Overloaded", message: "RateLimited", isRetryable: true }
    assert.isFalse(Fault.isFault(foreign))
    assert.strictEqual(Diagnosis.fromUnknown(foreign, { received: 0 })._tag, "Unrecognized")
  })

  const bodies: ReadonlyArray<readonly [name: string, body: unknown]> = [
    ["text", "{\"error\":{\"code\":\"slow_down\"}}"],
    ["bytes", new TextEncoder().encode("{\"error\":{\"code\":\"slow_down\"}}")],
    ["parsed JSON", { error: { code: "slow_down" } }],
    ["a list", [{ error: { code: "slow_down" } }]],
    ["JSON in a string", JSON.stringify("{\"error\":{\"code\":\"slow_down\"}}")],
    ["OpenRouter's metadata.raw", { error: { code: 502, metadata: { raw: "{\"error\":{\"code\":\"slow_down\"}}" } } }],
    ["Azure's innererror", { error: { code: "Other", innererror: { code: "slow_down" } } }],
    ["a Python repr after LiteLLM's prefix", {
      error: { message: "litellm.APIError: X - Error code: 503 - {'error': {'code': 'slow_down', 'param': None}}" }
    }],
    ["JSON after a prefix", { error: { message: "upstream said: {\"error\":{\"code\":\"slow_down\"}}" } }],
    ["response.failed", { type: "response.failed", response: { error: { code: "slow_down" } } }]
  ]
  it.each(bodies)("unwraps %s to the innermost answer", (_, body) => {
    assert.strictEqual(Diagnosis.fromResponse({ status: 500, body }, { received: 0 })._tag, "Overloaded")
  })

  it("shows only allow-listed headers, in lower case and masked", () => {
    const { headers } = Evidence.fromResponse({
      status: 429,
      headers: {
        "Retry-After": "3",
        "Set-Cookie": "a=b",
        "X-Api-Key": "k",
        "X-Request-Id": "req_1",
        "OpenAI-Organization": "org-abcd"
      }
    })
    assert.deepStrictEqual(headers, { "retry-after": "3", "x-request-id": "req_1" })
  })

  it("caps its texts", () => {
    const response = Evidence.fromResponse({
      status: 400,
      body: JSON.stringify({ error: { message: "long ".repeat(100_000) } })
    })
    assert.strictEqual(response.text?.length, 16_384)
    assert.strictEqual(response.message?.length, 1_024)
  })
})
