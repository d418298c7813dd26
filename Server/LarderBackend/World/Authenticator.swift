import LarderCoding
package import LarderHTTP
import LarderTime
import Synchronization

/// A cache of bearer tokens, so that a request costs neither a digest nor a query.
///
/// It is cleared when a session ends or its token is exchanged; expiry is checked at every use. Safe from any thread.
package final class Authenticator: Sendable {
    private let known = Mutex<[UInt64: (token: [UInt8], session: SessionRow)]>([:])
    private let handles = Mutex<[Int64: String]>([:])
    private let endingCount = Atomic<UInt64>(0)
    private static let countMaximum = 10_000

    /// The session for an `Authorization` value.
    ///
    /// - Throws: `invalid-token` or `token-expired`, with the challenge that RFC 6750 §3 requires.
    func session(bearing credentials: Span<UInt8>, in world: World) throws(Problem) -> SessionRow {
        guard let token = Self.token(in: credentials) else {
            throw ProblemType.invalidToken(
                "The Authorization field is not `Bearer` followed by one token.",
                fields: Self.challenge("invalid_request")
            )
        }
        return try session(token: token, in: world)
    }

    /// The session for a token; see `session(bearing:in:)`.
    func session(token: [UInt8], in world: World) throws(Problem) -> SessionRow {
        let key = ContentHash.hash64(token.span)
        let found = find(token, key)
        var session = found.session
        if session == nil {
            let digest = SHA256.hash(token)
            session = try world.read { try $0.sessions.find(access: digest) }
            if let session { remember(token, key, session, since: found.endings) }
        }
        guard let session else {
            throw ProblemType.invalidToken(
                "No session has this token.",
                fields: Self.challenge("invalid_token")
            )
        }
        if let expires = session.accessExpires, world.clock.now >= expires {
            throw ProblemType.tokenExpired(
                "The token expired at \(expires.rfc3339()).",
                fields: Self.challenge("invalid_token")
            )
        }
        return session
    }

    /// The cached session of a token, and the number of ended sessions at the time of the lookup.
    func find(_ token: [UInt8], _ key: UInt64) -> (session: SessionRow?, endings: UInt64) {
        known.withLock { known in
            guard let entry = known[key], entry.token == token else { return (nil, endings) }
            return (entry.session, endings)
        }
    }

    /// Caches a session, unless any session has ended since the lookup.
    func remember(_ token: [UInt8], _ key: UInt64, _ session: SessionRow, since endings: UInt64) {
        known.withLock { known in
            guard self.endings == endings else { return }
            if known.count >= Self.countMaximum { known.removeAll(keepingCapacity: true) }
            known[key] = (token, session)
        }
    }

    /// A person's handle, which does not change within a state. The store must not be locked.
    package func handle(of user: Int64, in world: World) -> String? {
        if let known = handles.withLock({ $0[user] }) { return known }
        // If it cannot be read now, nil is returned and the next call reads it again.
        let found = try? world.read { try $0.profiles.find(user)?.members["handle"]?.string }
        guard let handle = found ?? nil else { return nil }
        handles.withLock { handles in
            if handles.count >= Self.countMaximum { handles.removeAll(keepingCapacity: true) }
            handles[user] = handle
        }
        return handle
    }

    /// Removes every token; called while the store that ended a session is still locked.
    func forgetAll() {
        known.withLock { known in
            endingCount.add(1, ordering: .releasing)
            known.removeAll(keepingCapacity: true)
        }
    }

    /// How many sessions have ended: while it is unchanged, an earlier authentication is still valid except for expiry.
    var endings: UInt64 { endingCount.load(ordering: .acquiring) }

    /// Removes all handles, because the state was replaced.
    func forgetHandles() { handles.withLock { $0.removeAll() } }

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
