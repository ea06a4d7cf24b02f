// Compiles every TypeScript example of the READMEs under the project's own strictness, and runs it.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"

const folder = ".readme"
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)

const pages = ["README.md", ...readdirSync("packages").map((name) => `packages/${name}/README.md`)].filter((page) =>
  existsSync(page)
)
const files = []
for (const page of pages) {
  const blocks = [...readFileSync(page, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)]
  blocks.forEach(([, code], i) => {
    const file = `${folder}/${page.replace(/\W/g, "-")}-${i + 1}.ts`
    writeFileSync(file, code)
    files.push(file)
  })
}
writeFileSync(`${folder}/tsconfig.json`, JSON.stringify({ extends: "../tsconfig.test.json", include: ["*.ts"] }))

const run = (command) => {
  const { status, stderr, stdout } = spawnSync(command, { shell: true, encoding: "utf8" })
  if (status !== 0) {
    console.error(`${command}\n${stdout}${stderr}`)
    process.exit(1)
  }
}
run(`npx tsc -p ${folder}`)
for (const file of files) run(`node --conditions=@recourse/source --import tsx ${file}`)
console.log(`${files.length} examples compiled and ran`)
rmSync(folder, { recursive: true })
