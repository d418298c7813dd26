import LarderCoding
import LarderEngine
package import LarderHTTP
import LarderTime

/// Finds the session of a bearer token (RFC 6750).
package enum Authenticator {
    /// The session of the bearer token; nil without one. Browsers cannot set fields on WebSocket and EventSource requests, so the token
    /// may be in the query there (RFC 6750 §2.3).
    static func session(of request: Request, in world: World) throws(Problem) -> SessionRow? {
        if let range = request.fields.range(of: "authorization") {
            return try session(bearing: request.head.span.extracting(range), in: world)
        }
        guard request.path.starts(with: "/v1/live".utf8), let query = QueryString(parsing: Array(request.query ?? [])),
            let token = query.first("access_token")
        else { return nil }
        return try session(token: Array(token.utf8), in: world)
    }

    /// The session for an `Authorization` value.
    ///
    /// - Throws: `invalid-token` or `token-expired`, with the challenge that RFC 6750 §3 requires.
    static func session(bearing credentials: Span<UInt8>, in world: World) throws(Problem) -> SessionRow {
        guard let token = token(in: credentials) else {
            throw ProblemType.invalidToken(
                "The Authorization field is not `Bearer` followed by one token.",
                fields: challenge("invalid_request")
            )
        }
        return try session(token: token, in: world)
    }

    /// The session for a token; see `session(bearing:in:)`.
    static func session(token: [UInt8], in world: World) throws(Problem) -> SessionRow {
        let digest = SHA256.hash(token)
        let session = try world.read { try $0.sessions.find(access: digest) }
        guard let session else {
            throw ProblemType.invalidToken(
                "No session has this token.",
                fields: challenge("invalid_token")
            )
        }
        if let expires = session.accessExpires, world.clock.now >= expires {
            throw ProblemType.tokenExpired(
                "The token expired at \(expires.rfc3339()).",
                fields: challenge("invalid_token")
            )
        }
        return session
    }

    /// A person's handle; nil for an anonymous caller. The store must not be locked.
    package static func handle(of user: Int64, in world: World) -> String? {
        guard user > 0 else { return nil }
        // If it cannot be read now, nil is returned and the next call reads it again.
        let found = try? world.read { try $0.profiles.find(user)?.members["handle"]?.string }
        return found ?? nil
    }

    package static func challenge(_ error: String?) -> Fields {
        var fields = Fields()
        let parameters = error.map { ", error=\"\($0)\"" } ?? ""
        fields.add(.wwwAuthenticate, "Bearer realm=\"larder\"\(parameters)")
        return fields
    }

    /// The token of `Bearer <token>`. The scheme is case-insensitive (RFC 9110 §11.1) and followed by one or more spaces
    /// (§11.4).
    private static func token(in credentials: Span<UInt8>) -> [UInt8]? {
        let scheme: StaticString = "bearer "
        var length = scheme.utf8CodeUnitCount
        guard credentials.count > length, credentials.count <= 512 else { return nil }
        for (index, expected) in "bearer ".utf8.enumerated() where credentials[index] | 0x20 != expected | 0x20 {
            return nil
        }
        while length < credentials.count, credentials[length] == 0x20 { length += 1 }
        guard length < credentials.count else { return nil }
        var token: [UInt8] = []
        token.reserveCapacity(credentials.count - length)
        for index in length..<credentials.count {
            guard credentials[index] > 0x20, credentials[index] < 0x7F else { return nil }
            token.append(credentials[index])
        }
        return token
    }
}
