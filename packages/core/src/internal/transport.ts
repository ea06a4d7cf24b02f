/** What a transport's own code says: no bytes came, a clock ran out, somebody pressed stop, or it can never work. */
export type Verdict = "unreachable" | "timedOut" | "aborted" | "terminal"

const rows: Readonly<Record<Verdict, ReadonlyArray<string>>> = {
  unreachable: [
    // libuv, nodejs.org/api/errors.html#common-system-errors
    "ECONNRESET",
    "ECONNREFUSED",
    "ECONNABORTED",
    "ENOTFOUND",
    "EAI_AGAIN",
    "EAI_NODATA",
    "EAI_NONAME",
    "EAI_FAIL",
    "EPIPE",
    "ETIMEDOUT",
    "ENETUNREACH",
    "ENETDOWN",
    "ENETRESET",
    "EHOSTUNREACH",
    "EHOSTDOWN",
    "EADDRNOTAVAIL",
    "ENOTCONN",
    "ESOCKETTIMEDOUT",
    "EMFILE",
    "ENFILE",
    // node:http, node:http2, node:net, node:stream, nodejs.org/api/errors.html
    "ERR_STREAM_PREMATURE_CLOSE",
    "ERR_SOCKET_CLOSED",
    "ERR_SOCKET_CLOSED_BEFORE_CONNECTION",
    "ERR_SOCKET_CONNECTION_TIMEOUT",
    "ERR_TLS_HANDSHAKE_TIMEOUT",
    "ERR_HTTP2_GOAWAY_SESSION",
    "ERR_HTTP2_STREAM_ERROR",
    "ERR_HTTP2_STREAM_CANCEL",
    "ERR_HTTP2_SESSION_ERROR",
    "ERR_HTTP2_INVALID_SESSION",
    "ERR_HTTP2_INVALID_STREAM",
    "ERR_HTTP2_PING_CANCEL",
    "ERR_HTTP2_ERROR",
    "ERR_STREAM_DESTROYED",
    "ERR_HTTP_CONTENT_LENGTH_MISMATCH",
    // node:zlib, a compressed body that broke off
    "Z_BUF_ERROR",
    "Z_DATA_ERROR",
    // undici, github.com/nodejs/undici/blob/main/docs/docs/api/Errors.md
    "UND_ERR_SOCKET",
    "UND_ERR_CONNECT_TIMEOUT",
    "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
    "UND_ERR_CLOSED",
    "UND_ERR_PRX_TLS",
    // axios
    "ERR_NETWORK",
    // Bun and Deno name them in camel case
    "ConnectionRefused",
    "ConnectionReset",
    "ConnectionClosed",
    "ConnectionAborted",
    "FailedToOpenSocket",
    "BrokenPipe",
    "NotConnected",
    "SocketClosed",
    // RFC 6455 section 7.4.1 and the IANA registry: abnormal WebSocket closes
    "WS_1006",
    "WS_1011",
    "WS_1012",
    "WS_1013",
    "WS_1014"
  ],
  timedOut: [
    // Recourse's own liveness
    "RECOURSE_HEADERS_TIMEOUT",
    "RECOURSE_CHUNK_TIMEOUT",
    "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_BODY_TIMEOUT",
    "ERR_HTTP_REQUEST_TIMEOUT",
    "TimeoutError",
    "TIMEOUT_ERR",
    "TimedOut"
  ],
  aborted: ["AbortError", "InterruptedException", "ABORT_ERR", "UND_ERR_ABORTED", "ERR_CANCELED", "ERR_ABORTED"],
  terminal: [
    // nodejs.org/api/tls.html#x509-certificate-error-codes
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_CRL",
    "UNABLE_TO_DECRYPT_CERT_SIGNATURE",
    "UNABLE_TO_DECRYPT_CRL_SIGNATURE",
    "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY",
    "CERT_SIGNATURE_FAILURE",
    "CRL_SIGNATURE_FAILURE",
    "CERT_NOT_YET_VALID",
    "CERT_HAS_EXPIRED",
    "CRL_NOT_YET_VALID",
    "CRL_HAS_EXPIRED",
    "ERROR_IN_CERT_NOT_BEFORE_FIELD",
    "ERROR_IN_CERT_NOT_AFTER_FIELD",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "CERT_CHAIN_TOO_LONG",
    "CERT_REVOKED",
    "INVALID_CA",
    "PATH_LENGTH_EXCEEDED",
    "INVALID_PURPOSE",
    "CERT_UNTRUSTED",
    "CERT_REJECTED",
    "HOSTNAME_MISMATCH",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "ERR_TLS_CERT_ALTNAME_FORMAT",
    "ERR_TLS_INVALID_PROTOCOL_VERSION",
    "EPROTO",
    "UnknownIssuer",
    "InvalidCertificate",
    // a request that was built wrong, a redirect loop, text that is no text
    "ERR_INVALID_URL",
    "ERR_INVALID_ARG_TYPE",
    "ERR_INVALID_ARG_VALUE",
    "ERR_INVALID_CHAR",
    "ERR_HTTP_INVALID_HEADER_VALUE",
    "ERR_UNESCAPED_CHARACTERS",
    "ERR_INVALID_PROTOCOL",
    "ERR_BAD_OPTION",
    "ERR_BAD_OPTION_VALUE",
    "ERR_FR_TOO_MANY_REDIRECTS",
    "max-redirect",
    "ERR_TOO_MANY_REDIRECTS",
    "unsupported-redirect",
    "ERR_ENCODING_INVALID_ENCODED_DATA",
    "UND_ERR_INVALID_ARG",
    "UND_ERR_INVALID_RETURN_VALUE",
    "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
    "UND_ERR_DESTROYED",
    "UND_ERR_NOT_SUPPORTED",
    "UND_ERR_HEADERS_OVERFLOW",
    "UND_ERR_RES_EXCEEDED_MAX_SIZE",
    // WebSocket closes that a new connection meets again
    "WS_1002",
    "WS_1003",
    "WS_1007",
    "WS_1008",
    "WS_1009",
    "WS_1010",
    "WS_1015"
  ]
}

const table: ReadonlyMap<string, Verdict> = new Map(
  (["unreachable", "timedOut", "aborted", "terminal"] as const).flatMap((verdict) =>
    rows[verdict].map((code) => [code, verdict] as const)
  )
)

/** The verdict of a code that a socket, a TLS stack, an HTTP parser or a DOMException set; nothing for any other. */
export const verdict = (code: string): Verdict | undefined =>
  code.length > 64 ? undefined : table.get(code) ?? (/^(?:HPE_|ERR__ERROR_FORMAT_)/.test(code)
    ? "unreachable"
    : code.startsWith("ERR_SSL_")
    ? "terminal"
    : undefined)
