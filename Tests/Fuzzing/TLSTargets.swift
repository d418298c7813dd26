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

/// Foreign bytes in place of a handshake, and a real connection whose records are changed on the way: what arrives is a prefix of what
/// was sent, and a session that has failed stays so.
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
    let client = try peers.client.session(host: "localhost", port: 443, now: noon)
    let server = try peers.server.session()
    var arrived: [UInt8] = []
    try client.start()
    while client.hasOutput || server.hasOutput {
        try server.receive(client.takeOutput().span, into: &arrived)
        try client.receive(server.takeOutput().span, into: &arrived)
    }
    let sent = bytes + bytes.reversed()
    try client.send(sent.span)
    var wire = client.takeOutput()
    // Two bytes choose a place, the third the change.
    for start in stride(from: 0, to: bytes.count - 2, by: 3) where !wire.isEmpty {
        wire[(Int(bytes[start]) << 8 | Int(bytes[start + 1])) % wire.count] ^= bytes[start + 2]
    }
    for piece in pieces(wire) {
        do { try server.receive(Array(piece).span, into: &arrived) } catch { break }
    }
    require(sent.starts(with: arrived), "What arrived was not sent.")
}
