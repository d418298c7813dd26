import LarderCoding
import LarderHTTP
import LarderTime
import Synchronization

/// Who a bearer token belongs to, remembered so that a request costs neither a digest nor a query.
///
/// Everything is forgotten when a session ends or is exchanged; expiry is checked at every use. Safe from any thread.
final class Authenticator: Sendable {
    private let known = Mutex<[UInt64: (token: [UInt8], session: SessionRow)]>([:])
    private let handles = Mutex<[Int64: String]>([:])
    private let endingCount = Atomic<UInt64>(0)
    private static let countMaximum = 10_000

    /// The session that an `Authorization` value opens.
    ///
    /// - Throws: `invalid-token` or `token-expired`, with the challenge that RFC 6750 §3 asks for.
    func session(bearing credentials: Span<UInt8>, in world: World) throws(Problem) -> SessionRow {
        guard let token = Self.token(in: credentials) else {
            throw ProblemType.invalidToken(
                "The Authorization field is not `Bearer` and one token.",
                fields: Self.challenge("invalid_request")
            )
        }
        return try session(token: token, in: world)
    }

    /// The session that a token opens; see `session(bearing:in:)`.
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

    /// The session of a token, if it is known, and how many sessions had ended when that was looked up.
    func find(_ token: [UInt8], _ key: UInt64) -> (session: SessionRow?, endings: UInt64) {
        known.withLock { known in
            guard let entry = known[key], entry.token == token else { return (nil, endings) }
            return (entry.session, endings)
        }
    }

    /// Keeps a session that was read since, unless one has ended meanwhile: it may be this one.
    func remember(_ token: [UInt8], _ key: UInt64, _ session: SessionRow, since endings: UInt64) {
        known.withLock { known in
            guard self.endings == endings else { return }
            if known.count >= Self.countMaximum { known.removeAll(keepingCapacity: true) }
            known[key] = (token, session)
        }
    }

    /// A person's handle, which does not change within a state. The store must not be held.
    func handle(of user: Int64, in world: World) -> String? {
        if let known = handles.withLock({ $0[user] }) { return known }
        // Where it cannot be read now it is nobody's for this once, and read again the next time.
        let found = try? world.read { try $0.profiles.find(user)?.members["handle"]?.string }
        guard let handle = found ?? nil else { return nil }
        handles.withLock { handles in
            if handles.count >= Self.countMaximum { handles.removeAll(keepingCapacity: true) }
            handles[user] = handle
        }
        return handle
    }

    /// Forgets every token; called while the store that ended a session is still held.
    func forgetAll() {
        known.withLock { known in
            endingCount.add(1, ordering: .releasing)
            known.removeAll(keepingCapacity: true)
        }
    }

    /// How often sessions have ended: while it stays the same, who was let in before would be again, but for the time.
    var endings: UInt64 { endingCount.load(ordering: .acquiring) }

    /// Forgets who is who: another state has taken the place of the one that was asked.
    func forgetHandles() { handles.withLock { $0.removeAll() } }

    static func challenge(_ error: String?) -> Fields {
        var fields = Fields()
        let parameters = error.map { ", error=\"\($0)\"" } ?? ""
        fields.add(.wwwAuthenticate, "Bearer realm=\"larder\"\(parameters)")
        return fields
    }

    /// The token of `Bearer <token>`; the scheme's name is compared without regard to case (RFC 9110 §11.1), and one or more
    /// spaces follow it (§11.4).
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
