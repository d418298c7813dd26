import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Live updates and the network", .oneMinute)
struct NetworkReturnTests {
    let scene = CacheScene()

    /// A change feed and live channels that count their calls.
    private final class Server: Sendable {
        struct State {
            var reads = 0
            var opened: [LiveSync.Kind] = []
            var isBroken = false
            var channels: [Channel] = []
        }

        final class Channel: LiveSync.Channel {
            let end = ScriptedSource<Int>()

            func receive() async throws(LarderError) -> LiveSync.Message? {
                if end.requests.isEmpty {
                    do { _ = try await end.fetch(FetchContext()) } catch { throw LarderError(.offline, "cut") }
                    return .hello(token: "1")
                }
                do { _ = try await end.fetch(FetchContext()) } catch { throw LarderError(.offline, "cut") }
                return nil
            }
        }

        let state = Mutex(State())

        var feed: ChangeFeed {
            ChangeFeed(
                "test",
                read: { [weak self] token throws(LarderError) in
                    try self?.asked()
                    return ChangeFeed.Batch([], nextToken: token, hasMore: false)
                },
                present: { [weak self] () throws(LarderError) in
                    try self?.asked()
                    return ChangeFeed.Batch(nextToken: "1")
                },
                invalidateAll: { _ in }
            )
        }

        private func asked() throws(LarderError) {
            let isBroken = state.withLock { state in
                state.reads += 1
                return state.isBroken
            }
            if isBroken { throw LarderError(.offline, "no route") }
        }

        var source: LiveSync.Source {
            LiveSync.Source([.webSocket, .eventStream]) { [weak self] kind, _ throws(LarderError) in
                let channel = Channel()
                channel.end.prepare(.value(0))
                let isBroken =
                    self?.state.withLock { state in
                        state.opened.append(kind)
                        state.channels.append(channel)
                        return state.isBroken
                    } ?? true
                if isBroken { throw LarderError(.offline, "no route") }
                return channel
            }
        }

        var opened: [LiveSync.Kind] { state.withLock { $0.opened } }
        var reads: Int { state.withLock { $0.reads } }
    }

    private let server = Server()

    @Test func `without a network live updates try nothing, and they continue at once with one`()
        async throws
    {
        let cache = try scene.cache()
        scene.isOnline.withLock { $0 = false }
        let live = LiveSync(ChangeSync(server.feed, into: cache), server.source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .offline }
        for _ in 0..<10 {
            try await scene.clock.waitForSleepers()
            scene.clock.advance(by: .seconds(30))
        }
        #expect(server.opened.isEmpty && server.reads == 0)
        try await scene.clock.waitForSleepers()
        scene.isOnline.withLock { $0 = true }
        cache.networkReturned()
        // The clock does not move: no back-off has ended.
        await states.wait { $0.last == .live(.webSocket) }
        #expect(server.opened == [.webSocket])
        running.cancel()
        await running.value
    }

    @Test func `a return of the network ends the back-off, and the preferred kind is tried first`() async throws {
        let cache = try scene.cache()
        server.state.withLock { $0.isBroken = true }
        let live = LiveSync(ChangeSync(server.feed, into: cache), server.source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        for failures in 1...3 {
            await states.wait { $0.last == .waiting(failures: failures) }
            guard failures < 3 else { break }
            try await scene.clock.waitForSleepers()
            scene.clock.advance(by: .seconds(30))
        }
        let before = server.opened.count
        server.state.withLock { $0.isBroken = false }
        cache.networkReturned()
        await states.wait { $0.last == .live(.webSocket) }
        #expect(server.opened.count <= before + 1)
        running.cancel()
        await running.value
    }

    @Test func `a sync that failed without a network is repeated when it returns, and no other`()
        async throws
    {
        let cache = try scene.cache()
        let sync = ChangeSync(server.feed, into: cache)
        scene.isOnline.withLock { $0 = false }
        let error = await #expect(throws: LarderError.self) { try await sync.catchUp() }
        #expect(error?.code == .offline && server.reads == 0)
        #expect(sync.status.failure != nil && !sync.status.isCaughtUp)
        scene.isOnline.withLock { $0 = true }
        let statuses = SequenceRecorder(sync.statuses)
        cache.networkReturned()
        await statuses.wait { $0.last?.isCaughtUp ?? false }
        let reads = server.reads
        #expect(reads == 2 && sync.status.failure == nil)
        // No sync is pending any more.
        cache.networkReturned()
        try await sync.catchUp()
        #expect(server.reads == reads + 1)
    }

    @Test func `a session is not renewed while the network may not be used`() async throws {
        let transport = ScriptedTransport { request, _ in
            request.url.hasSuffix("/refresh")
                ? .text(Self.grant("new"), fields: [.contentType: "application/json"])
                : .text(Self.grant("old"), fields: [.contentType: "application/json"])
        }
        let cache = try scene.cache()
        let session = try await BearerSession(cache, HTTPSource("http://server", transport: transport), .demo)
        try await session.signIn(handle: "ana", password: "larder")
        scene.clock.advance(by: .seconds(3_600))
        scene.isOnline.withLock { $0 = false }
        let error = await #expect(throws: LarderError.self) { try await session.accessToken() }
        #expect(error?.code == .offline && transport.requests.count == 1)
        #expect(session.state == .signedIn(userID: "user_1"))
        scene.isOnline.withLock { $0 = true }
        #expect(try await session.accessToken() == "new" && transport.requests.count == 2)
        // Signing out works without a network.
        scene.isOnline.withLock { $0 = false }
        await session.signOut()
        #expect(session.state == .signedOut && transport.requests.count == 2)
    }

    @Test func `a source sends nothing while the network may not be used, and reports that`()
        async throws
    {
        let transport = ScriptedTransport { _, _ in .text("[]", fields: [.contentType: "application/json"]) }
        let source = HTTPSource("http://server", transport: transport, mayUseNetwork: { false })
        let error = await #expect(throws: LarderError.self) {
            try await source.send(.post, "/things", ["a": 1], as: [Int].self)
        }
        #expect(error?.code == .offline && (error?.cause as? TransportError)?.code == .unreachable)
        #expect(transport.requests.isEmpty)
    }

    private static func grant(_ token: String) -> String {
        """
        {"accessToken": "\(token)", "refreshToken": "again", "expiresIn": 60, "tokenType": "Bearer", "user": {"id": "user_1",
        "handle": "ana", "displayName": "Ana", "bio": "", "location": "", "avatarId": null, "version": 1,
        "followerCount": 0, "followingCount": 0, "postCount": 0, "createdAt": "2026-01-01T00:00:00Z",
        "joinedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}}
        """
    }
}
