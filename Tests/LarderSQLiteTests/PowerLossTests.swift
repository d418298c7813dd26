import TestSupport
import Testing

@testable import FileFaults
@testable import LarderSQLite

@Suite("SQLite: power loss", .oneMinute)
struct PowerLossTests {
    /// A small generator with a fixed sequence for each seed (SplitMix64).
    struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// Inserts 40 rows, one in each transaction, and loses power.
    ///
    /// - Returns: the rows that were found afterwards.
    private func rows(_ durability: Database.Durability, seed: UInt64, checkpointPages: Int32) throws -> [Int64] {
        let directory = try ScratchDirectory()
        let path = directory.path + "/db"
        let plan = FaultPlan(recordsSyncs: true)
        var options = Database.Options()
        options.durability = durability
        options.checkpointPages = checkpointPages
        do {
            let database = try Database(.file(path), options, faults: plan)
            try database.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, y)")
            for _ in 1...40 { try database.execute("INSERT INTO t (y) VALUES (zeroblob(3000))") }
            plan.kill()
        }
        var generator = Generator(state: seed)
        try plan.losePower(using: &generator)
        let database = try Database(.file(path))
        #expect(try database.integrityProblems() == [], "seed \(seed)")
        guard try database.integer("SELECT count(*) FROM sqlite_schema") > 0 else { return [] }
        let count = try database.integer("SELECT count(*) FROM t")
        #expect(try count == 0 || database.integer("SELECT max(x) FROM t") == count, "seed \(seed)")
        return Array(0..<count)
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `with full durability no committed row is lost`(_ seed: UInt64) throws {
        let checkpointPages: Int32 = seed.isMultiple(of: 2) ? 10 : 16_384
        #expect(try rows(.full, seed: seed, checkpointPages: checkpointPages).count == 40, "seed \(seed)")
    }

    @Test func `with normal durability the last rows may be lost, and the database is never corrupt`() throws {
        var counts: Set<Int> = []
        for seed in 1...30 as ClosedRange<UInt64> {
            counts.insert(try rows(.normal, seed: seed, checkpointPages: seed.isMultiple(of: 2) ? 10 : 16_384).count)
        }
        // The simulation loses what was not synced: nothing, everything, or a part.
        #expect(counts.contains(0) && counts.contains(40) && counts.count > 3, "\(counts)")
    }

    @Test func `an unsynced name may be lost, and one that was removed may come back`() throws {
        var generator = Generator(state: 7)
        var outcomes: Set<[[UInt8]?]> = []
        for _ in 0..<200 {
            var files = UnsyncedFiles()
            let new = files.open("/d/new", nil, isJournal: false)
            files.write(new, at: 0, [1])
            files.sync(new)
            _ = files.open("/d/old", [2], isJournal: false)
            files.delete("/d/old")
            outcomes.insert(files.afterPowerLoss(using: &generator).map(\.content))
            files.syncDirectory("/d")
            #expect(files.afterPowerLoss(using: &generator).map(\.content) == [[1], nil])
        }
        #expect(outcomes == [[[1], nil], [[1], [2]], [nil, nil], [nil, [2]]])
    }

    @Test func `of an unsynced write any sectors may survive`() {
        var generator = Generator(state: 7)
        var outcomes: Set<[Bool]> = []
        for _ in 0..<100 {
            var files = UnsyncedFiles()
            let file = files.open("/d/f", [UInt8](repeating: 0, count: 1_024), isJournal: false)
            files.write(file, at: 256, [UInt8](repeating: 1, count: 512))
            let content = files.afterPowerLoss(using: &generator).first?.content ?? []
            #expect(content.count == 1_024 && content[0] == 0 && content[1_023] == 0)
            outcomes.insert([content[300] == 1, content[700] == 1])
        }
        #expect(outcomes.count == 4)
    }
}
