import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Signing in, refreshing tokens, signing out.
enum SessionEndpoints {
    static let routes: [Route] = [
        Route(.post, "/v1/sessions", .ignored, signIn),
        Route(.post, "/v1/sessions/refresh", .ignored, refresh),
        Route(.delete, "/v1/sessions/current", .required, signOut),
    ]

    private static func signIn(_ call: Call) throws(Problem) -> Reply? {
        let reader = BodyReader(try call.jsonObject())
        reader.require("handle", "password")
        let handle = reader.string("handle", length: 1...64) ?? ""
        let password = reader.string("password", length: 1...256)
        try reader.check()
        let world = call.world
        guard password == world.settings.password else { throw wrongCredentials }
        let tokens = NewGrant(world)
        let body = try call.write { store, commit in
            guard let user = try store.entities.find(.profile, named: handle)?.id.row else { throw wrongCredentials }
            try store.sessions.deleteExpired(at: commit.now)
            try store.sessions.add(user: user, tokens, at: commit.now)
            return try tokens.json(user: user, world.settings, store)
        }
        return .json(.created, body)
    }

    private static var wrongCredentials: Problem {
        ProblemType.invalidCredentials(
            "No user has this handle and password.",
            fields: Authenticator.challenge(nil)
        )
    }

    private static func refresh(_ call: Call) throws(Problem) -> Reply? {
        let reader = BodyReader(try call.jsonObject())
        reader.require("refreshToken")
        let token = reader.string("refreshToken", length: 1...512) ?? ""
        try reader.check()
        let world = call.world
        let tokens = NewGrant(world)
        let digest = SessionTable.digest(token)
        let (body, ended) = try call.write { store, commit -> ([UInt8]?, Int64?) in
            guard let held = try store.sessions.find(refresh: digest) else { return (nil, nil) }
            if held.isReuse(at: commit.now, grace: world.settings.refreshTokenGrace) {
                // One of two holders of the token is an attacker, and the server cannot tell which (RFC 9700 §4.14.2).
                try store.sessions.delete(held.session)
                return (nil, held.session)
            }
            if let expires = held.expires, commit.now >= expires { return (nil, nil) }
            try store.sessions.exchange(held, for: tokens, at: commit.now)
            return (try tokens.json(user: held.user, world.settings, store), nil)
        }
        if let ended { world.live.tell(.sessionEnded, session: ended) }
        guard let body else {
            throw ProblemType.invalidRefreshToken(
                "The refresh token is unknown, has expired, or was exchanged too long ago.",
                fields: Authenticator.challenge("invalid_token")
            )
        }
        return .json(.ok, body)
    }

    private static func signOut(_ call: Call) throws(Problem) -> Reply? {
        guard let session = call.session else {
            preconditionFailure("The router requires authentication for this route.")
        }
        let world = call.world
        // Developer tokens are shared and are not revoked: only their channels are closed.
        if !session.isDeveloper {
            try call.write { store, _ in try store.sessions.delete(session.row) }
        }
        world.live.tell(.sessionEnded, session: session.row)
        return .noContent
    }

}

extension NewGrant {
    /// A new pair of tokens.
    fileprivate init(_ world: World) {
        let (now, settings) = (world.clock.now, world.settings)
        self.init(
            access: Self.secret("at_"),
            accessExpires: now + settings.accessTokenLifetime,
            refresh: Self.secret("rt_"),
            refreshExpires: now + settings.refreshTokenLifetime
        )
    }

    /// A new secret of 160 bits, URL-safe.
    ///
    /// It comes from the system's random source and never from the world's seed: several worlds and several runs share a seed
    /// and would share their secrets.
    private static func secret(_ prefix: String) -> String {
        prefix + Base64.encodeURL((0..<20).map { _ in UInt8.random(in: .min ... .max) })
    }

    fileprivate func json(user: Int64, _ settings: WorldSettings, _ store: Store) throws -> [UInt8] {
        let members = JSONValue.members([
            "tokenType": .string("Bearer"), "accessToken": .string(access),
            "expiresIn": .integer(settings.accessTokenLifetime.components.seconds), "expiresAt": accessExpires?.json,
            "refreshToken": refresh.map { .string($0) }, "refreshExpiresAt": refreshExpires?.json,
        ])
        let profile = try store.json(.profile, user)
        return members.encoded.dropLast() + Array(",\"user\":".utf8) + profile + [UInt8(ascii: "}")]
    }
}
