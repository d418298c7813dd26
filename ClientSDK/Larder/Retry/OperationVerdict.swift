/// What a failure says about an operation: the one place where that is decided, for the outbox and for changes outside of it.
public enum OperationVerdict: Sendable, Hashable {
    /// The server has decided against it, or it cannot be sent as it is: the same again is refused again.
    case refused
    /// Nothing has reached the server.
    case unsent
    /// The server, or somebody on the way, has turned this attempt away without carrying it out or deciding about it.
    case undecided
    /// It may have been carried out, or may still be.
    case unknown

    /// Judges a failure.
    ///
    /// | failure | verdict |
    /// | --- | --- |
    /// | no connection, or no authorization to send it with | unsent |
    /// | not validated, gone, conflict (412), encoding, invalid argument | refused |
    /// | a problem of the type `idempotency-in-progress`, with any status | unknown |
    /// | 401, 407, 408, 421, 425, 429, 511 | undecided |
    /// | 501, 505, 510 and any 4xx that is not named here | refused |
    /// | any other status, 3xx and unknown 5xx included; a refusal without a status | unknown |
    /// | no reply, a reply that is not the API's, and everything else | unknown |
    public init(_ error: LarderError) {
        switch error.code {
        case .offline where (error.cause as? TransportError)?.code == .unreachable: self = .unsent
        case .unauthorized: self = .unsent
        case .notValidated, .invalidArgument, .encoding, .gone, .conflict: self = .refused
        case .refused: self.init(status: error.status, problem: error.problem)
        default: self = .unknown
        }
    }

    private init(status: Int?, problem: String?) {
        if problem?.split(whereSeparator: { "/:#".contains($0) }).last == Self.inProgress[...] {
            self = .unknown
            return
        }
        switch status {
        // 511 comes from a portal on the way (RFC 6585 section 6).
        case 401, 407, 408, 421, 425, 429, 511: self = .undecided
        case 501, 505, 510: self = .refused
        case let status?: self = (400..<500).contains(status) ? .refused : .unknown
        case nil: self = .unknown
        }
    }

    /// The first request with the key is still running (draft-ietf-httpapi-idempotency-key-header-07, section 2.6).
    private static let inProgress = "idempotency-in-progress"
}
