import LarderCoding
package import LarderHTTP

/// A type of problem that the backend answers with: the end of its `type` URI and its explanation.
///
/// `/problems/{name}` explains each type; every error reply has one of them.
package struct ProblemType: Sendable, Hashable {
    /// The last segment of the type's URI.
    package let name: String
    package let title: String
    package let status: Status
    /// The meaning and the remedy, for the page at the type's URI.
    package let explanation: String

    init(_ name: String, _ status: Status, _ title: String, _ explanation: String) {
        self.name = name
        self.title = title
        self.status = status
        self.explanation = explanation
    }

    /// Makes a problem of this type.
    ///
    /// - Parameters:
    ///   - detail: what went wrong this time, in a sentence for the developer.
    ///   - errors: the invalid members or parameters.
    ///   - fields: header fields that the reply must carry, such as `Allow`.
    package func callAsFunction(
        _ detail: String,
        errors: [Problem.FieldError] = [],
        fields: Fields = Fields()
    ) -> Problem {
        Problem(
            type: "/problems/\(name)",
            title: title,
            status: status,
            detail: detail,
            errors: errors,
            fields: fields
        )
    }
}

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

    // MARK: Control plane

    package static let limitReached = ProblemType(
        "limit-reached",
        .conflict,
        "A limit is reached",
        "A limit of the control plane is reached; `limit` is its value. Remove an item first."
    )
    package static let nameTaken = ProblemType(
        "name-taken",
        .conflict,
        "The name is taken",
        "Choose another name, or remove the item with this name."
    )
    package static let unknownWorld = ProblemType(
        "unknown-world",
        .notFound,
        "The world does not exist",
        "The world was never created, or it was removed. `nearest` lists worlds with similar names."
    )
    package static let controlRejected = ProblemType(
        "control-rejected",
        .forbidden,
        "The control plane does not accept this caller",
        "Without a control token it only accepts peers, hosts and origins on this machine, so that no web page and no other machine can control it."
    )
    package static let controlTokenRequired = ProblemType(
        "control-token-required",
        .unauthorized,
        "The control token is required",
        "Send `Authorization: Bearer TOKEN` with the token that the server was started with (--control-token)."
    )
    package static let verificationFailed = ProblemType(
        "verification-failed",
        .conflict,
        "The journal does not meet the expectations",
        "`failures` has the actual result and the nearest exchanges for each unmet expectation."
    )
    package static let waitEnded = ProblemType(
        "wait-ended",
        .conflict,
        "The condition did not hold in time",
        "The time limit ended first. `seen` is the last measured value."
    )

    package static func limitReached(_ detail: String, limit: Int) -> Problem {
        var problem = limitReached(detail)
        problem.extensions["limit"] = .integer(Int64(limit))
        return problem
    }

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

    // MARK: Identity

    static let unauthenticated = ProblemType(
        "unauthenticated",
        .unauthorized,
        "Authentication is required",
        "The resource is personal. Send `Authorization: Bearer …` with a token from `POST /v1/sessions`."
    )
    static let invalidToken = ProblemType(
        "invalid-token",
        .unauthorized,
        "The token is unknown",
        "The bearer token was never issued here, or its session has ended. Sign in again."
    )
    package static let tokenExpired = ProblemType(
        "token-expired",
        .unauthorized,
        "The token has expired",
        "Exchange the refresh token at `POST /v1/sessions/refresh` and send the request again with the new token."
    )
    static let invalidCredentials = ProblemType(
        "invalid-credentials",
        .unauthorized,
        "The handle or password is wrong",
        "Fixture users sign in with their handle and the password in the README."
    )
    static let invalidRefreshToken = ProblemType(
        "invalid-refresh-token",
        .unauthorized,
        "The refresh token is no longer valid",
        """
        It is unknown or expired, or it was exchanged before. An exchanged refresh token that is sent again ends its \
        session, because one of its two holders must be a thief. Sign in again.
        """
    )
    static let forbidden = ProblemType(
        "forbidden",
        .forbidden,
        "The resource belongs to another user",
        "The resource may be read, but only its owner may change it."
    )

    // MARK: State

    static let preconditionFailed = ProblemType(
        "precondition-failed",
        .preconditionFailed,
        "The version is outdated",
        """
        `If-Match` or `If-Unmodified-Since` does not hold for the current representation. Nothing was changed. \
        `currentVersion` and `ETag` say what is current: read it, merge, and try again.
        """
    )
    static let preconditionRequired = ProblemType(
        "precondition-required",
        .preconditionRequired,
        "The version is missing",
        "Edits need `If-Match` with the ETag that the edit is based on (or `*`), so that no edit is lost."
    )
    static let rangeNotSatisfiable = ProblemType(
        "range-not-satisfiable",
        .rangeNotSatisfiable,
        "The range is outside the content",
        "`Content-Range` has the length of the content. Resuming a complete download gets this reply too."
    )
    static let resyncRequired = ProblemType(
        "resync-required",
        .gone,
        "The change token is too old or foreign",
        """
        What happened since this token can no longer be told completely: tombstones were forgotten, or the token was \
        issued by another database or for another reader. Read `/v1/changes` without `since` and replace what you hold; \
        keep what you have not sent yet.
        """
    )
    static let filterMismatch = ProblemType(
        "filter-mismatch",
        .badRequest,
        "The token was issued for other types",
        "A change token is bound to the `types` it was issued for. Omit `types`, or start again with the desired types."
    )

    // MARK: Idempotency and limits

    static let idempotencyKeyMissing = ProblemType(
        "idempotency-key-missing",
        .badRequest,
        "An Idempotency-Key is required",
        "Send `Idempotency-Key` with a new value for every operation and the same value for every attempt."
    )
    static let idempotencyKeyReused = ProblemType(
        "idempotency-key-reused",
        .unprocessableContent,
        "The key was used with another request",
        "The same Idempotency-Key was sent with another body. Nothing was done. A new operation needs a new key."
    )
    static let idempotencyInProgress = ProblemType(
        "idempotency-in-progress",
        .conflict,
        "The first request with this key is in progress",
        "Wait for the time in `Retry-After` and send the same request with the same key again."
    )
    static let documentExists = ProblemType(
        "document-exists",
        .conflict,
        "The identifier is taken",
        "The collection has a document with this `id`. Nothing was changed. Choose another `id`, or omit it."
    )
    static let rateLimited = ProblemType(
        "rate-limited",
        .tooManyRequests,
        "Too many requests",
        "The quota in `RateLimit-Policy` is used up. Wait for the time in `Retry-After`."
    )

    // MARK: Bank

    static let insufficientFunds = ProblemType(
        "insufficient-funds",
        .conflict,
        "Insufficient funds",
        "The balance, in `balance`, is less than the amount. Nothing was transferred."
    )
    static let accountClosed = ProblemType(
        "account-closed",
        .conflict,
        "The account is closed",
        "A closed account can neither send nor receive money. Nothing was transferred."
    )
    static let currencyMismatch = ProblemType(
        "currency-mismatch",
        .unprocessableContent,
        "The currencies differ",
        "Both accounts and the amount must have the same currency. Nothing was transferred."
    )

    /// All types, in the order of the documentation.
    package static let all = api + control

    /// The types of the control plane.
    package static let control: [ProblemType] = [
        limitReached, nameTaken, unknownWorld, controlRejected, controlTokenRequired, verificationFailed, waitEnded,
        badGateway, gatewayTimeout, documentExists,
    ]

    /// The types of the API, in the order of the documentation.
    static let api: [ProblemType] = [
        malformedRequest, requestTimeout, lengthRequired, contentTooLarge, uriTooLong, fieldsTooLarge,
        expectationFailed,
        notImplemented,
        versionNotSupported, unavailable, internalError, storageUnavailable,
        notFound, methodNotAllowed, notAcceptable, unsupportedMediaType, upgradeRequired,
        malformedJSON, validationFailed, invalidParameter, invalidCursor,
        unauthenticated, invalidToken, tokenExpired, invalidCredentials, invalidRefreshToken, forbidden,
        preconditionFailed, preconditionRequired, rangeNotSatisfiable, resyncRequired, filterMismatch,
        idempotencyKeyMissing, idempotencyKeyReused, idempotencyInProgress, rateLimited,
        insufficientFunds, accountClosed, currencyMismatch,
    ]
}
