import Foundation
import Larder
import LarderTime
import TestSupport
import Testing

// The example of the article "Reads and freshness", word by word.
protocol RecordStorage: Sendable {
    func record(_ key: String) throws -> DiskRecord?
    func put(_ record: DiskRecord) throws
}
struct RecordsOnDisk: RecordStorage {
    let disk: DiskStore
    func record(_ key: String) throws -> DiskRecord? { try disk.record(key) }
    func put(_ record: DiskRecord) throws { try disk.put(record) }
}
struct RecordsInMemory: RecordStorage {
    let tier = MemoryTier<String, DiskRecord>(limits: .init(count: 1_000))
    func record(_ key: String) throws -> DiskRecord? { tier[key] }
    func put(_ record: DiskRecord) throws { tier.store(record, for: record.key) }
}
extension RecordStorage {
    func bytes(
        _ key: String,
        lifetime: Duration = .seconds(86_400),
        at now: WallTime,
        load: () async throws -> [UInt8]
    ) async throws -> [UInt8] {
        if let known = try record(key), now < known.expiresAt { return known.payload }
        let payload = try await load()
        try put(DiskRecord(key, payload: payload, recordedAt: now, expiresAt: now + lifetime))
        return payload
    }
}
// The end of the example.

@Suite("The example of a storage of one's own", .oneMinute)
struct RecordStorageExampleTests {
    @Test func `both storages answer for a day without a call, and then call again`() async throws {
        let directory = try ScratchDirectory()
        let clock = ManualClock()
        let disk = try DiskStore(DiskStore.Configuration(directory: directory.path + "/records", clock: clock))
        let storages: [any RecordStorage] = [RecordsInMemory(), RecordsOnDisk(disk: disk)]
        for storage in storages {
            let start = clock.now
            func ask(_ key: String, after seconds: Int, _ answer: UInt8) async throws -> [UInt8] {
                try await storage.bytes(key, at: start + .seconds(seconds)) { [answer] }
            }
            #expect(try await ask("user_007", after: 0, 1) == [1])
            #expect(try await ask("user_008", after: 0, 2) == [2])
            #expect(try await ask("user_007", after: 86_399, 3) == [1])
            #expect(try await ask("user_007", after: 86_400, 4) == [4])
            #expect(try await ask("user_007", after: 86_401, 5) == [4])
        }
    }

    @Test func `the article has this example`() throws {
        let source = try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8)
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let article = try String(
            contentsOf: root.appendingPathComponent("Documentation/Larder.docc/ReadsAndFreshness.md"),
            encoding: .utf8
        )
        let start = try #require(source.firstRange(of: "protocol RecordStorage"))
        let end = try #require(source.firstRange(of: "// The end of the example."))
        #expect(article.contains(source[start.lowerBound..<end.lowerBound]))
    }
}
