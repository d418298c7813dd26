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
    /// All types, in the order of the documentation.
    package static let all = api + control

    /// The types of the control plane.
    package static let control: [ProblemType] = [
        limitReached, nameTaken, unknownWorld, controlRejected, controlTokenRequired, verificationFailed, waitEnded,
        clientFailed, badGateway, gatewayTimeout, loopDetected, hostRejected, documentExists,
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
        uploadOffset,
        insufficientFunds, accountClosed, currencyMismatch,
    ]
}
