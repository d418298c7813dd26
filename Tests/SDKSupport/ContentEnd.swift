package import LarderTransport

/// Calls a function when the content of a response was read or left, or if there was no response.
package final class ContentEnd: Sendable {
    private let ended: @Sendable () -> Void

    package init(_ ended: @escaping @Sendable () -> Void) { self.ended = ended }

    deinit { ended() }

    /// The response, whose content keeps this until it is released.
    package func of(_ stream: TransportStream) -> TransportStream {
        let body = stream.body
        let kept = TransportStream.Body { () async throws(TransportError) -> [UInt8]? in
            defer { withExtendedLifetime(self) {} }
            return try await body.next()
        }
        return TransportStream(
            status: stream.status,
            fields: stream.fields,
            body: kept,
            redirectedTo: stream.redirectedTo
        )
    }
}
