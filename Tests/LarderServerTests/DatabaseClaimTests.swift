import TestSupport
import Testing

@testable import LarderServer

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

@Suite("Database claim")
struct DatabaseClaimTests {
    @Test func `a database is served by one at a time, and by the next when that has stopped`() async throws {
        var template = Array("/tmp/larder-claim-XXXXXX".utf8CString)
        let directory = try #require(unsafe mkdtemp(&template).map { unsafe String(cString: $0) })
        var configuration = MockBackend.Configuration()
        configuration.databasePath = directory + "/world.sqlite"
        let first = try MockBackend.start(.empty, configuration)
        let error = #expect(throws: DatabaseInUse.self) { try MockBackend.start(.empty, configuration) }
        #expect("\(try #require(error))".contains("world.sqlite is served by another process"))
        // Looking is not serving.
        #expect(try DatabaseCheck.run(directory + "/world.sqlite").isSound)
        await first.stop()
        let second = try MockBackend.start(.empty, configuration)
        await second.stop()
        for end in ["", "-wal", "-shm", "-lock"] { unsafe unlink(directory + "/world.sqlite" + end) }
        unsafe rmdir(directory)
    }
}
