import * as Struct from "effect/Struct"
import type { Kind } from "../Readout.ts"
import { codeWords, type Marker } from "./markers.ts"

/** What a code means: a kind, and for a throttle which limit was met where the code itself says so. */
export type Meaning = Kind | "RateLimited:rate" | "RateLimited:allowance"

type Group = { readonly [M in Meaning]?: ReadonlyArray<string> }

// Adding a code is adding one word below. Case and separators matter only between two that differ in nothing else; a house
// number carries its envelope's name.
export const groups: { readonly [source: string]: Group } = {
  // platform.openai.com/docs/guides/error-codes; openai/codex codex-rs/codex-api/src for the plan's codes
  openai: {
    QuotaExhausted: [
      "insufficient_quota",
      "billing_hard_limit_reached",
      "billing_not_active",
      "usage_not_included",
      "account_quota_exceeded",
      "workspace_owner_credits_depleted",
      "workspace_member_credits_depleted"
    ],
    RateLimited: ["rate_limit_exceeded"],
    "RateLimited:allowance": ["usage_limit_reached", "usage_limit_exceeded"],
    ContextOverflowed: ["context_length_exceeded", "context_window_exceeded"],
    CredentialRejected: [
      "invalid_api_key",
      "incorrect_api_key_provided",
      "account_deactivated",
      "invalid_organization"
    ],
    ContentRefused: ["content_policy_violation", "content_filter", "moderation_blocked", "cyber_policy", "bio_policy"],
    Overloaded: ["slow_down", "server_is_overloaded", "engine_overloaded", "resource_unavailable"],
    TimedOut: ["vector_store_timeout"],
    Unreachable: ["websocket_connection_limit_reached"],
    RequestRejected: [
      "model_not_found",
      "previous_response_not_found",
      "unsupported_parameter",
      "unsupported_value",
      "invalid_value",
      "missing_required_parameter",
      "string_above_max_length",
      "conversation_locked"
    ]
  },
  // platform.claude.com/docs/en/api/errors
  anthropic: {
    Overloaded: ["overloaded_error"],
    RateLimited: ["rate_limit_error"],
    QuotaExhausted: ["billing_error", "credit_balance_too_low"],
    TimedOut: ["timeout_error"],
    RequestRejected: ["request_too_large"]
  },
  // learn.microsoft.com/azure/ai-foundry/openai/quotas-limits and its content-filter page
  azure: {
    ContentRefused: ["ResponsibleAIPolicyViolation", "content_filter_error"],
    RateLimited: ["RateLimitReached"],
    TimedOut: ["Timeout", "OperationTimedOut"],
    Overloaded: ["NoCapacity", "ModelCapacityExceeded"],
    RequestRejected: ["DeploymentNotFound", "OperationNotSupported", "unavailable_model"],
    CredentialRejected: ["AuthenticationFailed", "AuthenticationTypeDisabled"],
    ContextOverflowed: ["tokens_limit_reached"]
  },
  // docs.aws.amazon.com/bedrock/latest/APIReference, CommonErrors and the runtime's event stream members
  aws: {
    RateLimited: [
      "ThrottlingException",
      "Throttling",
      "ThrottledException",
      "TooManyRequestsException",
      "RequestLimitExceeded",
      "RequestThrottled",
      "RequestThrottledException",
      "ProvisionedThroughputExceededException"
    ],
    // a usage plan of API Gateway
    "RateLimited:allowance": ["LimitExceededException"],
    Overloaded: ["ServerBusyException", "SlowDown"],
    Unavailable: [
      "ServiceUnavailableException",
      "InternalServerException",
      "ModelNotReadyException",
      "ModelErrorException",
      "ModelStreamErrorException",
      "InternalFailure"
    ],
    TimedOut: ["ModelTimeoutException", "RequestTimeoutException"],
    CredentialRejected: [
      "AccessDeniedException",
      "UnrecognizedClientException",
      "ExpiredTokenException",
      "ExpiredToken",
      "InvalidSignatureException",
      "InvalidClientTokenId",
      "MissingAuthenticationToken",
      "MissingAuthenticationTokenException",
      "IncompleteSignature",
      "SignatureDoesNotMatch",
      "OptInRequired",
      "CredentialsProviderError",
      "TokenProviderError"
    ],
    QuotaExhausted: ["INVALID_PAYMENT_INSTRUMENT"]
  },
  // ai.google.dev/gemini-api/docs/troubleshooting; googleapis google/api/error_reason.proto; Code Assist's error details
  google: {
    RateLimited: ["RATE_LIMIT_EXCEEDED", "userRateLimitExceeded"],
    "RateLimited:allowance": ["QUOTA_EXHAUSTED", "dailyLimitExceeded"],
    Overloaded: ["MODEL_CAPACITY_EXHAUSTED"],
    TimedOut: ["DEADLINE_EXCEEDED"],
    QuotaExhausted: ["BILLING_DISABLED", "INSUFFICIENT_G1_CREDITS_BALANCE"],
    CredentialRejected: [
      "API_KEY_INVALID",
      "API_KEY_EXPIRED",
      "API_KEY_SERVICE_BLOCKED",
      "API_KEY_HTTP_REFERRER_BLOCKED",
      "API_KEY_IP_ADDRESS_BLOCKED",
      "SERVICE_DISABLED",
      "CONSUMER_SUSPENDED",
      "CONSUMER_INVALID",
      "ACCESS_TOKEN_EXPIRED",
      "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
      "ACCESS_TOKEN_TYPE_UNSUPPORTED",
      "CREDENTIALS_MISSING",
      "ACCOUNT_STATE_INVALID",
      "IAM_PERMISSION_DENIED",
      "VALIDATION_REQUIRED",
      "accessNotConfigured",
      "keyInvalid",
      "keyExpired"
    ]
  },
  // console.groq.com/docs/errors
  groq: {
    GenerationMalformed: ["tool_use_failed", "json_validate_failed", "output_parse_failed"],
    Overloaded: ["over_capacity", "capacity_exceeded", "flex_capacity_exceeded"],
    RequestRejected: ["model_decommissioned"]
  },
  // docs.mistral.ai/api and reported answers
  mistral: {
    RateLimited: ["mistral 1300", "rate_limited"],
    Overloaded: ["mistral 3505", "service_tier_capacity_exceeded"],
    ContextOverflowed: ["mistral 3051"],
    Unavailable: ["unreachable_backend"],
    RequestRejected: ["invalid_model"]
  },
  // docs.z.ai/api-reference/api-code
  zai: {
    CredentialRejected: ["zai 1000", "zai 1001", "zai 1002", "zai 1003", "zai 1004", "zai 1112", "zai 1220"],
    QuotaExhausted: ["zai 1113", "zai 1309", "zai 1311", "zai 1313"],
    RequestRejected: [
      "zai 1210",
      "zai 1211",
      "zai 1212",
      "zai 1213",
      "zai 1214",
      "zai 1215",
      "zai 1221",
      "zai 1222",
      "zai 1231"
    ],
    Unavailable: ["zai 1230", "zai 1234"],
    ContextOverflowed: ["zai 1261"],
    ContentRefused: ["zai 1300", "zai 1301"],
    RateLimited: ["zai 1302", "zai 1303", "zai 1305", "zai 1312"],
    "RateLimited:allowance": ["zai 1304", "zai 1308", "zai 1310"]
  },
  // platform.minimax.io/docs/api-reference/errorcode
  minimax: {
    Unavailable: ["minimax 1000", "minimax 1013", "minimax 1024", "minimax 1033"],
    TimedOut: ["minimax 1001"],
    RateLimited: ["minimax 1002", "minimax 1039", "minimax 1041", "minimax 2045"],
    "RateLimited:allowance": ["minimax 2056"],
    CredentialRejected: ["minimax 1004", "minimax 2049"],
    QuotaExhausted: ["minimax 1008", "insufficient_balance_error"],
    ContentRefused: ["minimax 1026", "minimax 1027"],
    Overloaded: ["minimax 2064"],
    RequestRejected: ["minimax 1042", "minimax 2061"]
  },
  // platform.moonshot.ai/docs/api/errors
  moonshot: {
    QuotaExhausted: ["exceeded_current_quota_error"],
    RateLimited: ["rate_limit_reached_error"],
    Overloaded: ["engine_overloaded_error"],
    CredentialRejected: ["invalid_authentication_error", "incorrect_api_key_error"]
  },
  // alibabacloud.com/help/model-studio/error-code
  dashscope: {
    RateLimited: [
      "Throttling.RateQuota",
      "Throttling.BurstRate",
      "Throttling.AllocationQuota",
      "LimitRequests",
      "limit_burst_rate"
    ],
    QuotaExhausted: [
      "AllocationQuota.FreeTierOnly",
      "Arrearage",
      "PrepaidBillOverdue",
      "PostpaidBillOverdue",
      "CommodityNotPurchased"
    ],
    ContentRefused: ["DataInspectionFailed"],
    CredentialRejected: ["InvalidApiKey", "Model.AccessDenied", "Workspace.AccessDenied"],
    TimedOut: ["RequestTimeOut", "InternalError.Timeout"],
    Unavailable: ["InternalError.Algo", "SystemError", "ModelServiceFailed", "ModelUnavailable"]
  },
  // volcengine.com/docs/82379/1299023
  volcengine: {
    QuotaExhausted: ["AccountOverdueError"],
    "RateLimited:allowance": ["SetLimitExceeded", "AccountQuotaExceeded"],
    Overloaded: ["ServerOverloaded"]
  },
  // docs.github.com/copilot and reported answers of its API
  copilot: {
    "RateLimited:allowance": ["user_weekly_rate_limited", "agent_weekly_limit_exceeded"],
    RateLimited: ["user_global_rate_limited", "user_model_rate_limited", "integration_rate_limited"],
    ContextOverflowed: ["model_max_prompt_tokens_exceeded"],
    RequestRejected: ["model_not_supported", "model_not_available_for_integrator"]
  },
  // opencode.ai/docs/zen and sst/opencode packages/console
  opencode: {
    QuotaExhausted: ["CreditsError", "FreeUsageLimitError", "MonthlyLimitError", "UserLimitError"],
    "RateLimited:allowance": ["SubscriptionUsageLimitError", "GoUsageLimitError"],
    CredentialRejected: ["AuthError"],
    RequestRejected: ["ModelError"]
  },
  // docs.together.ai/docs/error-codes
  together: {
    RateLimited: ["model_rate_limit", "dynamic_request_limited", "dynamic_token_limited"],
    QuotaExhausted: ["credit_limit"]
  },
  // huggingface.co/docs/text-generation-inference, router/src/infer
  huggingface: {
    Overloaded: ["overloaded"],
    Unavailable: ["incomplete_generation"]
  },
  // ggml-org/llama.cpp tools/server
  llamacpp: {
    ContextOverflowed: ["exceed_context_size_error"]
  },
  // docs.databricks.com/machine-learning/foundation-model-apis
  databricks: {
    RateLimited: ["REQUEST_LIMIT_EXCEEDED"],
    Unavailable: ["TEMPORARILY_UNAVAILABLE"]
  },
  // inference-docs.cerebras.ai/support/error
  cerebras: {
    RateLimited: ["token_quota_exceeded", "request_quota_exceeded", "too_many_tokens_error"],
    CredentialRejected: ["wrong_api_key"]
  },
  // developers.cloudflare.com/workers-ai/platform/errors and ai-gateway/troubleshooting
  cloudflare: {
    Overloaded: ["cloudflare 3040"],
    "RateLimited:allowance": ["cloudflare 3036"],
    RateLimited: ["cloudflare 2003"],
    Unavailable: ["cloudflare 2005"],
    TimedOut: ["cloudflare 3007"],
    CredentialRejected: ["cloudflare 10000", "cloudflare 2009"],
    ContentRefused: ["cloudflare 2016", "cloudflare 2017"],
    RequestRejected: ["cloudflare 5004", "cloudflare 5007"]
  },
  // cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh
  baidu: {
    RateLimited: ["baidu 4", "baidu 18", "baidu 336501", "baidu 336502"],
    "RateLimited:allowance": ["baidu 17", "baidu 19"],
    CredentialRejected: ["baidu 6", "baidu 14", "baidu 110", "baidu 111"],
    Overloaded: ["baidu 336100"],
    Unavailable: ["baidu 1", "baidu 2", "baidu 336000"],
    ContextOverflowed: ["baidu 336103", "baidu 336007"]
  },
  // docs.siliconflow.cn/en/faqs/error-code
  siliconflow: {
    QuotaExhausted: ["siliconflow 30001"],
    Overloaded: ["siliconflow 50505", "siliconflow 50603"],
    RequestRejected: ["siliconflow 20012"]
  },
  // portkey.ai/docs/product/guardrails
  portkey: {
    ContentRefused: ["hooks_failed"]
  },
  // docs.litellm.ai/docs/exception_mapping
  litellm: {
    QuotaExhausted: ["budget_exceeded", "BudgetExceededError"],
    RateLimited: ["throttling_error"],
    ContextOverflowed: ["ContextWindowExceededError"],
    ContentRefused: ["ContentPolicyViolationError"]
  },
  // docs.langchain.com/oss/javascript/langchain/errors
  langchain: {
    CredentialRejected: ["MODEL_AUTHENTICATION"],
    RateLimited: ["MODEL_RATE_LIMIT"],
    ContextOverflowed: ["CONTEXT_OVERFLOW"],
    GenerationMalformed: ["OUTPUT_PARSING_FAILURE", "OutputParserException", "ToolInputParsingException"],
    RequestRejected: [
      "INVALID_PROMPT_INPUT",
      "INVALID_TOOL_RESULTS",
      "MESSAGE_COERCION_FAILURE",
      "MODEL_NOT_FOUND"
    ]
  },
  // ai-sdk.dev/docs/reference/ai-sdk-errors
  vercel: {
    GenerationMalformed: [
      "AI_NoObjectGeneratedError",
      "AI_NoSuchToolError",
      "AI_InvalidToolInputError",
      "AI_InvalidToolArgumentsError",
      "AI_ToolCallRepairError"
    ],
    CredentialRejected: ["AI_LoadAPIKeyError"],
    RequestRejected: [
      "AI_UnsupportedFunctionalityError",
      "AI_InvalidPromptError",
      "AI_InvalidArgumentError",
      "AI_InvalidMessageRoleError",
      "AI_InvalidDataContentError",
      "AI_MessageConversionError",
      "AI_NoSuchModelError",
      "AI_NoSuchProviderError",
      "AI_UnsupportedModelVersionError",
      "AI_TooManyEmbeddingValuesForCallError"
    ]
  },
  // vercel.com/docs/errors
  "vercel's functions": {
    TimedOut: ["FUNCTION_INVOCATION_TIMEOUT"],
    Unavailable: ["FUNCTION_INVOCATION_FAILED"],
    Overloaded: ["FUNCTION_THROTTLED"]
  },
  // ai.pydantic.dev/api/exceptions; openai.github.io/openai-agents-python/ref/exceptions
  agents: {
    GenerationMalformed: ["UnexpectedModelBehavior", "ModelBehaviorError"]
  },
  // xfyun.cn/doc/spark/Web.html
  spark: {
    ContextOverflowed: ["spark 10907"],
    RateLimited: ["spark 10007", "spark 11202", "spark 11203"],
    "RateLimited:allowance": ["spark 11201"],
    Overloaded: ["spark 10008", "spark 10110"],
    ContentRefused: ["spark 10013", "spark 10014", "spark 10019"],
    CredentialRejected: ["spark 10005", "spark 10015", "spark 10016", "spark 11200"],
    RequestRejected: ["spark 10003", "spark 10004", "spark 10163", "spark 10404"],
    Unavailable: ["spark 10010", "spark 10012"]
  },
  // code.visualstudio.com/api/references/vscode-api, LanguageModelError
  vscode: {
    CredentialRejected: ["NoPermissions"]
  },
  // cloud.tencent.com/document/product/1729, error codes
  tencent: {
    QuotaExhausted: [
      "FailedOperation.ResourcePackExhausted",
      "FailedOperation.FreeResourcePackExhausted",
      "FailedOperation.ServiceStop",
      "FailedOperation.ServiceStopArrears",
      "ResourceInsufficient.ChargeResourceExhaust",
      "ResourceUnavailable.InArrears",
      "ResourceUnavailable.LowBalance"
    ],
    RateLimited: ["FailedOperation.EngineServerLimitExceeded", "LimitExceeded"],
    TimedOut: ["FailedOperation.EngineRequestTimeout"],
    Unavailable: ["FailedOperation.EngineServerError"],
    ContentRefused: ["OperationDenied.TextIllegalDetected", "OperationDenied.ImageIllegalDetected"],
    CredentialRejected: [
      "AuthFailure.SecretIdNotFound",
      "AuthFailure.SignatureExpire",
      "AuthFailure.SignatureFailure",
      "AuthFailure.TokenFailure",
      "AuthFailure.UnauthorizedOperation",
      "FailedOperation.UserUnAuthError",
      "FailedOperation.ServiceNotActivated"
    ]
  },
  // RFC 6749 section 5.2 and RFC 6750 section 3.1
  oauth: {
    CredentialRejected: [
      "invalid_grant",
      "invalid_client",
      "unauthorized_client",
      "invalid_token",
      "expired_token",
      "insufficient_scope"
    ]
  },
  // the stop reason as an adapter's code
  stop: {
    GenerationMalformed: ["MALFORMED_FUNCTION_CALL", "malformed_tool_use", "malformed_model_output"],
    TimedOut: ["TIMEOUT"]
  }
}

// Words that only repeat a status family: they rank below the status and speak where none does.
export const families: Group = {
  RequestRejected: [
    "invalid_request_error",
    "invalid_request",
    "invalid_prompt",
    "BadRequestError",
    "BadRequest",
    "bad_request",
    "not_found_error",
    "NotFoundError",
    "not_found",
    "UnprocessableEntityError",
    "validation_error",
    "ValidationException",
    "ResourceNotFoundException",
    "ServiceQuotaExceededException",
    "ConflictException",
    "ConflictError",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "ALREADY_EXISTS",
    "INVALID_PARAMETER_VALUE",
    "RESOURCE_DOES_NOT_EXIST",
    "InvalidParameter",
    "invalid_parameter_error"
  ],
  CredentialRejected: [
    "AuthenticationError",
    "PermissionDeniedError",
    "Unauthorized",
    "Forbidden",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "AccessDenied",
    "invalid_authentication"
  ],
  RateLimited: [
    "RESOURCE_EXHAUSTED",
    "ResourceExhausted",
    "too_many_requests_error",
    "too_many_requests",
    "rate_limit",
    "throttled",
    "quota_exceeded",
    "QuotaExceeded"
  ],
  Unavailable: [
    "server_error",
    "api_error",
    "internal_error",
    "internal_server_error",
    "InternalServerError",
    "InternalError",
    "service_unavailable",
    "ServiceUnavailable",
    "ServiceUnavailableError",
    "unavailable_error",
    "UNAVAILABLE",
    "INTERNAL",
    "bad_gateway",
    "upstream_error",
    "provider_error",
    "provider_unavailable",
    "APIStatusError",
    "BadGatewayError"
  ],
  TimedOut: [
    "timeout_exceeded",
    "gateway_timeout",
    "APIConnectionTimeoutError",
    "APITimeoutError",
    "ReadTimeout",
    "ReadTimeoutError"
  ],
  Unreachable: [
    "APIConnectionError",
    "connection_error",
    "ConnectionError",
    "RemoteProtocolError",
    "ConnectTimeout",
    "ConnectError",
    "ReadError",
    "NetworkError"
  ],
  ContextOverflowed: ["ContextOverflowError"],
  Aborted: ["APIUserAbortError"]
}

/** A code without its namespace, its case and its separators. */
const bare = (code: string): string =>
  code.replace(/^.{0,120}#/, "").replace(/:.{0,120}$/, "").replace(/[_\-.\s]/g, "").toLowerCase()

/** What is known of a code. */
interface Known {
  readonly meaning: Meaning
  readonly source: string
}

const index = (
  all: { readonly [source: string]: Group },
  name: (code: string) => string
): ReadonlyMap<string, Known> => {
  const map = new Map<string, Known>()
  for (const [source, group] of Object.entries(all)) {
    for (const [meaning, codes] of Struct.entries(group)) {
      for (const code of codes ?? []) if (!map.has(name(code))) map.set(name(code), { meaning, source })
    }
  }
  return map
}

const asSent = index(groups, (code) => code)
const documented = index(groups, bare)
const repeated = index({ "a status family": families }, bare)

/** All that a code says by itself. */
export interface Reading {
  /** What its provider documents. */
  readonly known: Known | undefined
  /** What it means where no status speaks, if it only repeats a status family. */
  readonly family: Known | undefined
  /** What it is by the words in it, if neither. */
  readonly word: Marker | undefined
}

const read = (code: string): Reading => {
  const name = bare(code)
  const known = asSent.get(code) ?? documented.get(name)
  const family = repeated.get(name)
  return {
    known,
    family,
    word: known === undefined && family === undefined ? codeWords.find(({ pattern }) => pattern.test(name)) : undefined
  }
}

// Providers send the same few codes again and again; one that makes up new ones is read without the memory.
const MEMORY = 1_024
const readings = new Map<string, Reading>()

/** Reads a code. */
export const codeOf = (code: string): Reading => {
  const before = readings.get(code)
  if (before !== undefined) return before
  const reading = read(code)
  if (readings.size < MEMORY && code.length <= 64) readings.set(code, reading)
  return reading
}
