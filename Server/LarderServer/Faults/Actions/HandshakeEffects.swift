import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Shows a wrong certificate in TLS handshakes. Certificates from files stay as they are.
struct Certificate: FaultEffect {
    var fault: FaultAction.WrongCertificate?

    static let kind = FaultKind(
        Certificate(),
        at: [.handshake],
        "a wrong certificate",
        [.choice("fault", \.fault, example: .expired)],
        need: .all(["fault"])
    )

    var name: String { "certificate" }

    func change(_ handshake: inout Handshake, at byte: Int) {
        if handshake.certificate == nil { handshake.certificate = fault?.fault }
    }
}

/// Closes connections with TLS without `close_notify`.
struct NoCloseNotify: FaultEffect {
    static let kind = FaultKind(
        NoCloseNotify(),
        at: [.handshake],
        "the connection is later closed without close_notify"
    )

    var name: String { "noCloseNotify" }

    func change(_ handshake: inout Handshake, at byte: Int) { handshake.fault.omitsCloseNotify = true }
}
