import LarderCoding
package import LarderHTTP

/// Every kind of problem that the backend answers with: the stable end of its `type` URI, and what a person should know.
///
/// `/problems/{name}` explains each; nothing else may be answered as an error.
package struct ProblemType: Sendable, Hashable {
    /// The last segment of the type's URI.
    package let name: String
    package let title: String
    package let status: Status
    /// What it means and what to do next, for the page that the URI leads to.
    package let explanation: String

    init(_ name: String, _ status: Status, _ title: String, _ explanation: String) {
        self.name = name
        self.title = title
        self.status = status
        self.explanation = explanation
    }

    /// A problem of this type.
    ///
    /// - Parameters:
    ///   - detail: what went wrong this time, in a sentence for the engineer who reads it.
    ///   - errors: the members or parameters at fault.
    ///   - fields: header fields that the reply must carry, such as `Allow`.
    func callAsFunction(
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
        "The request is not HTTP",
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
        "A body is needed, and its length",
        "The operation reads a body. Send one with `Content-Length`, or in chunks; an empty one says `Content-Length: 0`."
    )
    static let uriTooLong = ProblemType(
        "uri-too-long",
        .uriTooLong,
        "The target is too long",
        "The request target is longer than the server accepts. Cursors and tokens are short: check what was put in the query."
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
        "The expectation is not known",
        "Only `Expect: 100-continue` is understood."
    )
    static let notImplemented = ProblemType(
        "not-implemented",
        .notImplemented,
        "Not implemented",
        "The method or the transfer coding is not one that this server knows."
    )
    static let versionNotSupported = ProblemType(
        "http-version-not-supported",
        .httpVersionNotSupported,
        "The HTTP version is not supported",
        "HTTP/1.1 and HTTP/1.0 are served. Put a terminator in front for TLS and HTTP/2."
    )
    static let unavailable = ProblemType(
        "service-unavailable",
        .serviceUnavailable,
        "The server cannot answer now",
        "The server is at a limit or is stopping. Try again after the time in `Retry-After`."
    )
    static let internalError = ProblemType(
        "internal-error",
        .internalServerError,
        "The server failed",
        "The server met a state that it does not know how to handle. What was asked was not done. Please report it."
    )
    static let storageUnavailable = ProblemType(
        "storage-unavailable",
        .serviceUnavailable,
        "The database cannot be written or read",
        "The database refused (disk full, locked by another program, damaged). What was asked was not done; try again later."
    )

    // MARK: Control plane

    static let limitReached = ProblemType(
        "limit-reached",
        .conflict,
        "There are as many of these as there may be",
        "A limit of the control plane is reached; `limit` says which number is in force. Take something back first."
    )
    static let nameTaken = ProblemType(
        "name-taken",
        .conflict,
        "Something has this name already",
        "Choose another name, or take back what has it."
    )
    static let unknownWorld = ProblemType(
        "unknown-world",
        .notFound,
        "There is no such world",
        "The world was never made, or it was destroyed. `nearest` lists worlds with similar names."
    )
    static let controlRefused = ProblemType(
        "control-refused",
        .forbidden,
        "The control plane does not answer this caller",
        "Without a control token it answers only peers, hosts and origins on this machine, so that no web page and no other machine can steer it."
    )
    static let controlTokenRequired = ProblemType(
        "control-token-required",
        .unauthorized,
        "The control plane wants its token",
        "Send `Authorization: Bearer TOKEN` with the token that the server was started with (--control-token)."
    )
    static let verificationFailed = ProblemType(
        "verification-failed",
        .conflict,
        "The journal does not show what was expected",
        "`failures` says for each expectation what was found, and which exchanges came nearest to it."
    )
    static let waitEnded = ProblemType(
        "wait-ended",
        .conflict,
        "What was waited for did not happen in time",
        "The time limit passed first. `seen` says how much of it was there."
    )

    static func limitReached(_ detail: String, limit: Int) -> Problem {
        var problem = limitReached(detail)
        problem.extensions["limit"] = .integer(Int64(limit))
        return problem
    }

    // MARK: Routing and negotiation

    static let notFound = ProblemType(
        "not-found",
        .notFound,
        "There is no such thing",
        """
        No resource is known under this URI, or it is none that the caller may know of: what belongs to somebody else \
        cannot be told from what does not exist.
        """
    )
    static let methodNotAllowed = ProblemType(
        "method-not-allowed",
        .methodNotAllowed,
        "The method is not allowed here",
        "The resource exists, and the methods it knows are listed in `Allow`."
    )
    static let notAcceptable = ProblemType(
        "not-acceptable",
        .notAcceptable,
        "Nothing acceptable can be sent",
        "`Accept` excludes what the resource can be represented as. The API speaks `application/json`."
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
        "This needs a WebSocket",
        "The resource speaks WebSocket, version 13. Read `/v1/live/events` for Server-Sent Events instead."
    )

    // MARK: Bodies and parameters

    static let malformedJSON = ProblemType(
        "malformed-json",
        .badRequest,
        "The body is not JSON",
        "The body breaks RFC 8259 at the place named. Nothing was done."
    )
    static let validationFailed = ProblemType(
        "validation-failed",
        .unprocessableContent,
        "The body does not say what is needed",
        "Each entry of `errors` names a member by JSON pointer and says what is wrong with it. Nothing was done."
    )
    static let invalidParameter = ProblemType(
        "invalid-parameter",
        .badRequest,
        "A parameter is not valid",
        "Each entry of `errors` names a query parameter or header field and says what it takes."
    )
    static let invalidCursor = ProblemType(
        "invalid-cursor",
        .badRequest,
        "The cursor belongs elsewhere",
        """
        The cursor is not one that this server issued, or belongs to another list. Cursors are opaque: take them from \
        `nextCursor` and `previousCursor` of the same list, or start from the top.
        """
    )

    // MARK: Identity

    static let unauthenticated = ProblemType(
        "unauthenticated",
        .unauthorized,
        "Sign in first",
        "The resource is personal. Send `Authorization: Bearer …` with a token from `POST /v1/sessions`."
    )
    static let invalidToken = ProblemType(
        "invalid-token",
        .unauthorized,
        "The token is not known",
        "The bearer token was never issued here, or its session has ended. Sign in again."
    )
    static let tokenExpired = ProblemType(
        "token-expired",
        .unauthorized,
        "The token has expired",
        "Exchange the refresh token at `POST /v1/sessions/refresh` and send the request again with the new token."
    )
    static let invalidCredentials = ProblemType(
        "invalid-credentials",
        .unauthorized,
        "Handle or password is wrong",
        "Fixture users sign in with their handle and the password that the README names."
    )
    static let invalidRefreshToken = ProblemType(
        "invalid-refresh-token",
        .unauthorized,
        "The refresh token is not good any more",
        """
        It is unknown or expired, or it was exchanged before. An exchanged refresh token that is sent again ends its \
        session, because one of its two holders must be a thief. Sign in again.
        """
    )
    static let forbidden = ProblemType(
        "forbidden",
        .forbidden,
        "That is not yours to change",
        "The resource may be read but belongs to somebody else."
    )

    // MARK: State

    static let preconditionFailed = ProblemType(
        "precondition-failed",
        .preconditionFailed,
        "Somebody changed it first",
        """
        `If-Match` or `If-Unmodified-Since` does not hold for the current representation. Nothing was changed. \
        `currentVersion` and `ETag` say what is current: read it, merge, and try again.
        """
    )
    static let preconditionRequired = ProblemType(
        "precondition-required",
        .preconditionRequired,
        "Say which version you edit",
        "Edits need `If-Match` with the ETag that the edit is based on (or `*`), so that no edit is lost unseen."
    )
    static let rangeNotSatisfiable = ProblemType(
        "range-not-satisfiable",
        .rangeNotSatisfiable,
        "The range lies outside of the content",
        "`Content-Range` says how long the content is. A download that was complete already ends here too."
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
        "A change token is bound to the `types` it was issued for. Omit `types`, or start anew with the types you want."
    )

    // MARK: Idempotency and limits

    static let idempotencyKeyMissing = ProblemType(
        "idempotency-key-missing",
        .badRequest,
        "An Idempotency-Key is required",
        "Send `Idempotency-Key` with a value of your own, new for every operation and the same for every try of it."
    )
    static let idempotencyKeyReused = ProblemType(
        "idempotency-key-reused",
        .unprocessableContent,
        "The key was used for something else",
        "The same Idempotency-Key came with another body. Nothing was done. A new operation needs a new key."
    )
    static let idempotencyInProgress = ProblemType(
        "idempotency-in-progress",
        .conflict,
        "The first request with this key is still running",
        "Wait for the time in `Retry-After` and send the same request with the same key again."
    )
    static let rateLimited = ProblemType(
        "rate-limited",
        .tooManyRequests,
        "Too many requests",
        "The quota in `RateLimit-Policy` is spent. Wait for the time in `Retry-After`."
    )

    // MARK: Bank

    static let insufficientFunds = ProblemType(
        "insufficient-funds",
        .conflict,
        "There is not enough money in the account",
        "The balance, in `balance`, is less than the amount. Nothing was moved."
    )
    static let accountClosed = ProblemType(
        "account-closed",
        .conflict,
        "The account is closed",
        "Money can neither be taken from a closed account nor sent to it. Nothing was moved."
    )
    static let currencyMismatch = ProblemType(
        "currency-mismatch",
        .unprocessableContent,
        "The currencies differ",
        "Both accounts and the amount must be in one currency: there is no exchange here. Nothing was moved."
    )

    /// Every type, in the order in which the documentation lists them.
    package static let all = api + control

    /// Those of the control plane.
    static let control: [ProblemType] = [
        limitReached, nameTaken, unknownWorld, controlRefused, controlTokenRequired, verificationFailed, waitEnded,
    ]

    /// Those of the API, in the order in which the documentation lists them.
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
