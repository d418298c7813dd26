import LarderEngine
import LarderHTTP

/// Who may steer the server.
///
/// Without a token only this machine may: the peer, the `Host` that it asked for and the `Origin` that it comes from must be
/// loopback, so that neither another machine nor a web page (by its own script or by rebinding a name) gets in.
struct ControlGuard: Sendable {
    /// The token that must be shown; nil where being on this machine is enough.
    let token: String?
    /// Whether there is a control plane at all.
    let isEnabled: Bool

    /// - Throws: `control-refused` or `control-token-required`.
    func check(_ request: Request) throws(Problem) {
        guard isEnabled else { throw Self.switchedOff }
        if let token {
            let sent = request.fields[.authorization] ?? ""
            guard Self.isEqual(sent, "Bearer " + token) else {
                throw ProblemType.controlTokenRequired(
                    "The token is missing or wrong.",
                    fields: [.wwwAuthenticate: "Bearer realm=\"larder-control\""]
                )
            }
            return
        }
        let host = try checkMachine(request)
        if let origin = request.fields[.origin] {
            // The server's own pages come from the very host and port that they ask.
            guard origin == "http://" + host else {
                throw ProblemType.controlRefused("The page at «\(origin.prefix(100))» is not one of the server's own.")
            }
        }
        try checkSite(request)
    }

    /// Who may see the dashboard's page, which shows nothing by itself: what it asks for is checked like anything else.
    ///
    /// Therefore it needs no token, with which no browser could ask for a page, and a link from elsewhere may lead to it.
    ///
    /// - Throws: `control-refused`, or `not-found` where there is no control plane.
    func checkPage(_ request: Request) throws(Problem) {
        guard isEnabled else { throw Self.switchedOff }
        guard token == nil else { return }
        try checkMachine(request)
        // A frame or a script of a page elsewhere is no link that somebody followed.
        if !says(request, "sec-fetch-mode", "navigate") || !says(request, "sec-fetch-dest", "document") {
            try checkSite(request)
        }
    }

    private func says(_ request: Request, _ name: StaticString, _ value: String) -> Bool {
        request.fields.range(of: name).map { request.head[$0].elementsEqual(value.utf8) } ?? false
    }

    private static var switchedOff: Problem {
        ProblemType.notFound("The control plane is switched off (--no-control).")
    }

    /// Both ends must be this machine. Returns the `Host` that was asked for.
    @discardableResult private func checkMachine(_ request: Request) throws(Problem) -> String {
        guard request.peer.isLoopback else {
            throw ProblemType.controlRefused("The peer \(request.peer.host) is not on this machine.")
        }
        let host = request.fields[.host] ?? ""
        guard Self.isLoopback(authority: host) else {
            throw ProblemType.controlRefused("The Host «\(host.prefix(100))» is not this machine; ask for 127.0.0.1.")
        }
        return host
    }

    private func checkSite(_ request: Request) throws(Problem) {
        if let site = request.fields[.secFetchSite], site != "same-origin", site != "none" {
            throw ProblemType.controlRefused(
                "The request comes from a page elsewhere (Sec-Fetch-Site: \(site.prefix(40)))."
            )
        }
    }

    static func isLoopback(authority: String) -> Bool {
        let host: Substring
        if authority.hasPrefix("[") {
            host = authority.dropFirst().prefix { $0 != "]" }
        } else {
            host = authority.prefix { $0 != ":" }
        }
        if host.lowercased() == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Takes the same time wherever the first difference is.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        var difference = left.count ^ right.count
        for index in left.indices { difference |= Int(left[index] ^ (right.isEmpty ? 1 : right[index % right.count])) }
        return difference == 0
    }
}
