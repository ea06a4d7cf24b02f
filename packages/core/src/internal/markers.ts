import type { Kind } from "../Readout.ts"

/** A phrase that text may be known by, and what it may be known as. */
export interface Marker {
  readonly kind: Kind
  readonly name: string
  readonly pattern: RegExp
}

const marker = (kind: Kind, name: string, pattern: RegExp): Marker => ({ kind, name, pattern })

// --- phrases -----------------------------------------------------------------------------------------------------------
// All quantifiers are bounded. Each phrase has a near miss in the tests.

export const throttle = marker(
  "RateLimited",
  "a throttle",
  /\brate[ _-]?limit(?:s|ed|ing)?[ _-](?:was |is |has been |have been )?(?:exceeded|reached|hit|error|of \d)|\brate[ -]limited\b|exceed(?:ed|s|ing)?\b[^.]{0,60}\brate limit|reached[^.]{0,60}\brate limit|too many (?:concurrent )?requests|concurrency limit (?:has been )?(?:exceeded|reached)|request rate (?:has )?increased too|流控超限|(?:request|call)s? (?:was|were|is|are|has been|got|being) throttled|\bthrottling(?:exception|error)\b|exceeded your (?:current|monthly|daily) quota|\bquota (?:has been )?exceeded\b|\bresource ?(?:has been )?exhausted\b|usage limit (?:has been )?(?:reached|exceeded)|(?:hit|reached) (?:your|the) (?:[\w-]{1,16} )?limit/i
)

export const overflow = marker(
  "ContextOverflowed",
  "an overflow",
  /maximum (?:context|prompt|input|sequence) length|max(?:imum)?[ _](?:model[ _])?(?:context|seq(?:uence)?)[ _]?len|(?:exceed\w*|(?:longer|larger|greater|bigger|more) than|beyond|over|outside|too (?:large|long|big) for)\b[^.]{0,60}\b(?:context (?:length|window|size|limit)|n_ctx\b|max(?:imum)? (?:number of )?(?:input |prompt |context )?tokens(?! per)|token (?:limit|window) (?:of|for) (?:this|the) model|model(?:'s)? (?:maximum )?(?:context|input))|context[ _](?:length|window|size|limit)[^.]{0,40}(?:exceed|overflow|too small)|(?:message|request|conversation|messages|context|question|text)(?: length)? (?:is|are|was|were) too (?:long|large)\b[^.]{0,80}(?:model|token|context|maximum)|(?:prompt|input)s?(?: tokens?| length)? (?:is |are |was |were )?too (?:long|large|many)\b|prompt exceeds max(?:imum)? length|too many (?:input |prompt )?tokens in (?:the )?(?:prompt|request|input)|\btokens?\b[^.]{0,60}\b(?:cannot|can't|must not|may not|should not) exceed\b(?![^.]{0,24}\bper\b)|must have (?:less|fewer) than [\d,]{1,12} tokens|tokens? must be (?:no more than|at most|less than|fewer than|under|below) [\d,]{1,12}\b(?! per)|prompt length\b[^\n]{0,60}\b(?:should|must|can) ?not exceed|token数?量?超过(?:上限|限制)|tokens? count[^.]{0,40}exceeds? the maximum|input tokens? exceeds?|exceeds? (?:the )?(?:max(?:imum)? )?(?:message|input|prompt) tokens?|`inputs` tokens \+ `max_new_tokens`|(?:input|prompt) length should be|length of (?:the )?prompt_tokens|context\b[^.]{0,16}\boverflows?\b|larger context length|model(?:'s)? token limit|maximum allowed length|(?:input|prompt|context)s?\b[^.]{0,60}\bexceed\w*\b[^.]{0,60}\b(?:max(?:imum)?|limit|allowed)\b[^.]{0,40}\b(?:length|tokens?)\b(?! per)|max(?:imum)? tokens of [\d,]{1,12} exceeded|reduce (?:the|your) (?:length|size) of (?:the |your )?(?:messages|prompt|input|context)|size limit exceeded by \d{1,9} tokens|上下文(?:长度|窗口)?[^。]{0,16}(?:超|过长)|(?:输入|提示词?|prompt)[^。]{0,16}(?:过长|超长|超过[^。]{0,16}(?:长度|限制|token))/i
)

export const purse = marker(
  "QuotaExhausted",
  "an empty purse",
  /credit balance is (?:too low|insufficient|negative|empty)|insufficient (?:account |available |remaining |prepaid )?(?:balance|credits?|funds|quota balance)|(?:balance|credits?|funds) (?:is|are|has been|have been) (?:negative|insufficient|exhausted|depleted|not enough|used up|too low)|(?:not enough|out of|run out of|ran out of|no (?:more |remaining )?(?!credits were|credits have)|requires? more|lack of|depleted your|exhausted your|used (?:up )?all (?:of )?(?:your |the )?(?:available |included |monthly |free )?)\s?(?:prepaid |api |available |remaining )?(?:credits?\b|funds\b|balance\b)|exceeded your (?:monthly |daily )?(?:included |free )?credits|\bout of (?:extra )?usage\b|draws? from your extra usage|\btop up to continue|enable additional paid|budget (?:is |has been )?(?:exhausted|full)|\b(?:have|has) 0 credits\b|(?:add|purchase|buy|top up|recharge)[^.]{0,32}\b(?:credits?|funds|balance|extra usage)\b|(?:please|to|after|been) recharg(?:e|ed|ing)\b|\bquota (?:is )?(?:not enough|insufficient)|\b(?:key|credit|api key) limit (?:exceeded|reached)|failure to pay|(?:unpaid|past[- ]due|overdue) (?:invoice|bill|balance)|(?:no|add a|invalid|missing|update your) (?:valid )?payment method|payment (?:is )?required|(?:spend(?:ing)?|billing|cost|budget) (?:limit|cap|hard limit)[^.]{0,24}(?:reached|exceeded|hit)|(?:reach\w{0,3}|exceed\w{0,3}|hit|over)[^.]{0,40}\b(?:spend(?:ing)?|billing|budget|usage|credit) (?:limit|cap)s?\b|budget has been exceeded|exceeded (?:your |the )?(?:max(?:imum)? )?budget|(?:account|subscription|plan)[^.]{0,24} (?:in arrears|overdue|past due|has expired|is suspended[^.]{0,40}billing)|billing (?:is )?(?:not active|not enabled|disabled)|enable billing|余额不足|欠费|额度(?:已)?(?:用尽|不足)|充值/i
)

export const credential = marker(
  "CredentialRejected",
  "a bad key",
  /(?:invalid|incorrect|wrong|bad|expired|missing|revoked|unknown|malformed|no)\s(?:or (?:missing|expired|invalid) )?(?:x-|openai |anthropic |gemini |google )?api[- _]?key|api[- _]?key[^.]{0,24}(?:\bnot (?:valid|found|provided|set|recognized|active)|is (?:invalid|incorrect|missing|expired|required|disabled)|\b(?:invalid|expired|revoked|missing|leaked)\b)|(?:access|auth(?:entication|orization)?|bearer|oauth|session|security) ?tokens?[^.]{0,24}(?:expired|invalid|revoked|missing)|(?:invalid|expired|missing|incorrect) (?:authentication|authorization|credentials?|bearer|access token|auth(?:entication)? token|token\b(?! count| limit))|(?:authentication|authorization) (?:failed|required|error)|(?:could not|unable to|failed to) (?:authenticate|validate (?:the )?credentials)|\bunauthori[sz]ed\b|not authenticated|re-?authenticat(?:e|ion)\b[^.]{0,16}(?:needed|required|necessary)|(?:could not|unable to|failed to|cannot) (?:resolve|load|find|locate|obtain|refresh)\b[^.]{0,32}\b(?:authentication|credentials?|api[- _]?key|access token)|(?:organi[sz]ation|account|workspace|project|api[- _]?key)\b[^.]{0,16} (?:has been|was|is) (?:restricted|suspended|banned|deactivated|blocked|terminated)\b|(?:api ?key|密钥|令牌|token)[^。]{0,8}(?:无效|错误|过期|不正确)|身份验证失败|鉴权失败/i
)

export const refusal = marker(
  "ContentRefused",
  "a content policy",
  /content[- _]?(?:management |moderation |safety |usage )?(?:policy|policies|filter(?:ing|s)?)\b(?! (?:parameter|setting|config|field|option|must|is not (?:a )?(?:valid|supported)))|usage polic(?:y|ies)|(?:flagged|blocked|rejected|refused|filtered|stopped)\b[^.]{0,60}\b(?:safety|moderation|polic(?:y|ies)|content|harm|violat|unsafe|sensitive|inappropriate|prohibited)|(?:input|prompt|request|output|content|text|response|message)\b[^.]{0,24}\b(?:was|were|been|is|are) (?:flagged|filtered)|\bsafety\b[^.]{0,32}\b(?:flagged|blocked|refused|rejected)\b|violat\w{1,4}\b[^.]{0,60}\b(?:polic(?:y|ies)|guidelines|terms)|(?:safety|moderation) (?:system|filter|check|reasons?|classifier)|(?:inappropriate|sensitive|harmful|prohibited|unsafe|objectionable) (?:or \w{1,16} )?(?:content|material|information|data)|responsible ai|content exists risk|guardrail[^.]{0,48}(?:interven|block|fail|denied)|\bnew_sensitive\b|敏感|违规|不安全|内容安全|违反/i
)

const overloadWords =
  /(?<![a-z])overload(?:ed|ing)?(?![a-z])|\b(?:server|engine|model|service|system|backend|provider|api)s? (?:is |are )?(?:currently |temporarily |too |very )*busy\b|(?:at|over|out of|no (?:available )?|insufficient |exceeded |limited |beyond )\s?(?:its |our |current |full |maximum )*capacity\b|capacity (?:exceeded|exhausted|constraints|limit)|(?:high|heavy|increased|unusual(?:ly high)?|too much|peak|excessive) (?:demand|traffic|load|usage|volume)|too many (?:pending|queued|concurrent) requests|too many (?:open |concurrent )?connections|(?:queue|pending requests)[^.]{0,24}(?:full|exceeded|overflow)|no (?:healthy |available )?(?:workers?|instances?|gpus?|replicas?|slots?) (?:is |are )?(?:currently )?available|slow down|back-?pressure|exceeds? (?:the )?max(?:imum)? queue|服务(?:器)?(?:太|正)?忙|负载(?:过高|较高)|繁忙|访问量过大|拥挤/i

export const overload = marker("Overloaded", "an overload", overloadWords)

/** What a provider says of the sample alone, so that a request cannot be meant. */
export const sampled = marker(
  "GenerationMalformed",
  "a sample that cannot be used",
  /model (?:response|output|produced|generated)\b[^.]{0,32}\b(?:invalid|(?:did|does) not (?:respect|match|follow|conform))|output validation$|empty or unpars[ae]{1,2}ble response/i
)

export const malformed = marker(
  "GenerationMalformed",
  "a malformed generation",
  /malformed[ _](?:function|tool)[ _]call|error parsing (?:tool|function) call|(?:unable to|could not|failed to) parse (?:the )?(?:tool|function)[ _-](?:parameter|call|input|argument)|failed to (?:call a function|generate (?:valid )?json)[^.]{0,24}\. please adjust your prompt|see 'failed_generation'/i
)

/** A pool that a plan, a day, a week or a month grants, as prose and ids name it. */
export const allowance =
  /(?:per|by)[ _-]?(?:day|week|month)(?![a-z])|per(?:day|week|month)(?=per|[A-Z_-]|$)|\/ ?(?:day|week|month)\b|\b(?:daily|weekly|monthly)\b|(?<![a-z])(?:TPD|RPD)(?![a-z])|exhausted (?:their|your|its) quota|quota will reset after \d{1,4} ?h|\ba (?:day|week|month)\b|\b\d{1,2}[ -]?(?:hour|hr|h)s? (?:usage |session |rolling )?(?:limit|window|quota|bucket)|\bfive[_ -]hours?\b|\bseven[_ -]days?\b|(?:plan|usage|subscription|session) limit (?:has been )?(?:reached|exceeded)|(?:reached|hit|exceeded)[^.]{0,24}\b(?:usage|session|plan|subscription) limit|(?:hit|reached) your limit\b|free[- ]tier (?:limit|quota) (?:reached|exceeded|exhausted)|individual quota|try again (?:tomorrow|next (?:week|month))|每(?:天|日|周|月)|小时的?使用上限|(?:日|周|月)(?:限额|配额|额度)/i

/** The numbers of a throttle that states a limit and the size of the request: `Limit 6000, Used 1, Requested 6294`. */
export const stated =
  /^limit\b[:= ]{1,3}[\d,]{1,16}\b[^\d\n]{0,24}(?:\bused\b[:= ]{1,3}[\d,]{1,16}\b[^\d\n]{0,24})?\brequested\b[:= ]{1,3}[\d,]{1,16}/i

/** Words of a request that can never be sent again with success, under a wrapper that says only that it failed. */
export const hopeless = marker(
  "Unrecognized",
  "a request that can never work",
  /proxy response \(\d{3}\) !== 200|tunneling socket could not be established, statusCode=4\d\d|invalid peer certificate|net::ERR_(?:CERT|SSL|UNKNOWN_URL|INVALID|TOO_MANY_REDIRECTS|BLOCKED|DISALLOWED|UNSAFE)|redirect count exceeded|too many redirects|unexpected redirect|invalid url|failed to parse url|unknown scheme|bad port|self[- ]signed certificate|unable to (?:verify|get)[^.]{0,24}certificate|certificate (?:has expired|is not yet valid|verify failed|signed by unknown)|altnames|wrong version number|invalid character in header|unsupported protocol/i
)

export const timeout = marker(
  "TimedOut",
  "a timeout",
  /\btimed[ -]?out\b|\btime-?out\b(?! (?:must|parameter|value|option|should))|deadline (?:of \d{1,9} ?m?s )?(?:exceeded|expired)|idle time-?out\b|i\/o time-?out\b|\bnet::ERR_TIMED_OUT/i
)

/** A clock that ran out before there was a connection. */
export const connecting = marker(
  "Unreachable",
  "a connect timeout",
  /without establishing a connection|dial tcp[^\n]{0,120}i\/o time-?out|tls handshake time-?out|\bconnect(?:ion|ing)? (?:attempt )?time(?:d )?-?out(?! after \d{1,9} ms\b)/i
)

/** An HTTP client's own clock, whatever code it hides behind. */
export const deadline = marker(
  "TimedOut",
  "a client's own clock",
  /\btime-?out of \d{1,9}(?:\.\d{1,9})? ?(?:ms|s|seconds?|milliseconds?) (?:exceeded|elaps)|\btimeout awaiting '(?:send|response|read|request)'/i
)

export const cut = marker(
  "StreamCut",
  "a stream without its end",
  /stream (?:was |has been |is )?(?:disconnected|closed|ended|terminated|interrupted|finished|stopped|cut(?: off)?)\b[^.]{0,40}(?:before|without|prematurely|unexpectedly|early)|(?:ended|closed|finished|terminated) (?:before|without)[^.]{0,40}(?:message_stop|response\.completed|completed|finish[_ ]reason|\[done\]|done|terminal|completion|final)|(?:incomplete|truncated|unterminated) (?:stream|response stream|sse)|missing (?:finish[_ ]reason|message_stop|\[done\])|no finish[_ ]reason|incomplete json segment|failed to parse (?:the )?stream\b|did not receive (?:a )?(?:done|final|terminal|completion)\b|ended without sending any (?:chunks|events)|stream has ended, this should/i
)

/**
 * The closed list by which prose may decide, where neither code, type, status nor transport code speaks: the first that
 * matches. What surfaces stands before what would retry, and what names its own clock before what a clock could mean.
 */
export const prose: ReadonlyArray<Marker> = [
  hopeless,
  sampled,
  malformed,
  throttle,
  overflow,
  purse,
  credential,
  refusal,
  marker(
    "RequestRejected",
    "a request that nobody can serve",
    /\b(?:models?|deployments?|engines?)\b[^\n]{0,80}\b(?:not found|does(?: not|n't) exist|is not supported)\b|no such model|unknown model|functionality not supported|unsupported (?:parameter|value|model|media type|format|feature)|streaming is required for|unexpected endpoint or method/i
  ),
  deadline,
  marker(
    "Aborted",
    "an abort",
    /(?:^|: )(?:the |this )?(?:request|operation|user|call|fetch)?(?:[ _-]?(?:was|is))?[ _-]?(?:aborted|cancell?ed)(?: a request| by (?:the )?(?:user|caller|client))?\.?$|\bcancell?ed on client\b|\ball fibers interrupted\b|\bcontext cancell?ed$/im
  ),
  marker(
    "Unreachable",
    "an abnormal close",
    /\bclosed?(?: with)?(?: code)?[:= ]{1,2}\(?(?:1006|101[1-4])\b/i
  ),
  overload,
  marker(
    "Unavailable",
    "a provider's failure",
    /finish[_ ]?reason:? ?["']?error|internal (?:server )?error|service (?:is )?(?:temporarily |currently )?unavailable|temporarily unavailable|bad gateway|gateway time-?out|server had an error|upstream (?:connect )?(?:error|request failed|failed)|an? (?:unexpected |unknown )?error (?:was encountered|occurred) (?:while|during) (?:running the model|processing|generation|inference)|unexpected error during processing|loading model|model is (?:currently )?loading|prediction interrupted|failed during generation|model has crashed|crashed without additional information|unexpected (?:internal )?error (?:while|during|handling)\b|CUDA (?:error|out of memory)|(?:try again|retry) (?:later|in a (?:few|moment|minute|while|bit))/i
  ),
  connecting,
  timeout,
  marker(
    "Unreachable",
    "a broken connection",
    /socket hang up|no such host|dial tcp|(?:^|: )(?:unexpected )?EOF$|bad record mac|request to https?:\S{1,300} failed, reason:|other side closed|premature close|connection (?:was |has been |is )?(?:reset|refused|closed|aborted|lost|dropped|broken|ended|interrupted|terminated|timed out|error)|did not (?:get|receive) (?:a |any )?response|error in input stream|\bnet::ERR_|network (?:error|request failed|connection was lost|is unreachable|changed|socket disconnected)|server disconnected|(?:peer|server) closed (?:the )?connection|incomplete ?(?:chunked )?read|error sending request|error (?:reading|decoding) (?:a |the )?(?:body|response body)|unable to connect|failed to (?:fetch|connect)|networkerror when attempting|could not connect|load failed|fetch failed|^terminated$|(?<!web)socket (?:was |connection was )?closed|broken pipe|unexpected (?:eof|end of (?:file|stream))|payload is not completed|not enough data to satisfy|getaddrinfo|(?:name|dns) (?:resolution|lookup) fail|\b(?:ECONNRESET|ECONNREFUSED|ECONNABORTED|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|UND_ERR_SOCKET|UND_ERR_CONNECT_TIMEOUT)\b|websocket[^.]{0,24}(?:closed|disconnected)(?![^.]{0,12}\b(?:1000|1001|1008|[34]\d{3})\b)|goaway/im
  ),
  cut
]

/** A status that prose states as one, in the words of a client: `status code 503`, `Error code: 429`, `HTTP 502`. */
export const statusInProse =
  /\b(?:status(?: code)?|error code|api error|server error|http(?:\/\d(?:\.\d)?)?(?: error| status)?|responded with|server response)[:= (]{1,3}([45]\d\d)\b(?!\d|,\d|\.\d| tokens| ms)/i

/** A code that prose quotes: as botocore words it, or by a name that only a code has. */
export const quotedCode =
  /An error occurred \((\w{3,64})\) when calling|\b([a-z]{2,24}(?:_[a-z]{2,24}){0,5}_(?:error|exceeded|key|quota|reached|exhausted|limited|overloaded|unavailable|timeout|expired|denied|depleted))\b/g

/** A pool in the name of a code: under a status that rejects, where no wait is meant, it is empty. */
export const pool = marker(
  "QuotaExhausted",
  "a quota in its name",
  /quota(?:reached|exceeded|exhausted|notenough|insufficient|failed)/
)

/** Words by which a code that nobody documents may be known; on the code without case and separators. */
export const codeWords: ReadonlyArray<Marker> = [
  marker(
    "QuotaExhausted",
    "a purse in its name",
    /billing|insufficient(?:\w{0,12})(?:credit|balance|fund|quota)|(?:credit|balance|fund)s?(?:exhausted|depleted|error|limit|exceeded|required|toolow|notenough|insufficient)|(?:no|outof|notenough)(?:credit|balance|fund)|payment|spend(?:ing)?(?:limit|cap)|budget(?:exceeded|exhausted|limit)|arrear|overdue|resourcepack/
  ),
  marker(
    "ContextOverflowed",
    "an overflow in its name",
    /context(?:length|window|size|limit|overflow)|(?:prompt|input|message)s?toolong|(?:prompt|input)tokens?exceeded/
  ),
  marker(
    "ContentRefused",
    "a content policy in its name",
    /contentfilter|contentpolicy|moderation|safety|responsibleai|flagged|inappropriate|sensitive|guardrail|policyviolation|harmful|unsafe|censor/
  ),
  marker(
    "CredentialRejected",
    "a credential in its name",
    /apikey|authentication(?:error|failed|required)|unauthori[sz]ed|accessdenied|^forbidden|invalidcredential|credentials?(?:invalid|expired|rejected)|invalidtoken|expiredtoken|tokenexpired|tokeninvalid|permission(?:denied|error)|(?:organi[sz]ation|account|project|user|key)(?:restricted|suspended|banned|blocked|deactivated|disabled)/
  ),
  marker(
    "Overloaded",
    "an overload in its name",
    /overload|(?:no|out|over|at|tier|model|insufficient)\w{0,8}capacity|capacity(?:exceeded|exhausted)|queue(?:is)?full|(?:engine|server|model|system)(?:is)?busy/
  ),
  marker(
    "RateLimited",
    "a throttle in its name",
    /ratelimit|throttl|toomanyrequest|concurrencylimit|toomanyconcurrent|usagelimit|requestlimitexceeded|(?:rpm|tpm|rpd|tpd)(?:limit|exceeded)/
  ),
  marker("StreamCut", "a cut in its name", /stream(?:incomplete|interrupted|truncated|disconnected)|incompletestream/),
  marker("TimedOut", "a timeout in its name", /timeout|timedout|deadlineexceeded/),
  marker(
    "Unavailable",
    "a provider's failure in its name",
    /unavailable|internal(?:server)?error|servererror|upstream|badgateway|notready/
  ),
  pool
]
