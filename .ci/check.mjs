// Runs the tests, then every other check; says what failed and how to mend it; ends with one line of counts.
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, rmSync } from "node:fs"

const results = ".test-results.json"

const checks = [
  ["types", "npm run --silent types", "npm run types"],
  ["type tests", "npx tstyche", "npx tstyche"],
  ["lint, and which way imports point", "npm run --silent lint", "npm run lint -- --fix"],
  ["format", "npx dprint check", "npm run format"],
  ["examples in the READMEs", "node .ci/readme.mjs", "node .ci/readme.mjs"],
  ...["core", "platform", "ai", "testing"].map((name) => [
    `examples in the docs of ${name}`,
    `cd packages/${name} && npx docgen`,
    `cd packages/${name} && npx docgen`
  ]),
  ["planted bugs", "node .ci/mutants.mjs", "node .ci/mutants.mjs"],
  ["unused exports and dependencies", "npx knip", "npx knip"],
  ...["core", "platform", "ai", "testing", "cli"].flatMap((name) => [
    [
      `shape of ${name}`,
      `cd packages/${name} && npx publint --strict --pack npm`,
      `cd packages/${name} && npx publint --pack npm`
    ],
    [
      `types of ${name} as installed`,
      `cd packages/${name} && npx attw --pack --profile esm-only`,
      `cd packages/${name} && npx attw --pack --profile esm-only`
    ]
  ])
]

const failed = []
let passed = 0

rmSync(results, { force: true })
console.log("— tests")
const tests = spawnSync(`npm test --silent -- --reporter=dot --reporter=json --outputFile=${results}`, {
  shell: true,
  stdio: "inherit"
})
const counts = existsSync(results)
  ? JSON.parse(readFileSync(results, "utf8"))
  : { numPassedTests: 0, numFailedTests: 0 }
passed += counts.numPassedTests
let broken = counts.numFailedTests
if (tests.status !== 0) {
  failed.push(["tests", "npm test"])
  broken = Math.max(broken, 1)
}
if (counts.numPassedTests === 0 && broken === 0) {
  failed.push(["tests", "npm test: no test ran"])
  broken = 1
}

for (const [name, command, mend] of checks) {
  const { status, stderr, stdout } = spawnSync(command, {
    shell: true,
    encoding: "utf8",
    env: { ...process.env, FORCE_COLOR: "0" }
  })
  console.log(`${status === 0 ? "✓" : "✗"} ${name}`)
  if (status === 0) passed++
  else {
    broken++
    failed.push([name, mend])
    console.log(`${stdout}${stderr}`.split("\n").slice(-80).join("\n"))
  }
}

for (const [name, mend] of failed) console.log(`failed: ${name}. See or mend it with: ${mend}`)
console.log(`${passed} passed, ${broken} failed`)
process.exit(broken === 0 ? 0 : 1)
