import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderTesting
import LarderTransport
import TestSupport
import Testing

@Suite("Freshness of the features", .oneMinute)
struct FreshnessTableTests {
    /// What a table says of a demand: class, criterion, level.
    private static func words(_ demand: Freshness.Demand) -> String {
        switch demand {
        case .named(let name):
            return "\(name.rawValue) | " + words([Freshness.Class: Freshness.Rule].standard[name] ?? .timeToLive(.zero))
        case .bySource(let name): return "\(name.rawValue) | as the server states | best effort"
        case .rule(let rule): return "\(rule.stretchClass?.rawValue ?? "–") | " + words(rule)
        }
    }

    private static func words(_ rule: Freshness.Rule) -> String {
        var text = words(rule.criterion)
        for (field, time) in rule.fieldLifetimes.sorted(by: { $0.key < $1.key }) {
            text += "; `\(field)` \(time.components.seconds) s"
        }
        switch rule.level {
        case .bestEffort: return text + " | best effort"
        case .boundedStaleness(let bound):
            return text + " | asked for again within \(bound.components.seconds) s while observed"
        case .validated: return text + " | never shown stale"
        }
    }

    private static func words(_ criterion: Freshness.Criterion) -> String {
        switch criterion {
        case .timeToLive(let time): "\(time.components.seconds) s"
        case .source(let time): "as the server states, otherwise \(time.components.seconds) s"
        case .version: "no newer version known"
        case .feed(_, let time): "change feed caught up within \(time.components.seconds) s"
        case .all(let criteria): criteria.map(words).joined(separator: " and ")
        case .any(let criteria): criteria.map(words).joined(separator: " or ")
        }
    }

    private func client(_ transport: ScriptedTransport) async throws -> (LarderClient, String) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.services = .none
        configuration.followsLive = false
        return (try await LarderClient(server: "http://test", account: "ana", directory: path, configuration), path)
    }

    @Test func `the documented table has every method with its class and rule`() async throws {
        let (client, path) = try await client(ScriptedTransport(script: []))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let rows: [(String, Freshness.Demand)] = [
            ("profiles.resource", client.profiles.resource("1").freshness),
            ("feed.newest", client.feed.newest.freshness), ("feed.timeline", client.feed.newest.freshness),
            ("feed.post", client.feed.post("1").freshness),
            ("search.postList", client.search.postList("a").freshness),
            ("search.posts", client.search.postList("a").freshness),
            ("search.peopleList", client.search.peopleList("a").freshness),
            ("search.people", client.search.peopleList("a").freshness),
            ("chat.conversations", client.chat.conversations.freshness),
            ("chat.messages", client.chat.messages("1").freshness),
            ("chat.timeline", client.chat.messages("1").freshness),
            ("bank.accounts", client.bank.accounts.freshness), ("bank.account", client.bank.account("1").freshness),
            ("bank.transactions", client.bank.transactions("1").freshness),
            ("tasks.list", client.tasks.list().freshness), ("tasks.task", client.tasks.task("1").freshness),
        ]
        // Readers of one list share its rule.
        #expect(client.feed.timeline.key == client.feed.newest.key)
        #expect(client.search.posts("a").key == client.search.postList("a").key)
        #expect(client.search.people("a").key == client.search.peopleList("a").key)
        #expect(client.chat.timeline("1").key == client.chat.messages("1").key)
        client.close()
        let document = try Self.text("Documentation/Larder.docc/ReadsAndFreshness.md")
        for (method, demand) in rows {
            let row = "| `\(method)` | \(Self.words(demand)) |"
            #expect(document.contains(row), "\(row)")
        }
        #expect(try Self.readingMethods() == Set(rows.map(\.0)))
    }

    private static func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// The public members of the features that return a resource or a timeline, by the sources: `feed.newest`.
    private static func readingMethods() throws -> Set<String> {
        var methods: Set<String> = []
        for feature in ["Bank", "Chat", "Feed", "Likes", "Profiles", "Search", "Tasks"] {
            let source = try text("ClientSDK/LarderDemo/Features/\(feature).swift")
            for match in source.matches(of: /public (?:var|func) (\w+).*(?:->|:) (?:Resource|Timeline)</) {
                methods.insert("\(feature.lowercased()).\(match.1)")
            }
        }
        return methods
    }

    private func post(_ likes: Int) -> String {
        """
        {"id":"post_1","authorId":"user_1","text":"a","image":null,"createdAt":"2026-01-01T00:00:00Z","editedAt":null,\
        "likeCount":\(likes),"likedByMe":false,"version":\(likes),"updatedAt":"2026-01-01T00:00:00Z"}
        """
    }

    @Test
    func
        `the count of likes is fresh for less time than the text, and an account is never shown stale`()
        async throws
    {
        let clock = ManualClock()
        let transport = ScriptedTransport { request, number in
            if request.url.contains("/posts/") {
                return .text(self.post(number), fields: [.contentType: "application/json"])
            }
            if request.url.contains("/accounts/"), number == 1 {
                return .text(
                    """
                    {"id":"acct_1","name":"a","kind":"checking","status":"open","version":1,"updatedAt":"2026-01-01T00:00:00Z",\
                    "balance":{"minorUnits":5,"currency":"EUR"}}
                    """,
                    fields: [.contentType: "application/json"]
                )
            }
            return .failure(TransportError(.unreachable, "no network"))
        }
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.services = .none
        configuration.followsLive = false
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        let client = try await LarderClient(server: "http://test", account: "ana", directory: path, configuration)
        defer { client.close() }
        let account = client.bank.account("acct_1")
        #expect(try await client.cache.value(account).id == "acct_1")
        clock.advance(by: .seconds(16))
        let post = client.feed.post("post_1")
        _ = try await client.cache.value(post)
        clock.advance(by: .seconds(11))
        #expect(try await client.cache.value(post, .cacheFirst).likeCount == 2)
        #expect(try await client.cache.value(post, .cacheFirst, fields: ["likeCount"]).likeCount == 3)
        await #expect(throws: LarderError.self) { try await client.cache.value(account) }
    }

    @Test func `a profile is stale once a push has told a newer version, and only then`() async throws {
        let (client, path) = try await client(
            ScriptedTransport { _, number in
                .text(
                    """
                    {"id":"user_1","handle":"ana","displayName":"Ana \(number)","bio":"","location":"","avatar":null,"cover":null,\
                    "version":\(number * 2),"updatedAt":"2026-01-01T00:00:00Z"}
                    """,
                    fields: [.contentType: "application/json"]
                )
            }
        )
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try await client.profiles.profile("user_1").value?.displayName == "Ana 1")
        #expect(try await !client.received(push: ["profile": "user_1", "version": 2]), "It requests nothing.")
        #expect(try await client.profiles.profile("user_1", .cacheOnly).freshness == .fresh)
        try await client.received(push: ["profile": "user_1", "version": 3])
        #expect(try await client.profiles.profile("user_1", .cacheOnly).freshness == .stale(.olderVersion))
        #expect(try await client.profiles.profile("user_1", .cacheFirst).value?.displayName == "Ana 2")
        client.close()
    }
}
