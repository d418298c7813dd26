import LarderEngine
import LarderHTTP

/// Access control of the control plane.
///
/// Without a token only requests from this machine are allowed: the peer and the requested host must be loopback addresses, and
/// a page must come from this server or a configured origin. This excludes other machines and foreign web pages (cross-site
/// requests and DNS rebinding). With a token its holder is allowed, and pages of this machine may read the replies.
struct ControlGuard: Sendable {
    /// The required token; nil if access from this machine suffices.
    let token: String?
    /// Whether the control plane is enabled.
    let isEnabled: Bool
    /// The origins of other allowed pages, such as `http://localhost:3000`.
    let origins: Set<String>

    /// - Throws: `control-rejected` or `control-token-required`.
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
            // The server's own pages have the requested host and port as their origin.
            guard origin == "http://" + host || origin == "https://" + host else {
                throw ProblemType.controlRejected(
                    "The origin '\(origin.prefix(100))' is not allowed. Allow it with --control-origin."
                )
            }
        }
        try checkSite(request)
    }

    /// The origin of a page whose script may read replies of the control plane (Fetch): a configured one, or one of this
    /// machine if a token is required; otherwise nil.
    func readingOrigin(_ request: Request) -> String? {
        guard isEnabled, let origin = request.fields.combined(.origin) else { return nil }
        if origins.contains(origin) { return origin }
        guard token != nil, let authority = Self.authority(ofOrigin: origin) else { return nil }
        return Authority.isLoopback(authority) ? origin : nil
    }

    /// Whether the text is an origin as browsers send it: a scheme, a host and an optional port.
    static func isOrigin(_ text: String) -> Bool { authority(ofOrigin: text) != nil }

    private static func authority(ofOrigin origin: String) -> String? {
        guard let scheme = ["http://", "https://"].first(where: { origin.hasPrefix($0) }) else { return nil }
        let authority = origin.dropFirst(scheme.count)
        let isFit =
            !authority.isEmpty && authority.utf8.first != UInt8(ascii: ":")
            && authority.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || "-._:[]".contains($0)) }
        return isFit ? String(authority) : nil
    }

    /// Checks access to the dashboard's page. The page contains no data; its requests are checked like others.
    ///
    /// It needs no token, which a browser could not send when it opens the page, and other sites may link to it.
    ///
    /// - Throws: `control-rejected`, or `not-found` if the control plane is disabled.
    func checkPage(_ request: Request) throws(Problem) {
        guard isEnabled else { throw Self.switchedOff }
        guard token == nil else { return }
        try checkMachine(request)
        // A frame or a subresource of another site is not a link that a user followed.
        if !says(request, "sec-fetch-mode", "navigate") || !says(request, "sec-fetch-dest", "document") {
            try checkSite(request)
        }
    }

    private func says(_ request: Request, _ name: StaticString, _ value: String) -> Bool {
        request.fields.range(of: name).map { request.head[$0].elementsEqual(value.utf8) } ?? false
    }

    private static var switchedOff: Problem {
        ProblemType.notFound("The control plane is disabled (--no-control).")
    }

    /// Both ends must be this machine. Returns the requested host and port.
    @discardableResult private func checkMachine(_ request: Request) throws(Problem) -> String {
        guard request.peer.isLoopback else {
            throw ProblemType.controlRejected("The peer \(request.peer.host) is not on this machine.")
        }
        // The host of an absolute target replaces the field (RFC 9112 §3.2.2).
        let host = request.targetAuthority ?? request.fields.combined(.host) ?? ""
        guard Authority.isLoopback(host) else {
            throw ProblemType.controlRejected("The host '\(host.prefix(100))' is not this machine. Use 127.0.0.1.")
        }
        return host
    }

    private func checkSite(_ request: Request) throws(Problem) {
        if let site = request.fields.combined(.secFetchSite), site != "same-origin", site != "none" {
            throw ProblemType.controlRejected(
                "The request comes from another site (Sec-Fetch-Site: \(site.prefix(40)))."
            )
        }
    }

    /// The token of `Bearer TOKEN`: the scheme is case-insensitive and followed by one or more spaces (RFC 9110 §11.1, §11.4).
    private static func bearerToken(_ credentials: String) -> String? {
        guard let space = credentials.firstIndex(of: " "), credentials[..<space].lowercased() == "bearer" else {
            return nil
        }
        return String(credentials[space...].drop { $0 == " " })
    }

    /// Compares in constant time.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        var difference = left.count ^ right.count
        for index in left.indices { difference |= Int(left[index] ^ (right.isEmpty ? 1 : right[index % right.count])) }
        return difference == 0
    }
}

extension Request {
    /// The host of the URL in lower case, without its port; nil without one. An IPv6 address has no brackets.
    var hostName: String? {
        // The host of an absolute target replaces the field (RFC 9112 §3.2.2).
        guard let authority = targetAuthority ?? fields.combined(.host) else { return nil }
        let isBracketed = authority.hasPrefix("[")
        return (isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }).lowercased()
    }

    /// The host and port of a target in absolute form (RFC 9112 §3.2.2); nil for any other form.
    var targetAuthority: String? {
        guard let start = head.firstIndex(of: UInt8(ascii: " ")) else { return nil }
        let target = head[(start + 1)...].prefix { $0 != UInt8(ascii: " ") }
        guard let first = target.first, first != UInt8(ascii: "/"), first != UInt8(ascii: "*") else { return nil }
        // For any other target the engine has checked that it begins with a scheme, `://` and a host.
        let authority = target.drop { $0 != UInt8(ascii: ":") }.dropFirst("://".utf8.count).prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
        }
        return String(decoding: authority, as: UTF8.self)
    }
}
