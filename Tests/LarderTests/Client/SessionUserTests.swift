import Larder
import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import TestSupport
import Testing

@Suite("Client: values of another user", .oneMinute)
struct SessionUserTests {
    private let fixture = ClientFixture()

    /// A value that the server personalises.
    private let word = Resource<String>("word", freshness: .timeToLive(.seconds(600))) { _ in .value("a") }

    @Test func `what was read before a sign-in is stale after it, and a second sign-in of that user changes nothing`()
        async throws
    {
        let client = try await fixture.client(ScriptedTransport { _, _ in ClientFixture.json("{}") })
        func signIn(_ user: String) async throws {
            try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1", user: user) }
        }
        var freshness: Freshness? { client.cache.stored(word)?.freshness }
        _ = try await client.cache.value(word)
        #expect(freshness == .fresh)
        try await signIn("ana")
        #expect(freshness == .stale(.invalidated))
        _ = try await client.cache.value(word)
        #expect(freshness == .fresh)
        try await signIn("ana")
        try await client.session.use(token: "t", userID: "ana")
        #expect(freshness == .fresh)
        try await client.session.use(token: "t", userID: "ben")
        #expect(freshness == .stale(.invalidated))
    }
}
