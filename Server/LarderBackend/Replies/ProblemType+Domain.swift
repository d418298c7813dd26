import LarderHTTP

extension ProblemType {
    // MARK: Identity

    package static let unauthenticated = ProblemType(
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
    static let uploadOffset = ProblemType(
        "upload-offset",
        .conflict,
        "The piece does not continue the upload",
        "`Upload-Offset` says how much of the upload the server has. Send the piece that begins there."
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
}
