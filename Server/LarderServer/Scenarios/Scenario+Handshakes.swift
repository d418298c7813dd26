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
            "intercepted-https",
            "a captive portal answers https with a certificate for another host, twice",
            "reject it, send nothing over plain http instead, and try again",
            .scenario(.certificate(.wrongHost), FaultMatch(), count: 2),
            isSecure: true,
            checks: [.secureOnly]
        ),
    ]
}
