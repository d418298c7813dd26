import LarderCoding
import LarderEngine
package import LarderHTTP
import LarderTime

/// Finds the session of a bearer token (RFC 6750).
package enum Authenticator {
    /// The session of the bearer token; nil without one. Browsers cannot set fields on WebSocket and EventSource requests, so the token
    /// may be in the query there (RFC 6750 §2.3).
    ///
    /// - Throws: `invalid-token` or `token-expired`, with the challenge that RFC 6750 §3 requires.
    static func session(of request: Request, in world: World) throws(Problem) -> SessionRow? {
        var given: String?
        if let credentials = request.fields[.authorization] {
            // The scheme is case-insensitive (RFC 9110 §11.1) and followed by one or more spaces (§11.4).
            let parts = credentials.split(separator: " ")
            guard parts.count == 2, parts[0].lowercased() == "bearer", credentials.utf8.count <= 512,
                parts[1].utf8.allSatisfy({ (0x21..<0x7F).contains($0) })
            else {
                throw ProblemType.invalidToken(
                    "The Authorization field is not `Bearer` followed by one token.",
                    fields: challenge("invalid_request")
                )
            }
            given = String(parts[1])
        } else if request.path.starts(with: "/v1/live".utf8) {
            given = QueryString(parsing: Array(request.query ?? []))?.first("access_token")
        }
        guard let token = given else { return nil }
        let digest = SessionTable.digest(token)
        let session = try world.read { try $0.sessions.find(access: digest) }
        guard let session else {
            throw ProblemType.invalidToken(
                "No session has this token.",
                fields: challenge("invalid_token")
            )
        }
        if let expires = session.accessExpires, !session.isValid(at: world.clock.now) {
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
        do { return try world.read { try $0.entities.find(EntityID(.profile, user))?.name } } catch {
            // Each request of a world that cannot be read is answered with this error, and the next call reads again.
            return nil
        }
    }

    package static func challenge(_ error: String?) -> Fields {
        var fields = Fields()
        let parameters = error.map { ", error=\"\($0)\"" } ?? ""
        fields.add(.wwwAuthenticate, "Bearer realm=\"larder\"\(parameters)")
        return fields
    }
}
