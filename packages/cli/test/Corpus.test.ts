import { assert, describe, it } from "@effect/vitest"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Either from "effect/Either"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Explain from "../src/Explain.ts"
import * as Input from "../src/Input.ts"

const corpus = fileURLToPath(new URL("../../core/test/corpus", import.meta.url))
const brisk = { name: "brisk", policy: RetryPolicy.brisk }

/** What the scorer makes of our readings of a file of rows. */
const score = (file: string) => {
  const rows = readFileSync(join(corpus, file), "utf8").trim().split("\n")
  const readings = rows.map((row) =>
    JSON.stringify(Explain.json(Either.getOrThrow(Input.fromRow(JSON.parse(row))), brisk))
  )
  const folder = mkdtempSync(join(tmpdir(), "recourse-"))
  try {
    writeFileSync(join(folder, "readings.jsonl"), readings.join("\n"))
    return JSON.parse(
      execFileSync(process.execPath, [
        join(corpus, "score.mjs"),
        join(corpus, file),
        join(folder, "readings.jsonl"),
        "--json"
      ], {
        encoding: "utf8"
      })
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("The corpus, read under brisk", () => {
  for (const file of ["faults.jsonl", "more.jsonl"]) {
    it(file, () => {
      const { all, sure } = score(file)
      assert.strictEqual(all.missing, 0)
      assert.isAtLeast(sure.strict, 0.98)
      assert.isAtLeast(all.lenient, 0.98)
    })
  }
})
