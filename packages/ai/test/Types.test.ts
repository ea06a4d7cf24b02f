import { assert, describe, it } from "@effect/vitest"
import * as Fault from "@recourse/core/Fault"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const file = fileURLToPath(new URL("./printed.ts", import.meta.url))
const config = fileURLToPath(new URL("../../../tsconfig.test.json", import.meta.url))

/** The types of what a file exports, as an editor prints them. */
const printed = (): ReadonlyMap<string, string> => {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, (path) => ts.sys.readFile(path)).config,
    ts.sys,
    fileURLToPath(new URL("../../..", import.meta.url))
  )
  const program = ts.createProgram([file], options)
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(file)
  const symbol = source === undefined ? undefined : checker.getSymbolAtLocation(source)
  if (source === undefined || symbol === undefined) return assert.fail("the file is no module")
  return new Map(
    checker.getExportsOfModule(symbol).map((one) => [
      one.name,
      checker.typeToString(
        one.flags & ts.SymbolFlags.TypeAlias
          ? checker.getDeclaredTypeOfSymbol(one)
          : checker.getTypeOfSymbolAtLocation(one, source),
        undefined,
        ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.InTypeAlias
      )
    ])
  )
}

describe("The public types", () => {
  it("show the faults of an exchange by name, and by their tags once one is caught", { timeout: 60_000 }, () => {
    const types = printed()
    assert.strictEqual(types.get("text"), "Effect<GenerateTextResponse<{}>, Fault, RecoveredLanguageModel>")
    assert.include(types.get("tools"), ", Fault, RecoveredLanguageModel | Handler<\"look\">>")
    const tags = ["RateLimited", ...Object.keys(Fault.plain)]
    assert.strictEqual(types.get("Faults"), tags.join(" | "))
    // what is left once one of them is caught
    const left = tags.filter((tag) => tag !== "ContextOverflowed").join(" | ")
    assert.strictEqual(
      types.get("caught"),
      `Effect<string | GenerateTextResponse<{}>, ${left}, RecoveredLanguageModel>`
    )
  })
})
