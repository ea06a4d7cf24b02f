/**
 * The main job, live: four calls that fail over real sockets, and what becomes of each.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Terminal from "@effect/platform/Terminal"
import * as Fault from "@recourse/core/Fault"
import * as Hold from "@recourse/core/Hold"
import * as Recovery from "@recourse/core/Recovery"
import * as NodeClient from "@recourse/platform/NodeClient"
import * as RecourseClient from "@recourse/platform/RecourseClient"
import * as Provider from "@recourse/testing/ScriptedProvider"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type * as Explain from "./Explain.ts"

interface Scene {
  readonly title: string
  readonly steps: ReadonlyArray<Provider.Step>
  /** Who calls, one after the other. */
  readonly callers: ReadonlyArray<string>
}

const PROSE = "A socket is a promise that bytes will keep coming. When it is reset, what was said is still true."

const overloaded = Provider.answer(529, { body: { error: { type: "overloaded_error", message: "Overloaded" } } })

const refused = (seconds: number): Provider.Step =>
  Provider.answer(429, {
    headers: { "retry-after": String(seconds) },
    body: { error: { code: "rate_limit_exceeded", message: "Rate limit reached for requests." } }
  })

const scenes: ReadonlyArray<Scene> = [
  {
    title: "A throttle that names its wait: it is waited out",
    steps: [refused(2), Provider.good("Here is the answer.")],
    callers: ["attempt"]
  },
  {
    title: "An overload, twice: the calls back off",
    steps: [overloaded, overloaded, Provider.good("Here is the answer.")],
    callers: ["attempt"]
  },
  {
    title: "A stream that is reset in the middle of its answer: the prose is kept",
    steps: [Provider.paced(Provider.good(PROSE), { bytes: 180, every: 60, resetAfter: 2_600 })],
    callers: ["attempt"]
  },
  {
    title: "A limit for 40 minutes, and a sibling on the same model: the hold answers it",
    steps: [refused(2_400)],
    callers: ["attempt", "sibling"]
  }
]

/** What is drawn of a scene: what went on from one instant to another, in milliseconds, and how it ended. */
interface Stretch {
  readonly from: number
  readonly to: number
  readonly what: "attempt" | "wait"
  readonly end: "failed" | "cut" | "answered" | "held" | undefined
}

interface Played {
  readonly stretches: ReadonlyArray<Stretch>
  readonly millis: number
}

const seconds = (millis: number): string => `${(millis / 1_000).toFixed(1)}s`

const BAR = 24
const FRAME = Duration.millis(80)

/** A wait as it passes, on a terminal alone. */
const bar = (millis: number, display: (text: string) => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (began) => {
    const paint: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const left = Math.max(0, began + millis - now)
      const full = millis === 0 ? BAR : Math.round(BAR * (1 - left / millis))
      return Effect.zipRight(
        display(`\r   ${"█".repeat(full)}${"░".repeat(BAR - full)} ${seconds(left)} `),
        Effect.zipRight(Effect.sleep(FRAME), paint)
      )
    })
    return Effect.ensuring(paint, display("\r\u001B[K"))
  })

const one = (
  scene: Scene,
  number: number,
  provider: Effect.Effect.Success<ReturnType<typeof Provider.make>>,
  { colors }: Explain.Screen
) =>
  Effect.gen(function*() {
    const terminal = yield* Terminal.Terminal
    const live = yield* terminal.isTTY
    const client = yield* HttpClient.HttpClient
    const display = (text: string) => Effect.orDie(terminal.display(text))
    const began = yield* Clock.currentTimeMillis
    const stretches: Array<Stretch> = []
    let from = 0
    let waiting: Fiber.Fiber<void> | undefined

    yield* provider.play(...scene.steps)
    yield* display(`\n${colors.bold(`${number}  ${scene.title}`)}\n`)

    for (const who of scene.callers) {
      let text = ""
      const head = (attempt: number): string => `   ${(who === "attempt" ? `${who} ${attempt}` : who).padEnd(11)} `
      /** Ends what went on. */
      const ended = (what: Stretch["what"], end: Stretch["end"]) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          stretches.push({ from, to: now - began, what, end })
          from = now - began
        })
      const line = ({ attempt, fault }: { readonly attempt: number; readonly fault: Fault.Fault }, what: string) => {
        const shade = Fault.isRetryable(fault._tag) ? colors.yellow : colors.red
        return display(
          `${text === "" ? head(attempt) : `”\n${" ".repeat(15)}`}${shade(fault._tag.padEnd(12))} ${what}\n`
        )
      }
      const onEvent = (event: Recovery.Event): Effect.Effect<void> => {
        switch (event._tag) {
          case "Started":
            return waiting === undefined
              ? Effect.void
              : Effect.zipRight(Fiber.interrupt(waiting), ended("wait", undefined))
          case "Retrying": {
            const millis = Duration.toMillis(event.wait)
            const how = event.named ? "as the provider asked" : "backing off"
            return Effect.gen(function*() {
              yield* ended("attempt", "failed")
              yield* line(event, `waits ${seconds(millis)}, ${how}`)
              waiting = yield* Effect.fork(live ? bar(millis, display) : Effect.never)
            })
          }
          case "Surfaced": {
            const { fault } = event
            const until = fault.resetsAt === undefined
              ? "surfaced"
              : `ends here, and says until when: ${DateTime.formatIso(fault.resetsAt.at).slice(11, 19)} UTC`
            const isHeld = fault.attempts === 0
            return Effect.zipRight(
              ended("attempt", isHeld ? "held" : "failed"),
              line(event, isHeld ? "answered by the hold, at once: nothing was sent" : until)
            )
          }
          case "Cut":
            return event.cut === "OutputCap" ? Effect.void : Effect.zipRight(
              ended("attempt", "cut"),
              line(event, "the stream ends as Stalled; its text stands, and is not said twice")
            )
          case "Failed":
          case "Recovered":
          case "Interrupted":
            return Effect.void
        }
      }
      let attempt = 1
      const request = HttpClientRequest.post(`${provider.url}/v1/chat/completions`).pipe(
        HttpClientRequest.bodyUnsafeJson({ model: "scripted", stream: true, messages: [] })
      )
      yield* Stream.runForEach(RecourseClient.stream(client, request), (part) => {
        if (part._tag === "Boundary") attempt = part.attempt
        if (part._tag !== "Text") return Effect.void
        const opening = text === "" ? `${head(attempt)}“` : ""
        text += part.text
        return display(`${opening}${part.text}`)
      }).pipe(
        Effect.zipRight(Effect.suspend(() =>
          stretches.at(-1)?.end === "cut"
            ? Effect.void
            : Effect.zipRight(ended("attempt", "answered"), display("”\n"))
        )),
        Recovery.withListener((event) => {
          if (event._tag === "Started") attempt = event.attempt
          return onEvent(event)
        }),
        Effect.catchIf(Fault.isFault, () => Effect.void)
      )
      waiting = undefined
    }
    const { length } = yield* provider.requests
    yield* display(colors.dim(`   the provider saw ${length === 1 ? "1 request" : `${length} requests`}\n`))
    const played: Played = { stretches, millis: (yield* Clock.currentTimeMillis) - began }
    return played
  })

const MARKS = { failed: "×", cut: "◐", answered: "●", held: "○" }

/** All scenes on one axis. */
const timeline = (all: ReadonlyArray<Played>, { colors, width }: Explain.Screen): string => {
  const columns = Math.min(width, 110) - 8
  const most = Math.max(...all.map(({ millis }) => millis), 1)
  const at = (millis: number): number => Math.min(columns - 1, Math.round((millis / most) * (columns - 1)))
  const rows = all.map(({ stretches }, i) => {
    const cells = Array.from({ length: columns }, () => " ")
    for (const { from, to, what } of stretches) {
      cells.fill(what === "wait" ? "·" : "━", at(from), at(to) + 1)
    }
    // a mark that falls on another one stands beside it
    let free = 0
    for (const { end, to } of stretches) {
      if (end === undefined) continue
      const place = Math.max(free, at(to))
      cells[place] = MARKS[end]
      free = place + 1
    }
    return `   ${i + 1} ${cells.join("").trimEnd()}`
  })
  const axis = `     0s${seconds(most).padStart(columns - 2)}`
  return [
    ...rows,
    colors.dim(axis),
    colors.dim("     ━ an attempt  · a wait  × refused or overloaded  ◐ cut, its text kept  ● answered  ○ by the hold")
  ].join("\n")
}

/**
 * Plays the scenes, one line for each attempt as it happens, and then draws when everything was.
 *
 * @category constructors
 * @since 0.1.0
 */
export const play = (screen: Explain.Screen) =>
  Effect.gen(function*() {
    const provider = yield* Provider.make()
    const { colors } = screen
    yield* Console.log(
      `\n${
        colors.bold("Recourse")
      }, live: a provider on ${provider.url} that fails as it is told, under the standard policy.`
    )
    const all: Array<Played> = []
    for (const [i, scene] of scenes.entries()) all.push(yield* one(scene, i + 1, provider, screen))
    yield* Console.log(`\n${timeline(all, screen)}`)
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(NodeClient.layer(), Hold.layerMemory)))
