import LarderBackend

extension Scenario {
    static let handshakes = [
        reading(
            "cut-handshake",
            "the connection closes in the TLS handshake, twice",
            "try again: nothing was sent",
            .scenario(.close, FaultMatch(), count: 2, stage: .handshake, at: 100),
            isSecure: true,
            checks: [.secureOnly]
        ),
        reading(
            "stalled-handshake",
            "the TLS handshake stops halfway, and the connection stays open, once",
            "give up within some seconds, and try again: nothing was sent",
            .scenario(.never, FaultMatch(), count: 1, stage: .handshake, at: 100),
            isSecure: true,
            checks: [.secureOnly]
        ),
        reading(
            "intercepted-https",
            "a captive portal answers https with a certificate for another host, twice",
            "reject it, send nothing over plain http instead, and try again",
            .scenario(.certificate(.wrongHost), FaultMatch(), count: 2),
            isSecure: true,
            checks: [.secureOnly]
        ),
    ]
}
