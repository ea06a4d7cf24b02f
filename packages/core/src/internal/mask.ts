/** What stands where a secret stood. */
const MASKED = "[masked]"

/** How many characters of a provider's text can be read. */
const TEXT_CAP = 16_384

const word = "A-Za-z0-9"

// Every quantifier is bounded or cannot fail after it has consumed, so each pass is linear in the text.
const passes: ReadonlyArray<readonly [RegExp, string]> = [
  // credentials in a URL: scheme://user:password@host
  [/([a-z][a-z0-9+.-]{1,16}:\/\/)[^\s/@:"']{1,256}(?::[^\s/@"']{0,256})?@/gi, `$1${MASKED}@`],
  // Authorization values
  [/\b(bearer|basic)(\s+)(?!\[masked\])(?:"[^"]{0,4096}"?|[^\s"',;}\]]{4,4096})/gi, `$1$2${MASKED}`],
  // cookies, to the end of the value
  [
    /((?:set-)?cookie["']?\s{0,4}[:=]\s{0,4})(?:"(?:[^"\\]|\\.){0,8192}"?|'[^']{0,8192}'?|[^\n"'}]{1,8192})/gi,
    `$1${MASKED}`
  ],
  // named secrets, in queries, headers, JSON and prose
  [
    /((?:["'?&;,\s{(]|^)(?:[\w-]{0,24}[-_])?(?:key|api[-_ ]?keys?|apikey|authorization|secret|password|passwd|pwd|token|credential|signature|sig|org(?:anization|anisation)?(?:[-_ ]?id)?|(?:project|account|tenant|workspace|user|customer)[-_ ]?id)(?: provided)?["']?\s{0,4}[:=]\s{0,4})(?!\[masked\])(?:\\?"(?:[^"\\]|\\.){1,4096}"?|'[^']{1,4096}'?|(?!(?:bearer|basic)\s)[^\s"'&,;})\]]{1,4096})/gi,
    `$1${MASKED}`
  ],
  // what the user wrote, echoed back
  [
    /("(?:prompt|input|content|contents|messages|flagged_input|failed_generation|arguments)"\s{0,4}:\s{0,4})"(?:[^"\\]|\\.){1,65536}"?/g,
    `$1"${MASKED}"`
  ],
  // keys that are known by their prefix
  [
    new RegExp(
      `(?<![${word}])(?:(?:sk|pk|rk|sess|gsk|csk|xai|pplx|nvapi|fw|hf|r8|glpat|gh[pousr]|github_pat|xox[abeprs]|tgp|key|ak|whsec|dop_v1|sbp|npm|pat)[-_][${word}_.*-]{6,512}|AIza[${word}_-]{16,512}|ya29\\.[${word}_.-]{8,512}|(?:AKIA|ASIA|ABIA)[A-Z0-9]{12,32}|eyJ[${word}_-]{6,4096}(?:\\.[${word}_-]{0,4096}){0,4})`,
      "g"
    ),
    MASKED
  ],
  // organisation, project and account ids
  [/\b(?:org|proj)[-_][A-Za-z0-9]{4,64}/g, MASKED],
  [/\b(?:user|wrk|wrkspc|acct|cus|team|tenant)[-_](?=[A-Za-z0-9]{0,63}\d)[A-Za-z0-9]{6,64}/g, MASKED],
  [/(\barn:[a-z-]{1,16}:[a-z0-9-]{0,32}:[a-z0-9-]{0,32}:)\d{6,20}/g, `$1${MASKED}`],
  [/(\bprojects?(?:\/|_number:|[ _]number\W{1,3}|\s))(?=[a-z0-9-]{0,62}[\d-])[a-z0-9][a-z0-9-]{3,62}/gi, `$1${MASKED}`],
  [
    /(\b(?:organi[sz]ation|account|workspace|project|tenant|subscription|user|team)(?:\s{1,3}id)?[\s:=/'"(]{1,4})(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{8,20})/gi,
    `$1${MASKED}`
  ],
  // e-mail addresses
  [/[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/g, MASKED],
  // long opaque runs of letters and digits, which no word is
  [/(?<![A-Za-z0-9_])(?=[A-Za-z_]{0,256}\d)(?=[\d_]{0,256}[A-Za-z])[A-Za-z0-9_]{32,4096}/g, MASKED]
]

/** Cuts to `most` characters, the ellipsis included. */
export const cap = (text: string, most: number): string => text.length <= most ? text : `${text.slice(0, most - 1)}…`

/**
 * The text with secrets masked, cut to `most` characters. Works on a bounded slice, so its cost does not grow with the
 * text; a run that the slice cuts in two is dropped whole, because half a key is no longer known as one.
 */
export const mask = (text: string, most: number = TEXT_CAP): string => {
  const slice = most + 4_096
  const cut = text.length > slice
  let out = cut ? text.slice(0, slice).replace(/[^\s"']{1,4096}$/, "") : text
  for (const [pattern, replacement] of passes) {
    out = out.replace(pattern, replacement)
  }
  return cut && out.length < most ? `${out}…` : cap(out, most)
}
