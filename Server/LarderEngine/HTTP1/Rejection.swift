package import LarderHTTP
import LarderHTTPWire

/// A request that the engine rejects before a handler sees it. The connection is closed after the reply.
package struct Rejection: Error, Sendable, Hashable {
    /// Says what is wrong: no two reasons have one status.
    package let status: Status
    /// A sentence for the developer of the client.
    package let detail: String

    init(_ status: Status, _ detail: String) {
        self.status = status
        self.detail = detail
    }

    init(_ error: HTTPWireError) {
        let status: Status =
            switch error.reason {
            case .malformed: .badRequest
            case .headTooLarge: .requestHeaderFieldsTooLarge
            case .targetTooLong: .uriTooLong
            case .bodyTooLarge: .contentTooLarge
            case .unsupportedVersion: .httpVersionNotSupported
            case .unsupportedTransferCoding: .notImplemented
            }
        self.init(status, error.detail)
    }

    init(_ error: WebSocketHandshake.Rejection) {
        switch error {
        case .notAnUpgrade: self.init(.badRequest, "The request is not a WebSocket upgrade.")
        case .version: self.init(.upgradeRequired, "Only version 13 of the WebSocket protocol is supported.")
        case .key: self.init(.badRequest, "Sec-WebSocket-Key must be 16 bytes in Base64.")
        }
    }
}
