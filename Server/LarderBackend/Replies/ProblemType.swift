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

    /// The type with that name, which `problems.json` has.
    private init(_ name: String) {
        guard let type = Self.all.first(where: { $0.name == name }) else {
            preconditionFailure("problems.json has no type '\(name)'.")
        }
        self = type
    }

    private init(_ json: JSONValue) {
        name = json["name"]?.string ?? ""
        title = json["title"]?.string ?? ""
        status = Status(code: Int(json["status"]?.integer ?? 500))
        explanation = json["explanation"]?.string ?? ""
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

    /// Makes a problem with one invalid member or parameter.
    func callAsFunction(_ detail: String, at pointer: String, _ error: String) -> Problem {
        self(detail, errors: [Problem.FieldError(pointer: pointer, detail: error)])
    }
}

/// All types: `problems.json` in the folder of the endpoints, embedded in the binary.
extension ProblemType {
    package static let all = api + control
    /// The types of the API, in the order of the documentation.
    static let api = types(of: "api")
    /// The types of the control plane and the proxy.
    package static let control = types(of: "control")

    private static func types(of part: String) -> [ProblemType] {
        guard let types = (try? JSONParser.parse(PackageResources.problems_json))?[part]?.array else {
            preconditionFailure("problems.json has no '\(part)'.")
        }
        return types.map { ProblemType($0) }
    }

    // MARK: The request as HTTP

    static let malformedRequest = ProblemType("malformed-request")
    static let requestTimeout = ProblemType("request-timeout")
    static let contentTooLarge = ProblemType("content-too-large")
    static let lengthRequired = ProblemType("length-required")
    static let uriTooLong = ProblemType("uri-too-long")
    static let fieldsTooLarge = ProblemType("header-fields-too-large")
    static let expectationFailed = ProblemType("expectation-failed")
    static let notImplemented = ProblemType("not-implemented")
    static let versionNotSupported = ProblemType("http-version-not-supported")
    package static let unavailable = ProblemType("service-unavailable")
    package static let badGateway = ProblemType("bad-gateway")
    package static let gatewayTimeout = ProblemType("gateway-timeout")
    package static let loopDetected = ProblemType("loop-detected")
    package static let hostRejected = ProblemType("host-rejected")
    package static let internalError = ProblemType("internal-error")
    package static let storageUnavailable = ProblemType("storage-unavailable")

    // MARK: Routing and negotiation

    package static let notFound = ProblemType("not-found")
    package static let methodNotAllowed = ProblemType("method-not-allowed")
    static let notAcceptable = ProblemType("not-acceptable")
    static let unsupportedMediaType = ProblemType("unsupported-media-type")
    static let upgradeRequired = ProblemType("upgrade-required")

    // MARK: Bodies and parameters

    package static let malformedJSON = ProblemType("malformed-json")
    package static let validationFailed = ProblemType("validation-failed")
    package static let invalidParameter = ProblemType("invalid-parameter")
    static let invalidCursor = ProblemType("invalid-cursor")

    // MARK: Identity

    package static let unauthenticated = ProblemType("unauthenticated")
    static let invalidToken = ProblemType("invalid-token")
    package static let tokenExpired = ProblemType("token-expired")
    static let invalidCredentials = ProblemType("invalid-credentials")
    static let invalidRefreshToken = ProblemType("invalid-refresh-token")
    static let forbidden = ProblemType("forbidden")

    // MARK: State

    static let preconditionFailed = ProblemType("precondition-failed")
    static let preconditionRequired = ProblemType("precondition-required")
    static let rangeNotSatisfiable = ProblemType("range-not-satisfiable")
    static let resyncRequired = ProblemType("resync-required")
    static let filterMismatch = ProblemType("filter-mismatch")

    // MARK: Idempotency and limits

    static let idempotencyKeyMissing = ProblemType("idempotency-key-missing")
    static let idempotencyKeyReused = ProblemType("idempotency-key-reused")
    static let idempotencyInProgress = ProblemType("idempotency-in-progress")
    static let documentExists = ProblemType("document-exists")
    static let uploadOffset = ProblemType("upload-offset")
    static let rateLimited = ProblemType("rate-limited")

    // MARK: Bank

    static let insufficientFunds = ProblemType("insufficient-funds")
    static let accountClosed = ProblemType("account-closed")
    static let currencyMismatch = ProblemType("currency-mismatch")

    // MARK: Control plane

    package static let limitReached = ProblemType("limit-reached")
    package static let nameTaken = ProblemType("name-taken")
    package static let unknownWorld = ProblemType("unknown-world")
    package static let controlRejected = ProblemType("control-rejected")
    package static let controlTokenRequired = ProblemType("control-token-required")
    package static let verificationFailed = ProblemType("verification-failed")
    package static let waitEnded = ProblemType("wait-ended")
    package static let clientFailed = ProblemType("client-failed")

    package static func limitReached(_ detail: String, limit: Int) -> Problem {
        var problem = limitReached(detail)
        problem.extensions["limit"] = .integer(Int64(limit))
        return problem
    }
}
