import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Database claim", .oneMinute)
struct DatabaseClaimTests {
    @Test func `a database is served by one server at a time, and by the next after a stop`() async throws {
        let directory = try ScratchDirectory()
        var configuration = MockBackend.Configuration()
        configuration.databasePath = directory.path + "/world.sqlite"
        let first = try MockBackend.start(.empty, configuration)
        let error = #expect(throws: DatabaseInUse.self) { try MockBackend.start(.empty, configuration) }
        #expect("\(try #require(error))".contains("world.sqlite is served by another process"))
        // A check needs no claim.
        #expect(try DatabaseCheck.run(directory.path + "/world.sqlite").isSound)
        await first.stop()
        let second = try MockBackend.start(.empty, configuration)
        await second.stop()
    }

    @Test func `a released claim is free although a child process was forked meanwhile`() throws {
        let directory = try ScratchDirectory()
        let path = directory.path + "/world.sqlite"
        let claim = try DatabaseClaim(path)
        let twin = try DescriptorTwin(of: path + "-lock")
        #expect(throws: DatabaseInUse.self) { try DatabaseClaim(path) }
        claim.release()
        try DatabaseClaim(path).release()
        withExtendedLifetime(twin) {}
    }
}
