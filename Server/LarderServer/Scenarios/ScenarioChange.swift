import LarderCoding
import LarderTime

/// A change of the demo's world that depends on what is in it. Some set variables for the client and the checks.
enum ScenarioChange: String, Sendable, CaseIterable {
    /// `ana` reads an account.
    case account
    /// The client can transfer money.
    case accounts
    /// `ana` reads the account from which money can be transferred.
    case source
    /// The amount is more than the account has.
    case tooMuch
    /// The profile is answered with a 200 that is stale, and validated by a 304 that is fresh.
    case notModified
    case clockAhead
    case clockBehind
    /// Another device deletes a post of the feed when the client reads it.
    case deletion
    case drift
    /// Another device edits the profile before the client does.
    case edit
    /// The client writes in a conversation.
    case messages
    /// The client likes a post.
    case like
    /// Another device transfers money.
    case transfer
    /// Another device deletes a post, edits one and publishes one.
    case changes
    /// Another device edits a post twice.
    case edits

    func make(in world: MockWorld, _ variables: inout [String: String]) throws {
        switch self {
        case .account:
            let id = try world.text("/v1/accounts", "/items/0/id")
            (variables["LARDER_PATH"], variables["shown"]) = ("/v1/accounts/" + id, id)
        case .accounts: try findAccounts(world, &variables)
        case .source:
            let id = variables["LARDER_FROM"] ?? ""
            (variables["LARDER_PATH"], variables["shown"]) = ("/v1/accounts/" + id, id)
        case .tooMuch: variables["LARDER_AMOUNTS"] = String((Int64(variables["balance"] ?? "") ?? 0) + 1)
        case .notModified: try answerStale(world)
        case .clockAhead: world.skewDates(of: "*", by: .seconds(86_400))
        case .clockBehind:
            world.clock.run()
            world.clock.set(to: world.clock.now - .seconds(86_400))
        case .deletion:
            let id = try world.text("/v1/feed", "/items/3/id")
            variables["deleted"] = id
            for path in ["/v1/feed", "/v1/feed/pages"] {
                let deletion = ScriptedAction("DELETE", "/v1/posts/" + id, as: try world.author(of: id))
                try world.set(ScriptedActor([deletion], when: FaultMatch("GET", path), moment: .after))
            }
        case .drift:
            var drift = SchemaDrift(seed: 7)
            drift.enlargesIntegers = false
            world.drift = drift
        case .edit:
            variables["other"] = "pear"
            let body = JSONValue.members(["bio": .string(try world.text("/v1/me", "/bio") + " pear")])
            let text = String(decoding: body.encoded, as: UTF8.self)
            let edit = ScriptedAction("PATCH", "/v1/me", as: "ana", body: text)
            try world.set(ScriptedActor([edit], when: FaultMatch("PATCH")))
        case .messages:
            let id = try world.text("/v1/conversations", "/items/0/id")
            variables["LARDER_PATH"] = "/v1/conversations/\(id)/messages"
        case .like:
            let posts = world.value("/v1/feed?limit=50")?["items"]?.array ?? []
            let post = posts.first { $0["likedByMe"] == .bool(false) }?["id"]?.string
            guard let post else { throw ScenarioError(description: "every post of the world is liked") }
            variables["LARDER_PATH"] = "/v1/posts/\(post)/like"
        case .transfer: try transfer(world, variables)
        case .changes:
            let deleted = try world.text("/v1/feed", "/items/2/id")
            try world.perform("DELETE", "/v1/posts/" + deleted, as: try world.author(of: deleted))
            try world.edit("/items/4/id", "edited elsewhere")
            try world.perform("POST", "/v1/posts", as: "person3", .members(["text": .string("written elsewhere")]))
        case .edits: for text in ["first edit", "second edit"] { try world.edit("/items/6/id", text) }
        }
    }

    private func answerStale(_ world: MockWorld) throws {
        guard let profile = world.value("/v1/profiles/user_2") else { return }
        var full = CannedReply(status: 200)
        full.body = String(decoding: profile.encoded, as: UTF8.self)
        full.contentType = "application/json"
        full.headers = ["ETag": "\"one\"", "Cache-Control": "private, max-age=0"]
        var notModified = CannedReply(status: 304)
        notModified.headers = ["ETag": "\"one\"", "Cache-Control": "private, max-age=300"]
        let read = FaultMatch("GET", "/v1/profiles/user_2")
        var conditional = read
        conditional.headers = ["If-None-Match": "\"one\""]
        try world.set(
            Fault(id: "not-modified", .respond(notModified), when: conditional),
            Fault(id: "full", .respond(full), when: read)
        )
    }

    /// Finds an account with money and one of another person in the same currency.
    private func findAccounts(_ world: MockWorld, _ variables: inout [String: String]) throws {
        for source in world.value("/v1/accounts")?["items"]?.array ?? [] {
            guard let balance = source.value(at: "/balance/minorUnits")?.integer, balance > 1_000,
                let currency = source.value(at: "/balance/currency")?.string, let from = source["id"]?.string
            else { continue }
            for person in 2...12 {
                let theirs = world.value("/v1/accounts", as: "person\(person)")?["items"]?.array ?? []
                let target = theirs.first {
                    $0.value(at: "/balance/currency")?.string == currency && $0["status"] == .string("open")
                }
                guard let to = target?["id"]?.string else { continue }
                variables["LARDER_FROM"] = from
                variables["LARDER_TO"] = to
                variables["LARDER_CURRENCY"] = currency
                variables["balance"] = String(balance)
                return
            }
        }
        throw ScenarioError(description: "no two people of the world have accounts in one currency")
    }

    private func transfer(_ world: MockWorld, _ variables: [String: String]) throws {
        func text(_ name: String) -> JSONValue { .string(variables[name] ?? "") }
        let body = JSONValue.members([
            "fromAccountId": text("LARDER_FROM"), "toAccountId": text("LARDER_TO"),
            "amount": .members(["minorUnits": .integer(125), "currency": text("LARDER_CURRENCY")]),
        ])
        try world.perform("POST", "/v1/transfers", as: "ana", body, ["Idempotency-Key": "\"other-device\""])
    }
}

extension MockWorld {
    /// The handle of the author of a post.
    fileprivate func author(of post: String) throws -> String {
        try text("/v1/profiles/" + (try text("/v1/posts/" + post, "/authorId")), "/handle")
    }

    /// Edits a post of the feed, which its author does.
    fileprivate func edit(_ pointer: String, _ words: String) throws {
        let post = try text("/v1/feed", pointer)
        try perform("PATCH", "/v1/posts/" + post, as: try author(of: post), .members(["text": .string(words)]))
    }
}
