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
        var reader = BodyReader(try call.jsonObject())
        reader.require("handle", "password")
        let handle = reader.string("handle", length: 1...64)
        let password = reader.string("password", length: 1...256)
        try reader.check()
        guard let handle, let password else {
            preconditionFailure("check() throws when a required member is missing.")
        }
        let world = call.world
        guard password == world.settings.password else { throw wrongCredentials }
        let tokens = Tokens(world)
        let body = try call.write { store, commit in
            guard let user = try store.profiles.row(handle: handle) else { throw wrongCredentials }
            try store.sessions.deleteExpired(at: commit.now)
            try store.sessions.add(user: user, tokens.grant, at: commit.now)
            return try tokens.json(user: user, store)
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
        var reader = BodyReader(try call.jsonObject())
        reader.require("refreshToken")
        let token = reader.string("refreshToken", length: 1...512)
        try reader.check()
        guard let token else { preconditionFailure("check() throws when a required member is missing.") }
        let world = call.world
        let tokens = Tokens(world)
        let digest = SessionTable.digest(token)
        let (body, ended) = try call.write { store, commit -> ([UInt8]?, Int64?) in
            guard let held = try store.sessions.find(refresh: digest) else { return (nil, nil) }
            if held.isReuse(at: commit.now, grace: world.settings.refreshTokenGrace) {
                // One of two holders of the token is an attacker, and the server cannot tell which (RFC 9700 §4.14.2).
                try store.sessions.delete(held.session)
                return (nil, held.session)
            }
            if let expires = held.expires, commit.now >= expires { return (nil, nil) }
            try store.sessions.exchange(held, for: tokens.grant, at: commit.now)
            return (try tokens.json(user: held.user, store), nil)
        }
        if let ended { world.live.end(session: ended) }
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
        world.live.end(session: session.row)
        return .noContent
    }

    /// A new pair of tokens.
    private struct Tokens {
        let access: String
        let refresh: String
        let accessExpires: WallTime
        let refreshExpires: WallTime
        let lifetime: Int64

        init(_ world: World) {
            access = world.newSecret(prefix: "at_")
            refresh = world.newSecret(prefix: "rt_")
            let now = world.clock.now
            accessExpires = now + world.settings.accessTokenLifetime
            refreshExpires = now + world.settings.refreshTokenLifetime
            lifetime = world.settings.accessTokenLifetime.components.seconds
        }

        var grant: NewGrant {
            NewGrant(
                access: access,
                accessExpires: accessExpires,
                refresh: refresh,
                refreshExpires: refreshExpires
            )
        }

        func json(user: Int64, _ store: Store) throws -> [UInt8] {
            var json =
                JSONValue.members([
                    "tokenType": .string("Bearer"), "accessToken": .string(access), "expiresIn": .integer(lifetime),
                    "expiresAt": accessExpires.json, "refreshToken": .string(refresh),
                    "refreshExpiresAt": refreshExpires.json,
                ]).encoded.dropLast() + Array(",\"user\":".utf8)
            _ = try store.profiles.append(user, to: &json)
            return json + [UInt8(ascii: "}")]
        }
    }
}
