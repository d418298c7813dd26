package import LarderHTTP
import LarderHTTPWire

/// A request that the engine rejects before a handler sees it. The connection is closed after the reply.
package struct Rejection: Error, Sendable, Hashable {
    package enum Reason: Sendable, Hashable {
        case malformed
        case headTooLarge
        case targetTooLong
        case bodyTooLarge
        case timeout
        case unsupportedExpectation
        case unsupportedTransferCoding
        case unsupportedVersion
        case tooManyConnections
        case unsupportedWebSocketVersion
    }

    package let reason: Reason
    /// A sentence for the developer of the client.
    package let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    init(_ error: HTTPWireError) {
        let reason: Reason =
            switch error.reason {
            case .malformed: .malformed
            case .headTooLarge: .headTooLarge
            case .targetTooLong: .targetTooLong
            case .bodyTooLarge: .bodyTooLarge
            case .unsupportedVersion: .unsupportedVersion
            case .unsupportedTransferCoding: .unsupportedTransferCoding
            }
        self.init(reason, error.detail)
    }

    package var status: Status {
        switch reason {
        case .malformed: .badRequest
        case .headTooLarge: .requestHeaderFieldsTooLarge
        case .targetTooLong: .uriTooLong
        case .bodyTooLarge: .contentTooLarge
        case .timeout: .requestTimeout
        case .unsupportedExpectation: .expectationFailed
        case .unsupportedTransferCoding: .notImplemented
        case .unsupportedVersion: .httpVersionNotSupported
        case .tooManyConnections: .serviceUnavailable
        case .unsupportedWebSocketVersion: .upgradeRequired
        }
    }
}
