/**
 * The commands of `recourse`.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as FileSystem from "@effect/platform/FileSystem"
import * as RetryPolicy from "@recourse/core/RetryPolicy"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { isatty } from "node:tty"
import pc from "picocolors"
import * as Explain from "./Explain.ts"
import * as Input from "./Input.ts"
import * as Plan from "./Plan.ts"
import * as Tour from "./Tour.ts"

/**
 * Some input could not be read; each was told on standard error. The process ends with status 2.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unread extends Data.TaggedError("Unread")<{ readonly inputs: number }> {}

const policies = {
  standard: RetryPolicy.standard,
  brisk: RetryPolicy.brisk,
  persistent: RetryPolicy.persistent,
  cautious: RetryPolicy.cautious
}

const choices = Object.entries(policies).map(([name, policy]): [string, Explain.Named] => [name, { name, policy }])

const policy = Options.choiceWithValue("policy", choices).pipe(
  Options.withDefault({ name: "standard", policy: policies.standard }),
  Options.withDescription("The policy under which it is told")
)

const files = Args.text({ name: "file" }).pipe(
  Args.withDescription("Saved failures; standard input if there are none, or for -"),
  Args.repeated
)

const as = Options.choice("as", Input.forms).pipe(
  Options.withDescription("What the input is, if it is not to be detected"),
  Options.optional
)

const status = Options.text("status").pipe(
  Options.filterMap(
    (text) => /^[1-5]\d\d$/.test(text) ? Option.some(Number(text)) : Option.none(),
    "--status: a number from 100 to 599"
  ),
  Options.withDescription("The HTTP status of a body that was saved without its head"),
  Options.optional
)

const received = Options.text("received").pipe(
  Options.filterMap(
    (text) => Number.isNaN(Date.parse(text)) ? Option.none() : Option.some(new Date(text)),
    "--received: an instant, such as 2026-01-10T10:00:00Z"
  ),
  Options.withDescription("When it was received (ISO); the answer's date header by default, else now"),
  Options.optional
)

const json = Options.boolean("json").pipe(Options.withDescription("One JSON object per input"))

const jsonl = Options.boolean("jsonl").pipe(
  Options.withDescription("Rows {id, source, received}, one a line, read and answered line by line")
)

/** Bytes of a file, or of standard input for `-`. */
const bytes = (file: string) =>
  file === "-"
    ? NodeStream.stdin
    : Stream.unwrap(Effect.map(FileSystem.FileSystem, (fs) => fs.stream(file)))

const nameOf = (file: string): string => file === "-" ? "standard input" : file

/** `NO_COLOR` forbids colours, `FORCE_COLOR` asks for them in a pipe too; a machine that builds is no terminal. */
const inColour = ({ FORCE_COLOR = "", NO_COLOR = "" }: NodeJS.ProcessEnv): boolean =>
  NO_COLOR === "" && (FORCE_COLOR === "" ? isatty(1) : FORCE_COLOR !== "0" && FORCE_COLOR !== "false")

/** The screen that standard output is: colours and the width of a terminal, plain text in a pipe. */
export const screen: Effect.Effect<Explain.Screen> = Effect.map(Clock.currentTimeMillis, (now) => ({
  colors: pc.createColors(inColour(process.env)),
  width: process.stdout.isTTY ? process.stdout.columns : 100,
  now: new Date(now)
}))

const unreadable = (reason: string): string =>
  reason === "NotFound"
    ? "no such file"
    : reason === "PermissionDenied"
    ? "may not be read"
    : "not a file that can be read"

const complain = (file: string, mend: string) => Console.error(`${nameOf(file)}: ${mend}`)

const explainFile = (
  file: string,
  options: {
    readonly as: Option.Option<Input.Form>
    readonly status: Option.Option<number>
    readonly received: Option.Option<Date>
    readonly json: boolean
    readonly policy: Explain.Named
  },
  headed: boolean
) =>
  Effect.gen(function*() {
    const view = yield* screen
    const text = yield* bytes(file).pipe(Stream.decodeText(), Stream.mkString)
    const readings = yield* Input.read(text, {
      as: Option.getOrUndefined(options.as),
      status: Option.getOrUndefined(options.status),
      received: Option.getOrUndefined(options.received),
      now: view.now
    })
    for (const reading of readings) {
      if (options.json) yield* Console.log(JSON.stringify(Explain.object(reading, options.policy, nameOf(file))))
      else {
        const name = reading.id ?? (headed ? nameOf(file) : undefined)
        if (name !== undefined) yield* Console.log(view.colors.dim(`— ${name}`))
        yield* Console.log(`${Explain.text(reading, options.policy, view)}\n`)
      }
    }
    return 0
  }).pipe(
    Effect.catchTags({
      InputInvalid: (error) => Effect.as(complain(file, error.message), 1),
      SystemError: (error) => Effect.as(complain(file, unreadable(error.reason)), 1),
      BadArgument: (error) => Effect.as(complain(file, error.message), 1)
    }),
    Effect.withSpan("explain", { attributes: { file } })
  )

const line = (row: string, n: number, named: Explain.Named): { readonly out: string; readonly bad: boolean } => {
  const answer = Either.flatMap(
    Either.try({
      try: (): unknown => JSON.parse(row),
      catch: () => new Input.InputInvalid({ field: "line", mend: "not JSON; each line must be one whole object" })
    }),
    (value) =>
      Either.mapLeft(Input.fromRow(value), (error) => ({
        error: `line ${n}: ${error.message}`,
        id: typeof value === "object" && value !== null && "id" in value ? value.id : null
      }))
  )
  return Either.match(answer, {
    onLeft: (left) => ({
      out: JSON.stringify("id" in left ? left : { id: null, error: `line ${n}: ${left.message}` }),
      bad: true
    }),
    onRight: (reading) => ({ out: JSON.stringify(Explain.json(reading, named)), bad: false })
  })
}

/** Rows in, lines out, in order, without holding more than what one read brings. */
const explainRows = (file: string, named: Explain.Named) =>
  Effect.gen(function*() {
    const bad = yield* Ref.make(0)
    let n = 0
    yield* bytes(file).pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.map((row) => ({ row, n: ++n })),
      Stream.filter(({ row }) => row.trim() !== ""),
      Stream.mapChunksEffect((rows) => {
        const lines = Chunk.map(rows, ({ n, row }) => line(row, n, named))
        return Effect.as(
          Ref.update(bad, (n) => n + Chunk.reduce(lines, 0, (sum, { bad }) => sum + (bad ? 1 : 0))),
          Chunk.of(`${Chunk.join(Chunk.map(lines, ({ out }) => out), "\n")}\n`)
        )
      }),
      Stream.runForEach(write)
    )
    return yield* Ref.get(bad)
  }).pipe(
    Effect.catchTags({
      SystemError: (error) => Effect.as(complain(file, unreadable(error.reason)), 1),
      BadArgument: (error) => Effect.as(complain(file, error.message), 1)
    })
  )

/** Writes to standard output and waits until it has taken it, so that a slow reader is not outrun. */
const write = (text: string): Effect.Effect<void> =>
  Effect.async((resume) => {
    process.stdout.write(text, () => resume(Effect.void))
  })

const explain = Command.make(
  "explain",
  { files, as, status, received, json, jsonl, policy },
  (options) =>
    Effect.gen(function*() {
      const named = options.files.length === 0 ? ["-"] : options.files
      const counts = yield* Effect.forEach(
        named,
        (file) => options.jsonl ? explainRows(file, options.policy) : explainFile(file, options, named.length > 1)
      )
      const inputs = counts.reduce((sum, n) => sum + n, 0)
      if (inputs > 0) return yield* new Unread({ inputs })
    })
).pipe(Command.withDescription("Reads failed language-model calls and says what can be done about each"))

const run = Options.text("faults").pipe(
  Options.withDescription(
    "What the call meets in turn: 429:20s,529,reset,timeout,cut,malformed; the worst of each if left out"
  ),
  Options.optional
)

const versus = Options.choiceWithValue("versus", choices).pipe(
  Options.withDescription("A second policy, on the same axis"),
  Options.optional
)

const plan = Command.make("plan", { policy, faults: run, versus }, (options) =>
  Effect.gen(function*() {
    const view = yield* screen
    const faults = yield* Option.match(options.faults, {
      onNone: () => Effect.succeed(Option.none()),
      onSome: (text) => Effect.map(Plan.faults(text), Option.some)
    })
    const rest = Option.match(options.versus, { onNone: () => [], onSome: (other) => [other] })
    yield* Console.log(Plan.text([options.policy, ...rest], faults, view))
  }).pipe(
    Effect.catchTag("InputInvalid", (error) => Effect.zipRight(Console.error(error.message), new Unread({ inputs: 1 })))
  )).pipe(Command.withDescription("Shows beforehand what a policy would do about a run of failures"))

const recourse = Command.make(
  "recourse",
  {},
  () =>
    Effect.gen(function*() {
      const view = yield* screen
      // a provider and a client are much to load, which nothing else here needs
      const Scenes = yield* Effect.promise(() => import("./Scenes.ts"))
      yield* Scenes.play(view)
      yield* Tour.print(view)
    })
).pipe(
  Command.withDescription("What can be done about a failed language-model call. Alone: a short tour"),
  Command.withSubcommands([explain, plan])
)

const valued = new Set([
  "--as",
  "--status",
  "--received",
  "--policy",
  "--faults",
  "--versus",
  "--log-level",
  "--completions"
])
const flags = new Set(["--json", "--jsonl", "--help", "-h", "--version", "--wizard"])

/** The parser wants options before files, and takes one that it does not know for a file; people write them on either side. */
const optionsFirst = (argv: ReadonlyArray<string>): Either.Either<ReadonlyArray<string>, string> => {
  const [node = "", script = "", command, ...rest] = argv
  if (command !== "explain") return Either.right(argv)
  const options: Array<string> = []
  const names: Array<string> = []
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i] ?? ""
    if (!word.startsWith("-") || word === "-") names.push(word)
    else if (flags.has(word) || /^--\w+=/.test(word)) options.push(word)
    else if (!valued.has(word)) {
      return Either.left(`${word}: there is no such option; recourse explain --help lists them`)
    } else {
      const value = rest[++i]
      if (value === undefined) return Either.left(`${word}: it needs a value`)
      options.push(word, value)
    }
  }
  return Either.right([node, script, command, ...options, ...names])
}

/**
 * Runs the command line that `argv` is, as `process.argv` has it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const main = (argv: ReadonlyArray<string>) =>
  Effect.flatMap(
    Effect.catchAll(optionsFirst(argv), (message) =>
      Effect.zipRight(Console.error(message), Effect.fail(new Unread({ inputs: 1 })))),
    Command.run(recourse, { name: "recourse", version: "0.1.0" })
  )
