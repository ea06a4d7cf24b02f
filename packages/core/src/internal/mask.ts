/** What stands where a secret stood. */
const MASKED = "[masked]"

/** How many characters of a provider's text can be read. */
const TEXT_CAP = 16_384

const word = "A-Za-z0-9"

// Between a name and its value: JSON, escaped JSON, headers, queries, XML, Python and lists of pairs.
const between = `(?:\\\\{0,7}["'])?\\s{0,4}(?:[:=>]|,\\s{0,2}(?=\\\\{0,7}["']))\\s{0,4}`
// A value that is quoted in any of those ways, or runs to what ends it.
const quote = `(?:\\\\{0,7}["'])?`
const value =
  `(?!${quote}\\[masked\\])(?:\\\\{1,7}["'][^"'\\\\]{1,4096}|"(?:[^"\\\\]|\\\\.){1,4096}"?|'(?:[^'\\\\]|\\\\.){1,4096}'?|[^\\s"'&,;<>)}\\]\\\\]{1,4096})`

// Names whose value is a secret whatever it looks like.
const secret =
  `pass(?:word|wd|phrase)|pwd|secret|api[-_ ]?keys?|(?:access|private|subscription|account|signing|master|encryption)[-_ ]?keys?(?:[-_ ]?id)?|(?:access|refresh|id|auth|session|security|bearer)[-_ ]?token|client[-_ ]?secret|signature|credentials?`
// Names whose value is one only if it looks like one.
const perhaps =
  `key|token|sig|org(?:anization|anisation)?(?:[-_ ]?id)?|(?:project|account|tenant|workspace|user|customer)[-_ ]?id`
const looksLikeOne = `(?=[\\\\"']{0,8}[^\\s"'&,;<>)}\\]]{0,256}\\d)(?=[\\\\"']{0,8}[^\\s"'&,;<>)}\\]]{0,256}[A-Za-z_-])`

// What the user wrote and what the model answers, as requests, answers and frames name it.
const echoed =
  "prompt|input|content|contents|messages|parts|flagged_input|failed_generation|arguments|requestBodyValues|system|instructions"
// The same, where these names hold a text; they hold other things too.
const spoken = "text|delta|thinking|reasoning|reasoning_content|completion|generated_text|partial_json|response|query"

// Every quantifier is bounded, and each pass moves on past what it has consumed.
const passes: ReadonlyArray<readonly [RegExp, string]> = [
  // credentials in a URL: scheme://user:password@host
  [/([a-z][a-z0-9+.-]{1,16}:\/\/)[^\s/@:"']{0,256}(?::[^\s/@"']{0,256})?@/gi, `$1${MASKED}@`],
  // Authorization, with or without a scheme
  [
    new RegExp(
      `(\\bauthorization${between})(?!${quote}\\[masked\\])(${quote})(?:[\\w-]{1,32}\\s{1,4})?[^\\s"',;}\\]\\\\]{1,4096}`,
      "gi"
    ),
    `$1$2${MASKED}`
  ],
  [/\b(bearer|basic)(\s+)(?!\[masked\])(?=[^\s"',;}\]]{0,256}[\dA-Z=])[^\s"',;}\]]{6,4096}/gi, `$1$2${MASKED}`],
  // cookies, to the end of the value
  [
    new RegExp(
      `((?:set-)?cookie${between})(?:"(?:[^"\\\\]|\\\\.){0,8192}"?|'[^']{0,8192}'?|[^\\n"'}]{1,8192})`,
      "gi"
    ),
    `$1${MASKED}`
  ],
  // named secrets
  [new RegExp(`((?<![${word}])[\\w-]{0,32}?(?:${secret})(?: provided)?${between})${value}`, "gi"), `$1${MASKED}`],
  [
    new RegExp(`((?<![${word}])(?:[\\w-]{0,24}[-_])?(?:${perhaps})${between})${looksLikeOne}${value}`, "gi"),
    `$1${MASKED}`
  ],
  // what the user wrote, echoed back
  [new RegExp(`("(?:${echoed}|${spoken})"\\s{0,4}:\\s{0,4})"(?:[^"\\\\]|\\\\.){1,65536}"?`, "g"), `$1"${MASKED}"`],
  [new RegExp(`('(?:${echoed}|${spoken})'\\s{0,4}:\\s{0,4})'(?:[^'\\\\]|\\\\.){1,65536}'?`, "g"), `$1'${MASKED}'`],
  [
    new RegExp(
      `(\\\\{1,7}"(?:${echoed}|${spoken})\\\\{1,7}"\\s{0,4}:\\s{0,4}\\\\{1,7}")(?:[^"\\\\]|\\\\[^"\\\\]){1,65536}`,
      "g"
    ),
    `$1${MASKED}`
  ],
  // keys that are known by their prefix
  [
    new RegExp(
      `(?<![${word}])(?:(?:sk|rk|sess|gsk|csk|whsec)[-_][${word}_.*-]{6,512}|(?:pk|xai|pplx|nvapi|fw|hf|r8|glpat|gh[pousr]|github_pat|xox[abeprs]|tgp|key|ak|dop_v1|sbp|npm|pat)[-_](?=[${word}_-]{0,256}\\d)[${word}_.*-]{6,512}|AIza[${word}_-]{16,512}|ya29\\.[${word}_.-]{8,512}|(?:AKIA|ASIA|ABIA)[A-Z0-9]{12,32}|eyJ[${word}_-]{6,4096}(?:\\.[${word}_-]{0,4096}){0,4})`,
      "g"
    ),
    MASKED
  ],
  // organisation, project and account ids
  [/\b(?:org|proj|user|wrk|wrkspc|acct|cus|team|tenant)[-_](?=[A-Za-z0-9]{0,63}\d)[A-Za-z0-9]{4,64}/g, MASKED],
  [/(\barn:[a-z-]{1,16}:[a-z0-9-]{0,32}:[a-z0-9-]{0,32}:)\d{6,20}/g, `$1${MASKED}`],
  [
    /(\bprojects?(?:\/|_number:|[ _]number\W{1,3}|\s))(?=[a-z0-9-]{0,62}[\d-])[a-z0-9][a-z0-9-]{3,62}/gi,
    `$1${MASKED}`
  ],
  [
    /(\b(?:organi[sz]ation|account|acct|workspace|project|tenant|subscription|user|team)(?:\s{1,3}id)?[\s:=/'"(]{1,4})(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{8,20})/gi,
    `$1${MASKED}`
  ],
  // e-mail addresses
  [/[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b/g, MASKED],
  // long opaque runs of letters and digits, which no word is
  [/(?<![A-Za-z0-9_])(?=[A-Za-z_]{0,256}\d)(?=[\d_]{0,256}[A-Za-z])[A-Za-z0-9_]{32,4096}/g, MASKED]
]

/** Cuts to `most` characters, the ellipsis included. */
export const cap = (text: string, most: number): string => text.length <= most ? text : `${text.slice(0, most - 1)}…`

/** No secret is longer. */
const LONGEST = 4_096

/** The text up to a blank or quote before `end`, or without its last run: half a key is no longer known as one. */
const wholeWords = (text: string, end: number): string => {
  let at = end
  while (at > end - LONGEST && !/[\s"']/.test(text.charAt(at - 1))) at--
  return text.slice(0, at)
}

/**
 * The text with secrets masked, cut to `most` characters. It works on a bounded slice, so its cost does not grow with the
 * text.
 */
export const mask = (text: string, most: number = TEXT_CAP): string => {
  const slice = most + LONGEST
  const cut = text.length > slice
  let out = cut ? wholeWords(text, slice) : text
  for (const [pattern, replacement] of passes) out = out.replace(pattern, replacement)
  return cut && out.length < most ? `${out}…` : cap(out, most)
}

const isEchoed = new RegExp(`^(?:${echoed})$`)
const isSpoken = new RegExp(`^(?:${spoken})$`)

const echoes = new RegExp(`"(?:${echoed}|${spoken})"`)

/** JSON whose prompts and answers are masked whole, however they nest; other text as it is. */
const withoutEchoes = (text: string): string => {
  const first = text.trimStart().charAt(0)
  if ((first !== "{" && first !== "[") || !echoes.test(text)) return text
  try {
    return JSON.stringify(
      JSON.parse(text),
      (key, value: unknown) =>
        value !== "" && value !== null && (isEchoed.test(key) || (typeof value === "string" && isSpoken.test(key)))
          ? MASKED
          : value
    )
  } catch {
    return text
  }
}

/** A body with secrets masked, and whole prompts and answers too: of JSON, and of the events of a stream. */
export const maskBody = (text: string, most: number = TEXT_CAP): string => {
  if (text.length > TEXT_CAP * 4) return mask(text, most)
  return mask(
    /^data:/m.test(text)
      ? text.replace(/^(data: ?)(.*)$/gm, (_, field: string, payload: string) => field + withoutEchoes(payload))
      : withoutEchoes(text),
    most
  )
}
