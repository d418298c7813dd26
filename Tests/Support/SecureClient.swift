package import LarderTLS
import LarderTime

/// A client with TLS over a raw socket.
package struct SecureClient {
    package let raw: RawClient
    package let session: TLSSession

    /// Connects to a port of this machine, and sends nothing yet.
    ///
    /// - Parameter host: what it names in the handshake, and expects in the certificate.
    package init(port: Int, _ client: TLSClient, host: String = "localhost") throws {
        raw = try RawClient(port: port)
        session = try client.session(host: host, port: port, now: SystemWallClock().now)
    }

    /// Encrypts bytes and sends them.
    package func send(_ text: String) throws {
        try session.send(Array(text.utf8).span)
        try flush()
    }

    /// Sends what the session has to send.
    package func flush() throws {
        let output = session.takeOutput()
        if !output.isEmpty { try raw.send(output) }
    }

    /// Sends what the session has to send, reads a byte, and returns what it contained.
    private func step() async throws -> [UInt8] {
        try flush()
        var plain: [UInt8] = []
        let bytes = try await raw.read(count: 1)
        try session.receive(bytes.span, into: &plain)
        return plain
    }

    package func shakeHands() async throws {
        try session.start()
        while !session.isEstablished { _ = try await step() }
        try flush()
    }

    /// What arrives until the server ends its side.
    package func readToEnd() async throws -> String {
        var plain: [UInt8] = []
        while !session.isEndedByPeer { plain += try await step() }
        return String(decoding: plain, as: UTF8.self)
    }

    /// What arrives, as long as it does not contain a mark.
    package func read(until mark: String) async throws -> String {
        var plain: [UInt8] = []
        while true {
            plain += try await step()
            let text = String(decoding: plain, as: UTF8.self)
            if text.hasSuffix(mark) { return text }
        }
    }

    /// Decrypts what has arrived, without waiting.
    package func takeAvailable() throws -> [UInt8] {
        var plain: [UInt8] = []
        try session.receive(raw.takeAvailable().span, into: &plain)
        return plain
    }
}
