import Foundation
import LarderDemo
import LarderHTTP
import LarderImages
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Invalid replies: each is a typed error and keeps the cache.
enum Spoilage: String, CaseIterable, Sendable {
    case empty
    case truncated
    /// An HTML page with 200, as a captive portal sends it.
    case page
    /// The same with 404, from a proxy.
    case foreignNotFound
    case wrongType
    case null
    case array
    /// Spaces, one byte more than the limit.
    case enormous
    case notUTF8
}

/// Replies of a newer server, which must be accepted.
enum Novelty: String, CaseIterable, Sendable {
    case unknownFields
    case unknownValues
}

/// Sends requests to the real server, and damages replies.
final class SpoilingTransport: Transport {
    struct Rule: Sendable {
        var method: LarderHTTP.Method
        var path: String
        /// A required member of the reply.
        var required: String
        var spoilage: Spoilage?
        var novelty: Novelty?
        /// The number of replies to damage; nil: all.
        var count: Int?
        var change: (@Sendable (Any) -> Any)?
        /// The reply of a proxy in place of the server, before it is damaged.
        var canned: String?
    }

    private let base = SocketTransport(clock: ManualClock())
    private let rules = Mutex<[Rule]>([])
    private let spoiled = Mutex(0)

    func set(_ rules: Rule...) { self.rules.withLock { $0 = rules } }

    /// The number of damaged replies.
    var count: Int { spoiled.withLock { $0 } }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        guard let rule = take(request) else { return try await base.open(request) }
        var request = request
        // A 304 has no content to damage.
        request.fields.remove(.ifNoneMatch)
        var response =
            if let canned = rule.canned {
                TransportResponse(status: .ok, fields: [.contentType: "application/json"], body: Array(canned.utf8))
            } else {
                try await base.send(request)
            }
        spoiled.withLock { $0 += 1 }
        if let spoilage = rule.spoilage { Self.spoil(&response, spoilage, rule.required) }
        if let novelty = rule.novelty { response.body = Self.edit(response.body) { Self.renew($0, novelty) } }
        if let change = rule.change { response.body = Self.edit(response.body, change) }
        guard response.body.count <= request.bodyLimit else {
            throw TransportError(.tooLarge, "\(response.body.count) bytes")
        }
        // The real transport would have rejected a wrong Content-Length.
        response.fields.remove(.contentLength)
        return TransportStream(response)
    }

    private func take(_ request: TransportRequest) -> Rule? {
        rules.withLock { rules in
            let path = request.url.split(separator: "?").first.map(String.init) ?? ""
            guard let index = rules.firstIndex(where: { $0.method == request.method && path.contains($0.path) }) else {
                return nil
            }
            let rule = rules[index]
            guard let count = rule.count else { return rule }
            rules[index].count = count - 1
            if count == 1 { rules.remove(at: index) }
            return rule
        }
    }

    private static func spoil(_ response: inout TransportResponse, _ spoilage: Spoilage, _ required: String) {
        switch spoilage {
        case .empty: response.body = []
        case .truncated: response.body = Array(response.body.prefix(response.body.count / 2))
        case .page, .foreignNotFound:
            response.body = Array("<!doctype html><title>Sign in to FreeWifi</title>".utf8)
            response.fields.set(.contentType, "text/html; charset=utf-8")
            if spoilage == .foreignNotFound { response.status = .notFound }
        case .wrongType:
            response.body = edit(response.body) { value in
                var object = value as? [String: Any] ?? [:]
                object[required] = ["wrong": true]
                return object
            }
        case .null:
            response.body = edit(response.body) { value in
                var object = value as? [String: Any] ?? [:]
                object[required] = NSNull()
                return object
            }
        case .array: response.body = Array("[".utf8) + response.body + Array("]".utf8)
        case .enormous: response.body = [UInt8](repeating: 0x20, count: (16 << 20) + 1)
        case .notUTF8: response.body = [0xFF, 0xFE, 0x00, 0x80] + response.body
        }
    }

    private static func edit(_ body: [UInt8], _ change: (Any) -> Any) -> [UInt8] {
        guard let value = try? JSONSerialization.jsonObject(with: Data(body)),
            let data = try? JSONSerialization.data(withJSONObject: change(value))
        else { return body }
        return Array(data)
    }

    private static func renew(_ value: Any, _ novelty: Novelty) -> Any {
        if let list = value as? [Any] { return list.map { renew($0, novelty) } }
        guard let object = value as? [String: Any] else { return value }
        var renewed = object.mapValues { renew($0, novelty) }
        switch novelty {
        case .unknownFields: renewed["addedLater"] = ["a": [1, 2.5, NSNull()], "b": "c"] as [String: Any]
        case .unknownValues:
            for name in ["kind", "status"] where renewed[name] is String { renewed[name] = "brand-new" }
        }
        return renewed
    }
}

@Suite("Malformed replies, end to end", .oneMinute)
struct MalformedReplyTests {
    /// The resources that are checked.
    struct Facts: Sendable {
        var me: String
        var post: String
        var conversation: String
        var account: String
    }

    struct Endpoint: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var path: String
        var required: String
        /// Refreshes from the server. Returns the stored state before and after, one line per resource.
        var ask: @Sendable (LarderClient, Facts) async throws -> [String]
        var kept: @Sendable (LarderClient, Facts) async throws -> [String]

        init<Item: Identifiable & Sendable>(
            _ name: String,
            _ path: String,
            list: @escaping @Sendable (LarderClient, Facts) -> Resource<EntityList<Item>>
        ) {
            testDescription = name
            self.path = path
            required = "items"
            ask = { client, facts in
                try await client.cache.refresh(list(client, facts)).value?.items.map { "\($0.id)|\($0)" } ?? []
            }
            kept = { client, facts in
                try await client.cache.value(list(client, facts), .cacheOnly).items.map { "\($0.id)|\($0)" }
            }
        }

        init<Item: CacheEntity>(
            _ name: String,
            _ path: String,
            pages: @escaping @Sendable (LarderClient, Facts) -> Resource<Timeline<Item>.List>
        ) {
            testDescription = name
            self.path = path
            required = "items"
            ask = { client, facts in
                try await client.cache.refresh(pages(client, facts)).value?.items.map { "\($0.id)|\($0)" } ?? []
            }
            kept = { client, facts in
                try await client.cache.value(pages(client, facts), .cacheOnly).items.map { "\($0.id)|\($0)" }
            }
        }

        init<Item: CacheEntity & Identifiable>(
            _ name: String,
            _ path: String,
            one: @escaping @Sendable (LarderClient, Facts) -> Resource<Item>
        ) {
            testDescription = name
            self.path = path
            required = "id"
            ask = { client, facts in
                try await client.cache.refresh(one(client, facts)).value.map { ["\($0.id)|\($0)"] } ?? []
            }
            kept = { client, facts in
                let value = try await client.cache.value(one(client, facts), .cacheOnly)
                return ["\(value.id)|\(value)"]
            }
        }
    }

    static let reads = [
        Endpoint("profile", "/v1/profiles/", one: { client, _ in client.profiles.resource("user_2") }),
        Endpoint("post", "/v1/posts/", one: { client, facts in client.feed.post(facts.post) }),
        Endpoint("feed", "/v1/feed", pages: { client, _ in client.feed.newest }),
        Endpoint("accounts", "/v1/accounts", list: { client, _ in client.bank.accounts }),
        Endpoint(
            "transactions",
            "/transactions",
            list: { client, facts in client.bank.transactions(facts.account) }
        ),
        Endpoint("conversations", "/v1/conversations", list: { client, _ in client.chat.conversations }),
        Endpoint("messages", "/messages", pages: { client, facts in client.chat.messages(facts.conversation) }),
    ]

    private func facts(_ client: LarderClient) async throws -> Facts {
        Facts(
            me: try #require(client.session.userID),
            post: try #require(try await client.cache.value(client.feed.newest).items.first).id,
            conversation: try #require(try await client.cache.value(client.chat.conversations).items.first).id,
            account: try #require(
                try await client.cache.value(client.bank.accounts).items.first {
                    $0.status == "open" && $0.balance.minorUnits > 10_000
                }
            ).id
        )
    }

    private func rule(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ required: String,
        _ spoilage: Spoilage,
        count: Int? = nil
    ) -> SpoilingTransport.Rule {
        SpoilingTransport.Rule(method: method, path: path, required: required, spoilage: spoilage, count: count)
    }

    // MARK: Reads

    @Test(arguments: reads)
    func `an invalid reply is a typed error, and stored values stay readable`(_ endpoint: Endpoint) async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let facts = try await facts(client)
        let before = try await endpoint.ask(client, facts)
        #expect(!before.isEmpty)
        for spoilage in Spoilage.allCases {
            transport.set(rule(.get, endpoint.path, endpoint.required, spoilage))
            let spoiled = transport.count
            do {
                _ = try await endpoint.ask(client, facts)
                Issue.record("\(spoilage) was taken for an answer")
            } catch let error as LarderError {
                #expect(error.code == .unexpectedReply, "\(spoilage): \(error)")
            }
            #expect(transport.count > spoiled)
            #expect(try await endpoint.kept(client, facts) == before, "\(spoilage)")
        }
        transport.set()
        #expect(try await endpoint.ask(client, facts) == before)
    }

    @Test(arguments: reads)
    func `replies of a newer server are decoded as far as possible`(_ endpoint: Endpoint) async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let facts = try await facts(client)
        let before = try await endpoint.ask(client, facts)
        for novelty in Novelty.allCases {
            var rule = SpoilingTransport.Rule(method: .get, path: endpoint.path, required: endpoint.required)
            rule.novelty = novelty
            transport.set(rule)
            let after = try await endpoint.ask(client, facts)
            func ids(_ lines: [String]) -> [String] { lines.map { String($0.prefix { $0 != "|" }) } }
            #expect(ids(after) == ids(before), "\(novelty)")
            if novelty == .unknownFields { #expect(after == before) }
            #expect(try await endpoint.kept(client, facts) == after)
        }
    }

    @Test func `an unknown status of an account is kept and shown`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        var rule = SpoilingTransport.Rule(method: .get, path: "/v1/accounts", required: "items")
        rule.novelty = .unknownValues
        transport.set(rule)
        let accounts = try await client.cache.value(client.bank.accounts).items
        #expect(!accounts.isEmpty && accounts.allSatisfy { $0.status == "brand-new" && $0.kind == "brand-new" })
    }

    @Test func `an item that cannot be decoded fails the whole page`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let before = try await client.cache.value(client.feed.newest)
        #expect(scene.edit(as: "ana", #"{"bio":"nothing to do with it"}"#) == 200)
        var rule = SpoilingTransport.Rule(method: .get, path: "/v1/feed", required: "items")
        rule.change = { value in
            var page = value as? [String: Any] ?? [:]
            var items = page["items"] as? [[String: Any]] ?? []
            for index in items.indices { items[index]["text"] = "changed on the way" }
            items[items.count - 1]["likeCount"] = "many"
            page["items"] = items
            return page
        }
        transport.set(rule)
        let error = await #expect(throws: LarderError.self) { try await client.cache.refresh(client.feed.newest) }
        #expect(error?.code == .unexpectedReply)
        #expect(try await client.cache.value(client.feed.newest, .cacheOnly) == before)
    }

    // MARK: Changes

    @Test func `an invalid page of the change feed keeps the token, and no change is lost`()
        async throws
    {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        try await client.sync.catchUp()
        _ = try await client.profiles.profile("user_2")
        let handle = try scene.handle("user_2")
        for (index, spoilage) in Spoilage.allCases.enumerated() {
            #expect(scene.edit(as: handle, "{\"bio\":\"\(index)\"}") == 200)
            let token = client.sync.token
            transport.set(rule(.get, "/v1/changes", "nextToken", spoilage))
            let error = await #expect(throws: LarderError.self) { try await client.sync.catchUp() }
            #expect(error?.code == .unexpectedReply, "\(spoilage)")
            #expect(client.sync.token == token && client.sync.status.resyncs == 0)
            transport.set()
            try await client.sync.catchUp()
            #expect(try await client.profiles.profile("user_2", .cacheOnly).value?.bio == "\(index)")
        }
    }

    @Test func `changes of unknown types are skipped, and one that cannot be decoded invalidates its entity`()
        async throws
    {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        try await client.sync.catchUp()
        let before = try #require(try await client.profiles.profile("user_2").value)
        let handle = try scene.handle("user_2")
        let changes: [@Sendable ([String: Any]) -> [String: Any]] = [
            { change in change.merging(["type": "hologram", "op": "project"]) { $1 } },
            { change in change.merging(["entity": ["id": 5]]) { $1 } },
            { change in change.merging(["entity": NSNull()]) { $1 } },
        ]
        for (index, change) in changes.enumerated() {
            #expect(scene.edit(as: handle, "{\"bio\":\"\(index)\"}") == 200)
            let token = client.sync.token
            var rule = SpoilingTransport.Rule(method: .get, path: "/v1/changes", required: "items")
            rule.novelty = .unknownFields
            rule.change = { value in
                var page = value as? [String: Any] ?? [:]
                page["items"] = (page["items"] as? [[String: Any]] ?? []).map(change)
                return page
            }
            transport.set(rule)
            try await client.sync.catchUp()
            #expect(client.sync.token != token && client.sync.status.isCaughtUp)
            let shown = try await client.profiles.profile("user_2", .cacheOnly)
            #expect(shown.value?.handle == before.handle)
            #expect(shown.freshness.isFresh == (index == 0))
            transport.set()
            #expect(try await client.cache.refresh(client.profiles.resource("user_2")).value?.bio == "\(index)")
        }
    }

    // MARK: Session

    @Test func `an invalid grant neither signs in nor out`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let profile = try #require(try await client.profiles.profile("user_3").value)
        let user = try #require(client.session.userID)
        let person = String(decoding: try JSONEncoder().encode(profile), as: UTF8.self)
        scene.clock.advance(by: .seconds(100_000))
        for spoilage in Spoilage.allCases {
            // From a proxy: the refresh token was not used.
            var rule = rule(.post, "/v1/sessions/refresh", "accessToken", spoilage)
            rule.canned = "{\"accessToken\":\"x\",\"refreshToken\":\"y\",\"expiresIn\":9,\"user\":\(person)}"
            transport.set(rule)
            let error = await #expect(throws: LarderError.self) {
                try await client.cache.refresh(client.profiles.resource("user_3"))
            }
            #expect(error?.code == .unauthorized, "\(spoilage)")
            #expect((error?.cause as? LarderError)?.code == .unexpectedReply, "\(spoilage)")
            #expect(client.session.state == .signedIn(userID: user))
            #expect(try await client.profiles.profile("user_3", .cacheOnly).value == profile)
        }
        transport.set()
        #expect(try await client.cache.refresh(client.profiles.resource("user_3")).value == profile)
    }

    @Test func `a renewal with a damaged reply is repeated, and the session continues`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let user = try #require(client.session.userID)
        for spoilage in [Spoilage.truncated, .empty, .wrongType] {
            scene.clock.advance(by: .seconds(100_000))
            transport.set(rule(.post, "/v1/sessions/refresh", "accessToken", spoilage, count: 1))
            #expect(try await client.cache.refresh(client.feed.newest).value?.items.isEmpty == false)
            #expect(client.session.state == .signedIn(userID: user), "\(spoilage)")
        }
    }

    @Test func `a renewal answered by a proxy keeps the session and all data`()
        async throws
    {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe }).id
        let user = try #require(client.session.userID)
        scene.clock.advance(by: .seconds(100_000))
        var page = rule(.post, "/v1/sessions/refresh", "accessToken", .page)
        page.canned = "{}"
        transport.set(page)
        let lost = await #expect(throws: LarderError.self) { try await client.cache.refresh(client.feed.newest) }
        #expect(lost?.code == .unauthorized && client.session.state == .signedIn(userID: user))
        client.cache.outbox.pause()
        try client.likes.set(true, post)
        #expect(
            try await client.cache.value(client.feed.newest, .cacheOnly).items.first { $0.id == post }?.likedByMe
                == true
        )
        transport.set()
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        #expect(client.session.state == .signedIn(userID: user))
        #expect(try await client.cache.refresh(client.feed.post(post)).value?.likedByMe == true)
    }

    @Test func `a sign-in with an invalid reply changes nothing`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        for spoilage in Spoilage.allCases {
            transport.set(rule(.post, "/v1/sessions", "accessToken", spoilage))
            do {
                _ = try await scene.client(device: spoilage.rawValue, transport: transport)
                Issue.record("\(spoilage) was taken for a grant")
            } catch let error as LarderError {
                #expect(error.code == .unexpectedReply, "\(spoilage): \(error)")
            }
        }
        transport.set()
        let client = try await scene.client(device: Spoilage.page.rawValue, transport: transport)
        #expect(client.session.userID != nil)
    }

    // MARK: Own changes

    @Test func `an edit with an invalid reply is resolved by a read, and in doubt without one`()
        async throws
    {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let me = try #require(client.session.userID)
        for spoilage in Spoilage.allCases {
            transport.set(rule(.patch, "/v1/me", "id", spoilage))
            let saved = try await client.profiles.edit(me) { $0.bio = "saved, \(spoilage)" }
            #expect(saved.bio == "saved, \(spoilage)")
            transport.set(rule(.patch, "/v1/me", "id", spoilage), rule(.get, "/v1/profiles/", "id", spoilage))
            let error = await #expect(throws: LarderError.self) {
                try await client.profiles.edit(me) { $0.bio = "in doubt, \(spoilage)" }
            }
            #expect(error?.code == .inDoubt, "\(spoilage)")
            // Not shown before its outcome is known.
            #expect(try await client.profiles.profile(me, .cacheOnly).value?.bio == "saved, \(spoilage)")
            transport.set()
            let now = try await client.cache.refresh(client.profiles.resource(me)).value
            #expect(now?.bio == "in doubt, \(spoilage)")
        }
    }

    @Test func `a like with an invalid acknowledgement stays shown and is retried with the same key`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let events = Mutex<[LarderError]>([])
        let client = try await scene.client(
            onEvent: { event in
                switch event {
                case .postponed(_, _, let error, _), .rejected(_, _, let error): events.withLock { $0.append(error) }
                default: return
                }
            },
            transport: transport
        )
        let posts = try await client.cache.value(client.feed.newest).items
        for (spoilage, post) in zip(Spoilage.allCases, posts.filter { !$0.likedByMe }) {
            transport.set(rule(.post, "/v1/likes", "results", spoilage, count: 1))
            events.withLock { $0 = [] }
            try client.likes.set(true, post.id)
            try await client.cache.outbox.drained()
            #expect(events.withLock { $0.map(\.code) } == [.unexpectedReply], "\(spoilage)")
            #expect(client.cache.outbox.entries.isEmpty)
            let now = try #require(try await client.cache.refresh(client.feed.post(post.id)).value)
            #expect(now.likedByMe && now.likeCount == post.likeCount + 1, "\(spoilage)")
        }
    }

    @Test func `a message with an invalid acknowledgement exists once`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
        _ = try await client.cache.value(client.chat.messages(conversation))
        for spoilage in Spoilage.allCases {
            transport.set(rule(.post, "/messages", "id", spoilage, count: 1))
            try client.chat.send("sent, \(spoilage)", to: conversation)
            try await client.cache.outbox.drained()
        }
        #expect(client.cache.outbox.entries.isEmpty)
        let sent = Spoilage.allCases.map { "sent, \($0)" }
        let tablet = try await scene.client(device: "tablet")
        for device in [client, tablet] {
            let texts =
                try await device.cache.refresh(device.chat.messages(conversation)).value?.items.map(\.text) ?? []
            #expect(Array(texts.filter { sent.contains($0) }.reversed()) == sent)
        }
    }

    @Test func `a transfer with an invalid reply is in doubt, never failed, and made once`() async throws {
        let scene = try ClientScene()
        let transport = SpoilingTransport()
        let client = try await scene.client(transport: transport)
        let (from, to) = try await pair(client, scene)
        var expected = from.balance.minorUnits
        for spoilage in Spoilage.allCases {
            transport.set(rule(.post, "/v1/transfers", "id", spoilage, count: 1))
            let error = await #expect(throws: LarderError.self) {
                try await client.bank.transfer(
                    Bank.TransferOrder(from: from.id, to: to.id, Money(minorUnits: 7, currency: from.balance.currency)),
                    given: try await client.bank.validatedAccounts()
                )
            }
            #expect(error?.code == .inDoubt && (error?.cause as? LarderError)?.code == .unexpectedReply, "\(spoilage)")
            try await client.cache.outbox.drained()
            expected -= 7
            let now = try await client.cache.refresh(client.bank.accounts).value?.items.first { $0.id == from.id }
            #expect(now?.balance.minorUnits == expected, "\(spoilage)")
        }
        #expect(try scene.world.ledgerFaults().isEmpty)
    }

    /// An account with money, and one of another user in the same currency.
    private func pair(_ client: LarderClient, _ scene: ClientScene) async throws -> (from: Account, to: Account) {
        let mine = try await client.cache.value(client.bank.accounts).items
        for number in 2...20 {
            let other = try await scene.client(try scene.handle("user_\(number)"))
            let theirs = try await other.cache.value(other.bank.accounts).items
            for from in mine where from.status == "open" && from.balance.minorUnits > 10_000 {
                let to = theirs.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        throw LarderError(.notCached, "The small world has no two accounts in one currency.")
    }

    // MARK: Images

    @Test func `bytes that are not an image are a typed error, and a later fetch succeeds`() async throws {
        let backend = try MockBackend.startWithImages(people: 4, posts: 4)
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let transport = SpoilingTransport()
        var configuration = ImagePipeline.Configuration(
            transport: transport,
            disk: try DiskStore(DiskStore.Configuration(directory: directory))
        )
        configuration.retry.base = .zero
        let pipeline = ImagePipeline(configuration)
        func request(_ width: Int) -> ImageRequest {
            ImageRequest(url: "\(backend.url)/v1/images/img_ridges_19818cd2?width=\(width)")
        }
        let small = try await pipeline.image(for: request(320))
        let typed: Set<ErrorCode<ImageError>> = [
            .damaged, .unsupportedFormat, .invalid, .interrupted, .tooLarge, .status,
        ]
        for spoilage in Spoilage.allCases where ![.wrongType, .null].contains(spoilage) {
            transport.set(rule(.get, "/v1/images/", "", spoilage))
            pipeline.forgetFailures()
            do {
                _ = try await pipeline.image(for: request(640))
                Issue.record("\(spoilage) was taken for a picture")
            } catch {
                #expect(typed.contains(error.code), "\(spoilage): \(error)")
            }
            #expect(try await pipeline.image(for: request(320)) == small)
        }
        transport.set()
        pipeline.forgetFailures()
        #expect(try await pipeline.image(for: request(640)).width == 640)
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
