package import LarderEvents

extension TransportError: RequestFailure {
    /// What became of the request.
    package var kind: RequestFailureKind {
        switch code {
        case .cancelled: .cancelled
        case .timedOut: .timedOut
        case .invalidURL: .invalidRequest
        case .tooLarge: .tooLarge
        case .unreachable: .unsent
        default: .noReply
        }
    }
}
