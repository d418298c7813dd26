package import LarderEvents

extension TransportError: RequestFailure {
    /// The kind of failure, for retry decisions.
    package var kind: RequestFailureKind {
        switch code {
        case .cancelled: .cancelled
        case .timedOut: .timedOut
        case .invalidURL, .invalidRequest, .bodyNotReplayable, .bodyFailed: .invalidRequest
        case .tooLarge, .unsupportedCoding: .unusable
        case .unreachable, .untrusted, .proxyRejected: .unsent
        default: .noReply
        }
    }

    package var isUntrusted: Bool { code == .untrusted }
}
