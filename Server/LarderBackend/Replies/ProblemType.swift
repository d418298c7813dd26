import LarderCoding
package import LarderHTTP

/// A type of problem that the backend answers with: the end of its `type` URI. `problems.json` in the folder of the endpoints, which is
/// embedded in the binary, says the rest.
///
/// The order is that of the documentation. `/problems/{name}` explains each type; every error reply has one of them.
package enum ProblemType: String, Sendable, CaseIterable {
    // The API.

    case malformedRequest = "malformed-request"
    case requestTimeout = "request-timeout"
    case lengthRequired = "length-required"
    case contentTooLarge = "content-too-large"
    case uriTooLong = "uri-too-long"
    case fieldsTooLarge = "header-fields-too-large"
    case expectationFailed = "expectation-failed"
    case notImplemented = "not-implemented"
    case versionNotSupported = "http-version-not-supported"
    case unavailable = "service-unavailable"
    case internalError = "internal-error"
    case storageUnavailable = "storage-unavailable"
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case notAcceptable = "not-acceptable"
    case unsupportedMediaType = "unsupported-media-type"
    case upgradeRequired = "upgrade-required"
    case malformedJSON = "malformed-json"
    case validationFailed = "validation-failed"
    case invalidParameter = "invalid-parameter"
    case invalidCursor = "invalid-cursor"
    case unauthenticated
    case invalidToken = "invalid-token"
    case tokenExpired = "token-expired"
    case invalidCredentials = "invalid-credentials"
    case invalidRefreshToken = "invalid-refresh-token"
    case forbidden
    case preconditionFailed = "precondition-failed"
    case preconditionRequired = "precondition-required"
    case rangeNotSatisfiable = "range-not-satisfiable"
    case resyncRequired = "resync-required"
    case filterMismatch = "filter-mismatch"
    case idempotencyKeyMissing = "idempotency-key-missing"
    case idempotencyKeyReused = "idempotency-key-reused"
    case idempotencyInProgress = "idempotency-in-progress"
    case rateLimited = "rate-limited"
    case uploadOffset = "upload-offset"
    case insufficientFunds = "insufficient-funds"
    case accountClosed = "account-closed"
    case currencyMismatch = "currency-mismatch"

    // The control plane and the proxy.

    case limitReached = "limit-reached"
    case nameTaken = "name-taken"
    case unknownWorld = "unknown-world"
    case controlRejected = "control-rejected"
    case controlTokenRequired = "control-token-required"
    case verificationFailed = "verification-failed"
    case waitEnded = "wait-ended"
    case clientFailed = "client-failed"
    case badGateway = "bad-gateway"
    case gatewayTimeout = "gateway-timeout"
    case loopDetected = "loop-detected"
    case hostRejected = "host-rejected"
    case documentExists = "document-exists"

    // MARK: What the type says

    /// The last segment of the type's URI.
    package var name: String { rawValue }
    package var title: String { definition.title }
    package var status: Status { definition.status }
    /// The meaning and the remedy, for the page at the type's URI.
    package var explanation: String { definition.explanation }

    /// The first type with a status; nil for none.
    package static func first(_ status: Status) -> ProblemType? { allCases.first { $0.status == status } }

    private struct Definition: Sendable {
        let title: String
        let status: Status
        let explanation: String
    }

    private var definition: Definition {
        // It cannot be missing: the document is a part of the binary, and a test reads the definition of every case.
        guard let definition = Self.definitions[self] else { preconditionFailure("problems.json lacks '\(name)'.") }
        return definition
    }

    private static let definitions: [ProblemType: Definition] = {
        let parts = EmbeddedDocument.problems.json.object?.members ?? []
        return parts.flatMap { $0.value.array ?? [] }.reduce(into: [:]) { definitions, json in
            guard let type = json["name"]?.string.flatMap({ ProblemType(rawValue: $0) }),
                let title = json["title"]?.string, let code = json["status"]?.integer,
                let explanation = json["explanation"]?.string
            else { return }
            definitions[type] = Definition(title: title, status: Status(code: Int(code)), explanation: explanation)
        }
    }()

    // MARK: Problems

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

    /// Makes a problem with one invalid member or parameter.
    package func callAsFunction(_ detail: String, at pointer: String, _ error: String) -> Problem {
        self(detail, errors: [Problem.FieldError(pointer: pointer, detail: error)])
    }

    package static func limitReached(_ detail: String, limit: Int) -> Problem {
        var problem = limitReached(detail)
        problem.extensions["limit"] = .integer(Int64(limit))
        return problem
    }
}
