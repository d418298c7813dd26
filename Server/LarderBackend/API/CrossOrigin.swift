package import LarderEngine
package import LarderHTTP

/// Cross-origin access from browsers (Fetch). The API is open to pages of every origin, also to those that send credentials, because
/// it uses no cookies: a caller without a token gets only what is public.
package enum CrossOrigin {
    private static let exposed = """
        Accept-Ranges, Age, Allow, Content-Range, Date, ETag, Idempotent-Replayed, Link, Location, RateLimit, \
        RateLimit-Policy, Retry-After, WWW-Authenticate, X-Total-Count
        """

    /// What a page can read without being told so (Fetch, CORS-safelisted response-header name), and `Vary`, which is for caches.
    private static let safelisted: Set<String> = [
        "cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma",
        "vary",
    ]
    private static let known = safelisted.union(
        exposed.split(separator: ",").map { $0.drop { $0 == " " }.lowercased() }
    )

    /// The field lines that let a page of any origin read the reply to a request; empty if the request has no `Origin`.
    ///
    /// - Parameter head: that of a reply with fields of its own, which the page can read too. If it says itself who may read it, there are
    ///   no lines.
    package static func lines(for request: Request, reading head: ReplyHead? = nil) -> [UInt8] {
        guard let origin = request.fields.combined(.origin), head?["Access-Control-Allow-Origin"] == nil else {
            return []
        }
        let names = head?.fields.map(\.name).filter { !$0.lowercased().hasPrefix("access-control-") } ?? []
        let exposed = exposed(with: names)
        let lines = ["Allow-Origin: \(origin)", "Allow-Credentials: true", "Expose-Headers: \(exposed)"]
        return lines.flatMap { Array("Access-Control-\($0)\r\n".utf8) }
    }

    /// The names on the default list, and others that a page could not read.
    private static func exposed(with names: [String]) -> String {
        names.reduce(into: exposed) { list, name in if !known.contains(name.lowercased()) { list += ", " + name } }
    }

    /// Sets the fields that let a page of any origin read a reply, including its fields that are not on the default list.
    ///
    /// - Parameter origin: the page's origin, as the request says.
    package static func expose(_ names: [String], to origin: String, in fields: inout Fields) {
        fields.set(.accessControlAllowOrigin, origin)
        fields.set("Access-Control-Allow-Credentials", "true")
        fields.add(.vary, "Origin")
        fields.set(.accessControlExposeHeaders, exposed(with: names))
    }

    /// The field lines that let a page of one origin read a reply of the control plane.
    package static func lines(forOrigin origin: String) -> [UInt8] {
        var lines = Array("Access-Control-Allow-Origin: \(origin)\r\nVary: Origin\r\n".utf8)
        lines.append(contentsOf: "Access-Control-Expose-Headers: \(exposed)\r\n".utf8)
        return lines
    }

    /// The reply to a preflight: the requested headers are allowed, whatever they are.
    ///
    /// - Parameter methods: the allowed methods.
    package static func preflight(granting methods: [Method], to request: Request) -> Reply {
        reply(methods.map(\.rawValue).joined(separator: ", "), [:], to: request)
    }

    /// The reply to `OPTIONS`, for a resource with these methods.
    ///
    /// - Parameter others: further fields of the resource.
    /// - Throws: `method-not-allowed` for other methods.
    static func options(_ methods: [Method], _ request: Request, adding others: Fields = [:]) throws(Problem) -> Reply {
        let allowed = allowed(methods)
        guard request.method == .options else {
            throw ProblemType.methodNotAllowed("\(request.method) is not allowed.", fields: [.allow: allowed])
        }
        var fields = others
        fields.set(.allow, allowed)
        return reply(allowed, fields, to: request)
    }

    private static func reply(_ methods: String, _ fields: Fields, to request: Request) -> Reply {
        var fields = fields
        fields.add(.accessControlAllowMethods, methods)
        fields.add(.accessControlMaxAge, "600")
        fields.add(.cacheControl, "no-store")
        fields.add(.vary, "Origin, Access-Control-Request-Headers")
        if let wanted = request.fields.combined(.accessControlRequestHeaders) {
            fields.add(.accessControlAllowHeaders, wanted)
        }
        return Reply(status: .noContent, fields: fields)
    }

    /// The value of `Allow` for a resource with these methods.
    private static func allowed(_ methods: [Method]) -> String {
        var names = Set(methods.map(\.rawValue) + ["OPTIONS"])
        if names.contains("GET") { names.insert("HEAD") }
        return names.sorted().joined(separator: ", ")
    }
}

extension Problem {
    /// The reply to a request, which pages of any origin can read.
    package func reply(to request: Request) -> Reply { reply.adding(CrossOrigin.lines(for: request)) }
}

extension Request {
    /// Whether the request is a CORS preflight (Fetch, CORS-preflight request).
    package var isPreflight: Bool {
        method == .options && fields.range(of: "origin") != nil
            && fields.range(of: "access-control-request-method") != nil
    }

    package var preflightedMethod: Method? {
        isPreflight ? fields[.accessControlRequestMethod].map { Method($0) } : nil
    }
}
