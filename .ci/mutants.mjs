// Plants one-line bugs in the sources, each in a copy of its own, and asks the tests for it to be found.
import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const policy = "packages/core/src/RetryPolicy.ts"
const recovery = "packages/core/src/Recovery.ts"
const remedy = "packages/core/src/Remedy.ts"
const budget = "packages/core/src/RetryBudget.ts"
const reset = "packages/core/src/Reset.ts"
const diagnosis = "packages/core/src/Diagnosis.ts"

const exchange = "packages/platform/src/internal/exchange.ts"
const fetching = "packages/platform/src/RecourseFetch.ts"
const client = "packages/platform/src/RecourseClient.ts"
const liveness = "packages/platform/src/Liveness.ts"
const node = "packages/platform/src/NodeClient.ts"

const pacer = "packages/platform/src/Pacer.ts"
const hold = "packages/core/src/Hold.ts"
const store = "packages/core/src/HoldStore.ts"
const goneOn = "packages/core/src/internal/away.ts"
const streaming = "packages/core/src/StreamRecovery.ts"
const decoder = "packages/platform/src/internal/decoder.ts"

const resume = "packages/core/src/Resume.ts"
const persisted = "packages/platform/src/internal/persisted.ts"
const model = "packages/ai/src/RecoveredLanguageModel.ts"
const exchanging = "packages/ai/src/Exchange.ts"

const resumes = "packages/core/test/Resume.test.ts"
const persists = "packages/platform/test/Persisted.test.ts"
const modelling = "packages/ai/test/RecoveredLanguageModel.test.ts"
const exchanges = "packages/ai/test/Exchange.test.ts"
const traps = "packages/ai/test/Traps.test.ts"
const holds = "packages/core/test/Hold.test.ts"
const streams = "packages/core/test/StreamRecovery.test.ts"
const protocols = "packages/platform/test/Protocol.test.ts"
const wired = "packages/platform/test/Streams.test.ts"
const sdks = "packages/platform/test/Sdks.test.ts"
const doors = "packages/platform/test/Hold.test.ts"
const paces = "packages/platform/test/Pacer.test.ts"
const laws = "packages/testing/test/Laws.test.ts"
const numbers = "packages/core/test/RetryPolicy.test.ts"
const recovering = "packages/core/test/Recovery.test.ts"
const remedies = "packages/core/test/Remedy.test.ts"
const resets = "packages/core/test/Reset.test.ts"
const readings = "packages/core/test/Diagnosis.test.ts"
const wire = "packages/platform/test/Wire.test.ts"
const fetches = "packages/platform/test/RecourseFetch.test.ts"
const clients = "packages/platform/test/RecourseClient.test.ts"
const lives = "packages/platform/test/Liveness.test.ts"

// what it is, where, what stands there, what is planted, and the tests that must find it
const mutants = [
  [
    "one attempt too many",
    policy,
    "before + standsFor(fault) < tier.attempts",
    "before + standsFor(fault) <= tier.attempts",
    laws
  ],
  ["the cap is dropped", policy, "Duration.min(delay, tier.ceiling)", "delay", laws],
  [
    "the curve does not grow",
    policy,
    "Schedule.exponential(tier.base, tier.factor)",
    "Schedule.exponential(tier.base, 1)",
    laws
  ],
  ["jitter without its floor", policy, "{ min: low, max: high }", "{ min: 0, max: high }", laws],
  ["jitter above its ceiling", policy, "{ min: low, max: high }", "{ min: low, max: high + 0.5 }", laws],
  ["no jitter", policy, "low === 1 && high === 1\n    ? capped", "low >= 0\n    ? capped", numbers],
  [
    "an override that is shortened",
    policy,
    "tier.wait === \"atLeast\" ? Duration.max(delay, left) : left",
    "tier.wait === \"atLeast\" ? Duration.min(delay, left) : left",
    laws
  ],
  [
    "an override from now",
    policy,
    "Duration.millis(Math.max(0, until - now))",
    "Duration.millis(remedy.wait.value.millis)",
    numbers
  ],
  [
    "no override",
    policy,
    "if (remedy._tag !== \"Retry\" || Option.isNone(remedy.wait)) return Effect.succeed(delay)",
    "if (now(remedy)) return Effect.succeed(delay)",
    laws,
    "const now = (_: unknown): boolean => true"
  ],
  [
    "one counter for all tiers",
    policy,
    "{ ...states, [route]: next }",
    "Object.fromEntries(Object.keys(routes).map((name) => [name, next]))",
    laws
  ],
  ["a tier that forgets", policy, "{ ...states, [route]: next }", "states", laws],
  [
    "the total time is not looked ahead to",
    policy,
    "ScheduleIntervals.start(decision.intervals) - began > millis",
    "now - began > millis",
    laws
  ],
  ["the total time begins anew", policy, "[began, next] as const", "[now, next] as const", laws],
  ["attempts below do not count", policy, "Math.max(1, fault.attempts)\n  return", "1\n  return", recovering],
  [
    "the timeline jitters a named wait",
    policy,
    "onSome: (millis) => floor ? Math.max(low, millis) : millis",
    "onSome: (millis) => floor ? Math.max(low, millis) : millis * tier.jitter.low",
    numbers
  ],
  [
    "what is surfaced is retried",
    policy,
    "return remedy._tag === \"Retry\" ? Option.some([remedy.tier, input] as const) : Option.none()",
    "return Option.some([remedy._tag === \"Retry\" ? remedy.tier : Object.keys(tiers)[0] ?? \"\", input] as const)",
    laws
  ],
  [
    "patience that excludes its own length",
    remedy,
    "reset.waitMillis <= Duration.toMillis(patience)",
    "reset.waitMillis < Duration.toMillis(patience)",
    remedies
  ],
  [
    "a clamp that does not cut",
    remedy,
    "Math.min(reset.waitMillis, Math.floor(Duration.toMillis(patience)))",
    "reset.waitMillis",
    remedies
  ],
  [
    "defer and ignore change places",
    remedy,
    "case \"defer\":\n      return { _tag: \"Defer\", until: reset }",
    "case \"defer\":\n      return { _tag: \"Retry\", tier, wait: Option.none() }",
    remedies
  ],
  [
    "the last fault without its attempts",
    recovery,
    "made === fault.attempts ? fault : Fault.withAttempts(fault, made)",
    "fault",
    recovering
  ],
  [
    "the total time of a call is ignored",
    recovery,
    "elapsed(call) + wait > Duration.toMillis(within.value)",
    "wait > Duration.toMillis(within.value)",
    recovering
  ],
  [
    "an instant by the time that passes",
    recovery,
    "byWall ? sleepUntil(clock, now + wait)",
    "byWall ? clock.sleep(Duration.millis(wait))",
    recovering
  ],
  [
    "a delta by the wall clock",
    recovery,
    "const byWall = named?.reset.named === \"instant\"",
    "const byWall = named?.reset.named === \"delta\"",
    recovering
  ],
  ["the attempt is not counted", recovery, "call.attempt += 1", "call.attempt += 0", recovering],
  [
    "an inner recovery sees the outer's attempt",
    recovery,
    "const bare = around === Attempt.first",
    "const bare = around !== undefined",
    recovering
  ],
  [
    "a budget that is never asked",
    recovery,
    "call.budget === undefined\n    ? again",
    "call.made > 0\n    ? again",
    recovering
  ],
  ["a budget that never refuses", budget, "if (tokens < price) return 0", "", recovering],
  [
    "a budget without a bottom",
    budget,
    "tokens = Math.min(capacity, tokens + (taken === 0 ? refund : taken))",
    "tokens = tokens + (taken === 0 ? refund : taken)",
    recovering
  ],
  ["a timeout costs no more", budget, "fault._tag === \"TimedOut\" ? timeoutCost : cost", "cost", recovering],
  [
    "the earliest reset governs",
    reset,
    "moment.wait > this.wait",
    "(this.wait === 0 || moment.wait < this.wait)",
    resets
  ],
  [
    "a window with something left counts",
    reset,
    "if (left !== undefined) return Number(left) > 0",
    "if (left !== undefined) return false",
    resets
  ],
  [
    "milliseconds are seconds",
    reset,
    "unit === \"ms\"\n    ? delta(n)",
    "unit === \"ms\"\n    ? delta(n * 1_000)",
    resets
  ],
  ["a past instant is waited for", reset, "wait <= 0\n    ? \"past\"", "wait <= -1e15\n    ? \"past\"", resets],
  [
    "the status outranks the code",
    diagnosis,
    "const decided = fromCodes(codes, own) ?? fromCodeWords(codes, stated)",
    "const decided = stated === undefined ? fromCodes(codes, own) ?? fromCodeWords(codes, stated) : undefined",
    readings
  ],
  [
    "a retry inside a success",
    diagnosis,
    "Fault.isRetryable(kindOf(found.meaning)))",
    "Fault.isRetryable(\"\"))",
    readings
  ],
  [
    "a 2xx that holds an error is an answer",
    diagnosis,
    "peek(one, \"type\") === \"error\") return false",
    "peek(one, \"type\") === \"error\") return true",
    readings
  ],
  [
    "the rest of an answer is lost",
    exchange,
    "const parts = [...this.#parts]",
    "const parts: Array<Uint8Array> = []",
    fetches
  ],
  [
    "a chunk that came too late is lost",
    exchange,
    "if (this.#taker === undefined) this.#arrived = arrived",
    "if (this.#taker === undefined) return",
    fetches
  ],
  ["a slow body hangs the verdict", exchange, "Effect.sleep(body?.within ?? \"10 seconds\")", "Effect.never", fetches],
  ["a body without a bound", exchange, "this.#length > most", "this.#length > Infinity", fetches],
  ["text that is none is decoded", exchange, "{ fatal: true }", "{ fatal: false }", wire],
  [
    "an event stream is read whole",
    exchange,
    "ok && isStream(head, url)",
    "ok && url.hash === \"#\"",
    fetches
  ],
  [
    "no clock between chunks",
    exchange,
    "this.#watch.begin(\"chunk\"",
    "this.#watch.begin.length > 9 && this.#watch.begin(\"chunk\"",
    wire
  ],
  ["a silence is told late", liveness, "Duration.millis(nap)", "Duration.millis(nap + 1)", lives],
  ["a shorter bound waits for the longer", liveness, "until >= this.#wakes", "until >= 0", lives],
  [
    "a watch that is never closed",
    liveness,
    "this.#fiber?.unsafeInterruptAsFork(FiberId.none)",
    "void FiberId.none",
    lives
  ],
  ["no word to the SDK", fetching, "{ \"x-should-retry\": \"false\" }", "{}", fetches],
  [
    "what was given up on is forgotten",
    fetching,
    "return key !== undefined && this.#until.has(key)",
    "return key === \"\"",
    fetches
  ],
  ["what was given up on is never forgotten", fetching, "if (until <= now)", "if (until <= 0)", fetches],
  [
    "one key's refusal is another's",
    fetching,
    "telling.map((name) => headers.get(name))",
    "telling.length",
    fetches
  ],
  ["an abort is waited out", fetching, "      aborted()\n", "", fetches],
  ["an aborted call goes on", fetching, "fiber.unsafeInterruptAsFork(FiberId.none)", "void FiberId.none", fetches],
  [
    "a caller's signal that the transport does not know",
    fetching,
    "AbortSignal.any([signal, ours.signal])",
    "ours.signal",
    fetches
  ],
  ["a stream is sent again", fetching, "|| isOnce(init?.body)", "", fetches],
  [
    "a stream is sent again by the client",
    client,
    "body._tag !== \"Stream\"",
    "body._tag !== \"Raw\"",
    clients
  ],
  ["errors of one's own are read as faults", client, ": Either.left(error)", ": Either.right(error)", clients],
  [
    "what comes again begins another minute",
    fetching,
    "again ? Effect.void : call.memory.keep(call)",
    "call.memory.keep(call)",
    fetches
  ],
  ["a success is not remembered", fetching, "this.#until.delete(key)\n    })", "this.#until.has(key)\n    })", fetches],
  [
    "the rest of a failure is kept",
    exchange,
    "if (last === undefined) answer.discard()\n",
    "if (last === undefined) void most\n",
    clients
  ],
  [
    "a failure is kept while its retry is waited for",
    exchange,
    "if (event._tag === \"Retrying\") last?.discard()",
    "",
    clients
  ],
  ["a file is no answer", exchange, "head.status < 400)", "head.status < 200)", clients],
  [
    "errors are logged with all that they hold",
    client,
    "Effect.interruptible(Effect.exit(effect))",
    "Effect.interruptible(Effect.map(effect, Exit.succeed))",
    clients
  ],
  [
    "a silent request is never let go of",
    client,
    "Effect.forkDaemon(Effect.interruptible(Effect.exit(effect)))",
    "Effect.forkDaemon(Effect.exit(effect))",
    clients
  ],
  [
    "whoever stops reading does not hang up",
    client,
    "get text() {\n    return Effect.onInterrupt(this.#answer.text, () => this.#hangUp)",
    "get text() {\n    return this.#answer.text",
    clients
  ],
  ["a watch that sleeps its bound", liveness, "const NAP = 1_000", "const NAP = 1_000_000", lives],
  ["a deferred hold is let through", hold, "beyond === \"defer\" && rest >", "beyond === \"ignore\" && rest >", holds],
  [
    "a refusal is kept to oneself",
    hold,
    "if (resetsAt === undefined || !Fault.isRetryable(fault._tag)) return Effect.void",
    "if (resetsAt !== undefined || !Fault.isRetryable(fault._tag)) return Effect.void",
    holds
  ],
  [
    "a merge that shortens",
    store,
    "left(that, clock) > left(self, clock) ? that",
    "left(that, clock) < left(self, clock) ? that",
    holds
  ],
  [
    "an old success takes a new refusal back",
    store,
    "known.refused >= before) return",
    "known.refused >= before + 1e9) return",
    holds
  ],
  ["what a hold has learnt is never looked at", store, "      learnt++\n", "", holds],
  ["everybody probes", hold, "  #size = 1\n", "  #size = 99\n", holds],
  ["groups that do not double", hold, "this.#size *= 2", "this.#size *= 1", holds],
  [
    "nobody takes the place of a probe that is gone",
    hold,
    "if (!this.#out.delete(pass) || this.isClosed) return",
    "if (this.#out.delete(pass) || this.isClosed) return",
    holds
  ],
  ["the gate has no order", hold, "> call.order) high = middle", "> call.order + 1e9) high = middle", holds],
  [
    "a recovery inside a probe waits for it",
    hold,
    "gate !== pass?.gate && gate !== around?.gate",
    "gate !== pass?.gate",
    holds
  ],
  [
    "who waits does not hear of another key",
    hold,
    "for (const gate of related(merged.key)) gate.recall(merged.key)",
    "",
    holds
  ],
  [
    "a store that cannot be written warns each time",
    goneOn,
    "const known = kinds.size > 0",
    "const known = false",
    holds
  ],
  [
    "the total time ends at the gate",
    hold,
    "now + HoldStore.left(held, clock) > call.deadline ? refuse",
    "now + HoldStore.left(held, clock) > Infinity ? refuse",
    holds
  ],
  [
    "a probe that is refused is let go again at once",
    hold,
    "tier.factor ** Math.min(refusals, 64))",
    "tier.factor ** 0)",
    holds
  ],
  [
    "an account's refusal is its model's",
    hold,
    "fault.scope === \"account\" ? keys[0] : keys[1]",
    "fault.scope === \"account\" ? keys[1] : keys[1]",
    holds
  ],
  [
    "what is held is sent by fetch",
    exchange,
    "Effect.provideService(shared({ policy, target, gate }), Hold.Hold, hold)",
    "free({ policy })",
    doors
  ],
  ["one key's hold is another's", exchange, "${asked.url.host}\\n${credential}", "${asked.url.host}\\n", doors],
  ["a queue without a bound", pacer, "if (waiting >= queue)", "if (waiting >= queue + 9)", paces],
  ["a gate that does not follow its store", hold, "standing?.close(held)", "void standing", holds],
  [
    "a wait that has become too long is gone on with",
    hold,
    "end > deadline || isDeferred(held, rest, policy)",
    "end > deadline",
    holds
  ],
  [
    "a probe's gate is not cleared",
    hold,
    "if (before === Number.POSITIVE_INFINITY || (forgotten",
    "if ((forgotten",
    holds
  ],
  ["a closed hold is told of", hold, "closed ? Effect.void : PubSub", "PubSub", holds],
  ["a signature is an account", exchange, "?.[1] ?? sent", "?.[9] ?? sent", doors],
  ["undici's clock runs out first", node, "const MARGIN = 30_000", "const MARGIN = 0", fetches],
  [
    "streams: text that was shown is asked for again",
    streaming,
    "if (text.length === 0) return opening",
    "if (text.length < 9) return opening",
    streams
  ],
  [
    "streams: reasoning is not sealed",
    streaming,
    "replaced !== undefined && seen",
    "replaced !== undefined && false",
    streams
  ],
  [
    "streams: tool calls are not withheld",
    streaming,
    "if (this.end === undefined) this.#tools.push(part)",
    "out.push(part)",
    streams
  ],
  [
    "streams: the calls of a capped answer are handed on",
    streaming,
    "if (described.end._tag === \"Complete\") out",
    "out",
    streams
  ],
  [
    "streams: a missing end is an end",
    streaming,
    "if (Option.isNone(ended)) return Effect.flatMap(cutOff, failed)",
    "if (Option.isNone(ended)) return Effect.fail(ended)",
    streams
  ],
  [
    "streams: a break after the end counts",
    streaming,
    "if (reader.end !== undefined) return finished(reader.end)",
    "if (reader.end !== undefined && Option.isNone(ended)) return finished(reader.end)",
    streams
  ],
  [
    "streams: an attempt stays open",
    streaming,
    "return last === undefined ? Effect.void : Scope.close(last, exit)",
    "return Effect.void",
    streams
  ],
  [
    "streams: what was shown is forgotten",
    streaming,
    "if (Fault.isFault(error)) prefixes.set(error, shown())",
    "",
    streams
  ],
  [
    "streams: a refusal inside one is nobody's business",
    recovery,
    "Effect.zipRight(settled(fault), failed(call, fault))",
    "failed(call, fault)",
    streams
  ],
  [
    "streams: an early success pays the budget back",
    recovery,
    "const recovered = call.streamed ? Effect.void : succeeded(call)",
    "const recovered = succeeded(call)",
    streams
  ],
  [
    "protocols: an error frame is a part",
    decoder,
    "if (!this.isOver && (isError(frame, event)",
    "if (!this.isOver && (false",
    protocols
  ],
  ["protocols: bytes that are no text pass", decoder, "fatal: true", "fatal: false", protocols],
  ["protocols: half a frame is a frame", decoder, "if (text && end === undefined && this.#last) return", "", protocols],
  [
    "fetch: a stream is handed on at its head",
    exchange,
    "? judges && protocol !== undefined &&",
    "? false && protocol !== undefined &&",
    sdks
  ],
  [
    "fetch: an early end is a clean one",
    exchange,
    "return next === undefined && decoder.isCut ?",
    "return false ?",
    sdks
  ],
  [
    "a stream that is interrupted is left open",
    client,
    "Scope.addFinalizer(scope, Effect.sync(hangUp))",
    "Effect.void",
    wired
  ],
  ["streams: what came for an interrupted pull is lost", exchange, "        given = next\n", "", wired],
  ["a wake-up before its reset", resume, "const wakes = until + later", "const wakes = until - 1_000", resumes],
  [
    "a wake-up of a refusal that was replaced",
    resume,
    "open(\"written\", store.remove(first.conversation, first.wakes), false)",
    "Effect.succeed(true)",
    resumes
  ],
  ["a success leaves its wake-up armed", resume, "Effect.tap(() => resume.disarm(conversation)),", "", resumes],
  ["what has to settle wakes", resume, "Effect.provideService(self, Resume, none)", "self as never", resumes],
  [
    "a torn record takes the others with it",
    persisted,
    "if (Option.isSome(one)) initial.push(one.value)",
    "if (Option.isSome(one)) initial.length = 0",
    persists
  ],
  ["tools run beneath the recovery", model, "disableToolCallResolution: true as const", "concurrency: 1", modelling],
  [
    "a tool of a capped answer runs",
    model,
    "const isCut = ended?.reason === \"length\" ||",
    "const isCut = ended?.reason === \"other\" ||",
    modelling
  ],
  [
    "an error part is a part like any other",
    model,
    "case \"error\":\n        return {",
    "case \"file\":\n        return {",
    traps
  ],
  [
    "nobody hears a terminal event that reports a failure",
    model,
    "return witness.fault === undefined\n",
    "return true\n",
    traps
  ],
  [
    "what a failed attempt thought is taken up",
    model,
    "      texts.clear()\n      held = []",
    "      texts.clear()",
    modelling
  ],
  ["a repair costs nothing", exchanging, "!(yield* budget.take)", "(yield* budget.left) < 0", exchanges],
  ["an exchange forgets what was shown", exchanging, "Stream.ensuringWith(taken),", "", exchanges],
  [
    "an open call stays in the transcript",
    exchanging,
    "const parts = inOrder ? all",
    "const parts = true ? all",
    exchanges
  ],
  [
    "what is killed while it writes loses all",
    persisted,
    "store.set(keys[revision % 2] ?? keys[0],",
    "store.set(keys[0],",
    persists
  ],
  ["what cannot be read is written over", persisted, "if (unread) return Effect.void", "", persists],
  ["a chat loses what was shown of a cut", model, "else out.push(...ends())", "else ends()", modelling],
  ["a caller's span is transformed beneath too", model, "within(beneath(heard)),", "", modelling],
  [
    "a short event stream is waited for whole",
    client,
    "status >= 200 && status < 300 && !events &&",
    "status >= 200 && status < 300 &&",
    traps
  ],
  [
    "streams: an answer that broke is whole",
    client,
    "(decoder.isOver ? taken(decoder, undefined) : undefined) ?? failed(error)",
    "taken(decoder, undefined) ?? failed(error)",
    wired
  ],
  [
    "a calendar whose leap day does not end the year",
    reset,
    "const y = month > 2 ? year : year - 1",
    "const y = year",
    resets
  ],
  ["a minute of an hour that has none", reset, "minute < 60", "minute < 99", resets],
  [
    "a limit and a request that have nothing to do with each other",
    diagnosis,
    "prose.slice(Math.max(0, from + word - 1), at + 32)",
    "\"limit 1, requested 2\"",
    readings
  ],
  [
    "a request as large as its limit",
    diagnosis,
    "limit > 0 && limit < requested",
    "limit > 0 && limit <= requested",
    readings
  ],
  [
    "an error that is none to its tools",
    "packages/core/src/Fault.ts",
    "return \"Error\"",
    "return \"Fault\" as \"Error\"",
    "packages/core/test/Fault.test.ts"
  ],
  [
    "an attempt that is told of behind its call",
    recovery,
    "return attempt === 2 || call.streamed",
    "return attempt < 0 || call.streamed",
    recovering
  ],
  [
    "a header's code that nobody reads",
    diagnosis,
    "answer === last && codes.length === 0",
    "answer === last && codes.length < 0",
    readings
  ],
  [
    "a pool that is empty under a throttle",
    diagnosis,
    "status === 429 && word !== Markers.pool",
    "status === 429",
    readings
  ],
  [
    "a generation cut at its cap that is asked for again",
    diagnosis,
    "if (unmade && end?._tag === \"OutputCap\")",
    "if (unmade && end?._tag === \"Failed\")",
    readings
  ],
  [
    "a relay's exception before the words that it relays",
    diagnosis,
    "named === undefined || kindOf(named.meaning) === \"Unavailable\" ?",
    "named === undefined ?",
    readings
  ],
  [
    "a cut array that nobody reads",
    "packages/core/src/internal/answers.ts",
    "if (frame && broken && first === \"[\")",
    "if (frame && !broken && first === \"[\")",
    readings
  ],
  [
    "a silence that is no stream",
    "packages/core/src/internal/answers.ts",
    "if (isSilence(body)) {\n        framed = true",
    "if (isSilence(\"\")) {\n        framed = true",
    readings
  ],
  [
    "a code that is read as another one that it is like",
    "packages/core/src/internal/codes.ts",
    "asSent.get(code) ?? documented.get(name)",
    "documented.get(name)",
    readings
  ],
  [
    "a reason of Effect 4 that nobody walks",
    "packages/core/src/internal/chain.ts",
    "link === \"reason\" && typeof",
    "link === \"cause\" && typeof",
    readings
  ],
  [
    "a page whose wait is not read",
    reset,
    "if (answers.page !== undefined) return proseResets(reader, textOf(rawOf(evidence).body) ?? \"\", \"Z\")",
    "if (answers.page !== undefined) return",
    resets
  ]
]

const root = fileURLToPath(new URL("..", import.meta.url))
const only = process.argv[2]
const wanted = mutants.filter(([name]) => only === undefined || name.includes(only))
const survivors = []

/** Runs a command, and gives its exit status and what it printed. */
const run = (command, args, cwd) =>
  new Promise((resolve) => {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] })
    let printed = ""
    child.stdout.on("data", (text) => {
      printed += text
    })
    child.on("close", (status) => resolve({ status, printed }))
  })

const plant = async ([name, file, from, to, tests, extra = ""]) => {
  const source = readFileSync(join(root, file), "utf8")
  if (source.split(from).length !== 2) {
    survivors.push(`${name}: what it changes stands ${source.split(from).length - 1} times in ${file}`)
    return
  }
  const copy = mkdtempSync(join(tmpdir(), "recourse-mutant-"))
  try {
    for (const part of ["packages/core", "packages/platform", "packages/ai", "packages/testing"]) {
      cpSync(join(root, part), join(copy, part), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !/\/(?:dist|docs)$/.test(path)
      })
    }
    for (const part of ["package.json", "tsconfig.base.json", "vitest.workspace.ts"]) {
      cpSync(join(root, part), join(copy, part))
    }
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
    writeFileSync(join(copy, file), `${source.replace(from, () => to)}\n${extra}\n`)
    const { printed, status } = await run("npx", ["vitest", "run", "--bail", "1", "--reporter=dot", tests], copy)
    const found = status !== 0 && /Tests .*failed/.test(printed)
    console.log(`${found ? "found   " : "SURVIVED"} ${name}`)
    if (!found) survivors.push(`${name}: not found by ${tests}\n${printed.slice(-600)}`)
  } finally {
    rmSync(copy, { recursive: true })
  }
}

// one for each core: most of a run is one thread
const queue = [...wanted]
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) await plant(mutant)
  })
)
for (const survivor of survivors) console.error(survivor)
console.log(`${wanted.length - survivors.length} of ${wanted.length} planted bugs were found`)
process.exit(survivors.length === 0 ? 0 : 1)
