import LarderTime

@testable import LarderTLS

private let noon = WallTime(seconds: 1_780_315_200)

private let peers: (client: TLSClient, server: TLSServer) = {
    do {
        let authority = try TLSAuthority(name: "Fuzz Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        return (try TLSClient(settings), try TLSServer { _ in identity })
    } catch { fail("The certificates were not made: \(error)") }
}()

/// Foreign bytes in place of a handshake, and a real connection whose bytes are changed on the way.
func fuzzTLS(_ bytes: [UInt8]) throws {
    for session in [try peers.client.session(host: "localhost", port: 443, now: noon), try peers.server.session()] {
        var plain: [UInt8] = []
        var failure: TLSError?
        for piece in pieces(bytes) {
            do {
                try session.receive(Array(piece).span, into: &plain)
                require(failure == nil, "A session that has failed took bytes.")
            } catch { failure = failure ?? error }
        }
        require(plain.isEmpty && !session.isEstablished, "A session without a handshake gave bytes.")
        _ = session.takeOutput()
    }
    try fuzzConnection(bytes)
}

/// Both sides send the same content. From one flight on, of the handshake or after it, each is changed: what arrives is a prefix of what
/// was sent.
private func fuzzConnection(_ bytes: [UInt8]) throws {
    let client = try peers.client.session(host: "localhost", port: 443, now: noon)
    let server = try peers.server.session()
    let content = bytes + bytes.reversed()
    let unchanged = Int(bytes.first ?? 0) % 6
    var flights = 0

    /// Passes on what one side has to send; false if the other has failed.
    func pass(_ sender: TLSSession, _ receiver: TLSSession, _ arrived: inout [UInt8]) -> Bool {
        var wire = sender.takeOutput()
        flights += 1
        // Two bytes choose a place, the third the change.
        for start in stride(from: 1, to: bytes.count - 2, by: 3) where flights > unchanged && !wire.isEmpty {
            wire[(Int(bytes[start]) << 8 | Int(bytes[start + 1])) % wire.count] ^= bytes[start + 2]
        }
        for piece in pieces(wire) {
            do { try receiver.receive(Array(piece).span, into: &arrived) } catch { return false }
        }
        return true
    }

    var (atClient, atServer): ([UInt8], [UInt8]) = ([], [])
    var waiting = [client, server]
    try client.start()
    while client.hasOutput || server.hasOutput {
        guard pass(client, server, &atServer), pass(server, client, &atClient) else { break }
        for session in waiting where session.isEstablished { try session.send(content.span) }
        waiting.removeAll { $0.isEstablished }
    }
    require(content.starts(with: atClient) && content.starts(with: atServer), "What arrived was not sent.")
    if bytes.count < 4 { require(atServer == content && atClient == content, "Content was lost.") }
}
