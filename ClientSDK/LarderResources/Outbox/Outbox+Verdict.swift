extension Outbox {
    /// What a failure means for an operation. The only place where failures of writes are classified.
    package enum Verdict: Sendable, Hashable {
        /// The server has rejected it, or it cannot be sent: a retry fails again.
        case rejected
        /// Nothing has reached the server.
        case unsent
        /// The attempt was turned away by the server or an intermediary without a decision.
        case undecided
        /// It may have been carried out.
        case unknown

        /// Classifies a failure.
        ///
        /// | failure | verdict |
        /// | --- | --- |
        /// | no connection, none that is trusted, or no authorization to send it with | unsent |
        /// | not validated, gone, conflict (412), encoding, invalid argument | rejected |
        /// | a problem of the type `idempotency-in-progress`, with any status | unknown |
        /// | 401, 407, 408, 421, 425, 429, 511 | undecided |
        /// | 501, 505, 510 and any 4xx that is not named here | rejected |
        /// | any other status, 3xx and unknown 5xx included; a rejection without a status | unknown |
        /// | no reply, a reply that is not the API's, and everything else | unknown |
        package init(_ error: LarderError) {
            switch error.code {
            case .offline where error.isUnsent: self = .unsent
            case .untrusted, .unauthorized: self = .unsent
            case .notValidated, .invalidArgument, .encoding, .gone, .conflict: self = .rejected
            case .rejected: self.init(status: error.status, problem: error.problem)
            default: self = .unknown
            }
        }

        /// Classifies a reply that is no success.
        package init(status: Int?, problem: String? = nil) {
            if problem?.split(whereSeparator: { "/:#".contains($0) }).last == Self.inProgress[...] {
                self = .unknown
                return
            }
            switch status {
            // 511 comes from a portal on the way (RFC 6585 section 6).
            case 401, 407, 408, 421, 425, 429, 511: self = .undecided
            case 501, 505, 510: self = .rejected
            case let status?: self = (400..<500).contains(status) ? .rejected : .unknown
            case nil: self = .unknown
            }
        }

        /// The first request with the key is still running (draft-ietf-httpapi-idempotency-key-header-07, section 2.6).
        private static let inProgress = "idempotency-in-progress"
    }
}

extension LarderError {
    /// Whether the server may have carried out the write that has failed with this error.
    public var mayHaveBeenCarriedOut: Bool { Outbox.Verdict(self) == .unknown }
}
