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
}
