import Foundation
import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Testing

@Suite("Reading offline, end to end", .timeLimit(.minutes(1)))
struct OfflineReadTests {
    /// A directory that is gone when the test is.
    private final class Directory {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    @Test func `what was read is read again with the server stopped, from memory and after a restart from disk`()
        async throws
    {
        let backend = try MockBackend.startSmall()
        let directory = Directory()
        let clock = ManualClock()
        let client = try LarderClient(server: backend.url, directory: directory.path, clock: clock)
        let profile = try await client.profile("user_1")
        let feed = try await client.feed()
        #expect(profile.source == .network && profile.value.handle == "ana")
        #expect(feed.value.items.count == 20)
        await backend.stop()

        #expect(try await client.feed().source == .memory)
        let restarted = try LarderClient(server: backend.url, directory: directory.path, clock: clock)
        let cold = try await restarted.feed()
        #expect(cold.source == .disk && cold.value == feed.value && cold.staleReason == nil)

        clock.advance(by: .seconds(3_600))
        let stale = try await restarted.profile("user_1")
        #expect(stale.value == profile.value)
        #expect(stale.staleReason == .expired)
        #expect(stale.refreshError?.code == .offline)
        await #expect(throws: LarderError.self) { try await restarted.profile("user_2") }
    }

    @Test func `a stale value is revalidated, and a 304 renews its times without its bytes`() async throws {
        let backend = try MockBackend.startSmall()
        let directory = Directory()
        let clock = ManualClock()
        let client = try LarderClient(server: backend.url, directory: directory.path, clock: clock)
        let first = try await client.profile("user_1")
        clock.advance(by: .seconds(301))
        let second = try await client.profile("user_1")
        #expect(second.source == .network && second.staleReason == nil)
        #expect(second.freshness.fetchedAt == first.freshness.fetchedAt)
        #expect(second.freshness.validatedAt > first.freshness.validatedAt)
        await backend.stop()
    }

    @Test func `a clock set back makes nothing fresh`() async throws {
        let backend = try MockBackend.startSmall()
        let directory = Directory()
        let clock = ManualClock()
        let client = try LarderClient(server: backend.url, directory: directory.path, clock: clock)
        _ = try await client.profile("user_1")
        await backend.stop()
        clock.set(wall: clock.now - .seconds(86_400))
        #expect(try await client.profile("user_1").staleReason == .clockUncertain)
    }
}
