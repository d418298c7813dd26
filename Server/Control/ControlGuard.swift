import LarderEngine
import LarderHTTP

/// Who may steer the server.
///
/// Without a token only this machine may: the peer and the host that it asked for must be loopback, and a page must come from
/// this server or from an origin that was named, so that neither another machine nor a web page (by its own script or by
/// rebinding a name) gets in. With a token whoever shows it may, and pages of this machine may read the replies.
struct ControlGuard: Sendable {
    /// The token that must be shown; nil where being on this machine is enough.
    let token: String?
    /// Whether there is a control plane at all.
    let isEnabled: Bool
    /// The origins whose pages may steer besides the server's own, such as `http://localhost:3000`.
    let origins: Set<String>

    /// - Throws: `control-refused` or `control-token-required`.
    func check(_ request: Request) throws(Problem) {
        guard isEnabled else { throw Self.switchedOff }
        if let token {
            guard let sent = Self.bearerToken(request.fields[.authorization] ?? ""), Self.isEqual(sent, token) else {
                throw ProblemType.controlTokenRequired(
                    "The token is missing or wrong.",
                    fields: [.wwwAuthenticate: "Bearer realm=\"larder-control\""]
                )
            }
            return
        }
        let host = try checkMachine(request)
        if let origin = request.fields.combined(.origin) {
            if origins.contains(origin) { return }
            // The server's own pages come from the very host and port that they ask.
            guard origin == "http://" + host else {
                throw ProblemType.controlRefused(
                    "The page at '\(origin.prefix(100))' is not one of the server's own; name its origin with --control-origin."
                )
            }
        }
        try checkSite(request)
    }

    /// The origin of a request's page if its script may read the replies of the control plane (Fetch): one that was named or,
    /// where a token must be shown besides, one of this machine.
    func readingOrigin(_ request: Request) -> String? {
        guard isEnabled, let origin = request.fields.combined(.origin) else { return nil }
        if origins.contains(origin) { return origin }
        guard token != nil, let authority = Self.authority(ofOrigin: origin) else { return nil }
        return Self.isLoopback(authority: authority) ? origin : nil
    }

    /// Whether the text is an origin as browsers write it: a scheme, a host and perhaps a port, and nothing else.
    static func isOrigin(_ text: String) -> Bool { authority(ofOrigin: text) != nil }

    private static func authority(ofOrigin origin: String) -> String? {
        guard let scheme = ["http://", "https://"].first(where: { origin.hasPrefix($0) }) else { return nil }
        let authority = origin.dropFirst(scheme.count)
        let isFit =
            !authority.isEmpty && authority.utf8.first != UInt8(ascii: ":")
            && authority.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "["),
                    UInt8(ascii: "]"):
                    true
                default: false
                }
            }
        return isFit ? String(authority) : nil
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

    /// Both ends must be this machine. Returns the host and port that were asked for.
    @discardableResult private func checkMachine(_ request: Request) throws(Problem) -> String {
        guard request.peer.isLoopback else {
            throw ProblemType.controlRefused("The peer \(request.peer.host) is not on this machine.")
        }
        // The host of an absolute target replaces the field (RFC 9112 §3.2.2).
        let host = request.targetAuthority ?? request.fields.combined(.host) ?? ""
        guard Self.isLoopback(authority: host) else {
            throw ProblemType.controlRefused("The host '\(host.prefix(100))' is not this machine; ask for 127.0.0.1.")
        }
        return host
    }

    private func checkSite(_ request: Request) throws(Problem) {
        if let site = request.fields.combined(.secFetchSite), site != "same-origin", site != "none" {
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
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy(isOctet)
    }

    /// Whether the text is a number from 0 to 255 as an IPv4 address has it (RFC 3986 §3.2.2): digits only, no leading zero.
    private static func isOctet(_ text: Substring) -> Bool {
        guard text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }), let value = UInt8(text) else { return false }
        return String(value) == text
    }

    /// The token of `Bearer TOKEN`: the scheme in any case, and one or more spaces behind it (RFC 9110 §11.1, §11.4).
    private static func bearerToken(_ credentials: String) -> String? {
        guard let space = credentials.firstIndex(of: " "), credentials[..<space].lowercased() == "bearer" else {
            return nil
        }
        return String(credentials[space...].drop { $0 == " " })
    }

    /// Takes the same time wherever the first difference is.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        var difference = left.count ^ right.count
        for index in left.indices { difference |= Int(left[index] ^ (right.isEmpty ? 1 : right[index % right.count])) }
        return difference == 0
    }
}

extension Request {
    /// The host and port of a target in absolute form (RFC 9112 §3.2.2); nil for any other form.
    var targetAuthority: String? {
        guard let start = head.firstIndex(of: UInt8(ascii: " ")) else { return nil }
        let target = head[(start + 1)...].prefix { $0 != UInt8(ascii: " ") }
        guard let first = target.first, first != UInt8(ascii: "/"), first != UInt8(ascii: "*") else { return nil }
        // Any other target is one that the engine has checked to begin with `http://` and a host.
        let authority = target.dropFirst("http://".utf8.count).prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
        }
        return String(decoding: authority, as: UTF8.self)
    }
}
