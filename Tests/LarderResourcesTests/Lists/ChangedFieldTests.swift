import LarderResources
import LarderTesting
import SDKTestSupport
import TestSupport
import Testing

@Suite("Changed fields", .oneMinute)
struct ChangedFieldTests {
    private struct Profile: CacheEntity {
        struct Address: Codable, Hashable, Sendable {
            var city: String
            var lines: [String: Int]
        }

        static let entityType = "profile"
        var id = "ana"
        var name: String
        var bio: String?
        var address = Address(city: "Riga", lines: ["a": 1, "b": 2, "c": 3])

        enum CodingKeys: String, CodingKey {
            case id
            case name = "displayName"
            case bio
            case address
        }
    }

    private struct Bare: CacheEntity {
        static let entityType = "bare"
        var id: Int
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(id)
        }
    }

    let scene = CacheScene()
    let source = PageSource()

    @Test func `an entity names the members of its encoding that have changed, appeared or gone`() throws {
        let old = Profile(name: "Ana", bio: "likes lists")
        var new = old
        #expect(try new.changedFields(since: old).isEmpty)
        new.name = "Ana M."
        #expect(try new.changedFields(since: old) == ["displayName"])
        new.bio = nil
        new.address.lines["b"] = 4
        #expect(try new.changedFields(since: old) == ["displayName", "bio", "address"])
        #expect(try old.changedFields(since: new) == ["displayName", "bio", "address"])
    }

    @Test func `an entity without members says that it has none`() {
        #expect {
            try Bare(id: 1).changedFields(since: Bare(id: 2))
        } throws: { error in
            (error as? LarderError)?.code == .encoding
        }
    }

    @Test func `a list names the fields of the items that it has kept`() throws {
        let old = [Note(1, "one"), Note(2, "two"), Note(3, "three")]
        let new = [Note(4, "four"), Note(2, "two"), Note(1, "uno", revision: 2)]
        #expect(try new.changedFields(since: old) == ["1": ["text", "revision"]])
    }

    @Test func `an observer of a timeline learns which fields have changed since its last snapshot`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        source.prepare([3, 2, 1])
        let seen = SequenceRecorder(cache.timeline(feed).snapshots)
        await seen.wait { $0.last?.items.count == 3 }
        #expect(try seen.elements.last?.changedFields() == [:])
        try await cache.update { update in
            update.put(Note(2, "edited", revision: 2))
            update.put(Note(1, "", revision: 2))
        }
        var last = try #require(await seen.wait { $0.last?.items.last?.revision == 2 }.last)
        #expect(try last.changedFields() == ["2": ["text", "revision"], "1": ["revision"]])
        // Only what has changed since the last snapshot is named.
        try await cache.update { $0.put(Note(3, "again", revision: 2)) }
        last = try #require(await seen.wait { $0.last?.items.first?.text == "again" }.last)
        #expect(try last.changedFields() == ["3": ["text", "revision"]])
    }
}
