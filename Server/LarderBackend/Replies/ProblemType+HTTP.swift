import LarderHTTP

extension ProblemType {
    // MARK: The request as HTTP

    static let malformedRequest = ProblemType(
        "malformed-request",
        .badRequest,
        "The request is not valid HTTP",
        """
        The head or the framing of the request breaks RFC 9112: a bare line feed, a space before a colon, lengths that \
        contradict each other, a bad chunk. Nothing was done with it and the connection is closed, because what follows \
        on it cannot be trusted.
        """
    )
    static let requestTimeout = ProblemType(
        "request-timeout",
        .requestTimeout,
        "The request took too long to arrive",
        "The head or the body did not arrive within the limit. Nothing was done. Send the request again on a new connection."
    )
    static let contentTooLarge = ProblemType(
        "content-too-large",
        .contentTooLarge,
        "The body is too large",
        "The body is longer than the server accepts (`--body-limit`). Nothing was done. Send less, or in several requests."
    )
    static let lengthRequired = ProblemType(
        "length-required",
        .lengthRequired,
        "The body or its length is missing",
        "The operation requires a body. Send it with `Content-Length` or chunked; send an empty body with `Content-Length: 0`."
    )
    static let uriTooLong = ProblemType(
        "uri-too-long",
        .uriTooLong,
        "The target is too long",
        "The request target is longer than the server accepts. Cursors and tokens are short: check the query."
    )
    static let fieldsTooLarge = ProblemType(
        "header-fields-too-large",
        .requestHeaderFieldsTooLarge,
        "The header fields are too large",
        "The head of the request is longer than the server accepts (`--head-limit`). Send fewer or shorter fields."
    )
    static let expectationFailed = ProblemType(
        "expectation-failed",
        .expectationFailed,
        "The expectation is not supported",
        "Only `Expect: 100-continue` is understood."
    )
    static let notImplemented = ProblemType(
        "not-implemented",
        .notImplemented,
        "Not implemented",
        "The server does not support the method or the transfer coding."
    )
    static let versionNotSupported = ProblemType(
        "http-version-not-supported",
        .httpVersionNotSupported,
        "The HTTP version is not supported",
        "HTTP/1.1 and HTTP/1.0 are served. Put a terminator in front for TLS and HTTP/2."
    )
    package static let unavailable = ProblemType(
        "service-unavailable",
        .serviceUnavailable,
        "The server cannot answer now",
        "The server is at a limit or is stopping. Try again after the time in `Retry-After`."
    )
    package static let badGateway = ProblemType(
        "bad-gateway",
        .badGateway,
        "The server behind the proxy gave no usable reply",
        """
        `larder-server proxy` could not reach the server that it stands before, or the reply was not valid HTTP or ended early. The \
        detail says which. Whether the request was processed is unknown unless the server could not be reached.
        """
    )
    package static let gatewayTimeout = ProblemType(
        "gateway-timeout",
        .gatewayTimeout,
        "The server behind the proxy did not answer in time",
        "It accepted no connection within 10 s, or sent nothing for 60 s. Whether the request was processed is unknown."
    )
    package static let loopDetected = ProblemType(
        "loop-detected",
        Status(code: 508),
        "The proxy stands before itself",
        "The request names this proxy in `Via`: the URL after --to leads back to it. Start the proxy with the URL of your server."
    )
    package static let hostRejected = ProblemType(
        "host-rejected",
        .forbidden,
        "The proxy does not accept this host name",
        """
        A page of another site can let its own name lead to this machine, and would reach the server behind the proxy. The proxy accepts IP \
        addresses, names without a dot, and names under `localhost` and `test`. Start it with --allow-host NAME for another name.
        """
    )
    package static let internalError = ProblemType(
        "internal-error",
        .internalServerError,
        "Internal error",
        "The server reached an unexpected state. The request was not processed. Please report it."
    )
    package static let storageUnavailable = ProblemType(
        "storage-unavailable",
        .serviceUnavailable,
        "The database is not available",
        "The database failed (disk full, locked by another program, damaged). The request was not processed; try again later."
    )

    // MARK: Routing and negotiation

    package static let notFound = ProblemType(
        "not-found",
        .notFound,
        "Not found",
        """
        No resource is known under this URI, or it is none that the caller may know of: what belongs to somebody else \
        cannot be told from what does not exist.
        """
    )
    package static let methodNotAllowed = ProblemType(
        "method-not-allowed",
        .methodNotAllowed,
        "The method is not allowed here",
        "The resource exists; `Allow` lists its methods."
    )
    static let notAcceptable = ProblemType(
        "not-acceptable",
        .notAcceptable,
        "No acceptable representation",
        "`Accept` excludes all representations of the resource. The API uses `application/json`."
    )
    static let unsupportedMediaType = ProblemType(
        "unsupported-media-type",
        .unsupportedMediaType,
        "The body's media type is not supported",
        "Send `application/json` (or `application/merge-patch+json` with PATCH), in UTF-8 and without a content coding."
    )
    static let upgradeRequired = ProblemType(
        "upgrade-required",
        .upgradeRequired,
        "A WebSocket is required",
        "The resource requires WebSocket version 13. Read `/v1/live/events` for Server-Sent Events instead."
    )

    // MARK: Bodies and parameters

    package static let malformedJSON = ProblemType(
        "malformed-json",
        .badRequest,
        "The body is not valid JSON",
        "The body violates RFC 8259 at the given position. Nothing was done."
    )
    package static let validationFailed = ProblemType(
        "validation-failed",
        .unprocessableContent,
        "The body is invalid",
        "Each entry of `errors` has the JSON pointer of a member and its error. Nothing was done."
    )
    package static let invalidParameter = ProblemType(
        "invalid-parameter",
        .badRequest,
        "A parameter is invalid",
        "Each entry of `errors` has the name of a query parameter or header field and its error."
    )
    static let invalidCursor = ProblemType(
        "invalid-cursor",
        .badRequest,
        "The cursor is invalid",
        """
        The cursor is not one that this server issued, or belongs to another list. Cursors are opaque: take them from \
        `nextCursor` and `previousCursor` of the same list, or start from the top.
        """
    )
}
