import Glibc
import TestSupport
import Testing

@testable import FileFaults
@testable import LarderSQLite

@Suite("SQLite: planned faults", .oneMinute)
struct FaultPlanTests {
    /// Two rows in one transaction, and then two more.
    private func work(_ database: Database, _ committed: inout Int64) throws {
        try database.execute("CREATE TABLE IF NOT EXISTS t (x)")
        for _ in 0..<2 {
            try database.transaction {
                try database.execute("INSERT INTO t VALUES (1)")
                try database.execute("INSERT INTO t VALUES (zeroblob(10000))")
            }
            committed += 2
        }
    }

    private func rows(_ path: String) throws -> Int64 {
        let database = try Database(.file(path))
        #expect(try database.integrityProblems() == [])
        guard try database.integer("SELECT count(*) FROM sqlite_schema") > 0 else { return 0 }
        return try database.integer("SELECT count(*) FROM t")
    }

    @Test(arguments: [FaultPlan.Action.kill, .tear])
    func `after a kill at any step a transaction is stored completely or not at all`(_ action: FaultPlan.Action) throws
    {
        let whole = try ScratchDirectory()
        let plan = FaultPlan()
        var all: Int64 = 0
        do { try work(try Database(.file(whole.path + "/db"), faults: plan), &all) }
        #expect(try rows(whole.path + "/db") == 4)
        #expect(plan.stepCount > 20)
        for step in 1...plan.stepCount {
            let directory = try ScratchDirectory()
            let plan = FaultPlan()
            plan.arm(action, atStep: step)
            var committed: Int64 = 0
            do {
                try work(try Database(.file(directory.path + "/db"), faults: plan), &committed)
            } catch {
                #expect(plan.isDead)
            }
            let found = try rows(directory.path + "/db")
            #expect(found == committed || found == committed + 2, "step \(step)")
        }
    }

    @Test func `a step fails once or until heal, and its transaction is rolled back`() throws {
        let directory = try ScratchDirectory()
        let plan = FaultPlan()
        let database = try Database(.file(directory.path + "/db"), faults: plan)
        try database.execute("CREATE TABLE t (x)")
        for step in 1...3 {
            plan.arm(.fail(.full), atStep: step)
            let error = try #require(throws: SQLiteError.self) {
                try database.transaction { try database.execute("INSERT INTO t VALUES (1)") }
            }
            #expect(error.code == .full)
        }
        plan.arm(.failOn(.full), atStep: 1)
        for _ in 0..<2 {
            #expect(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (1)") }
            #expect(try database.integer("SELECT count(*) FROM t") == 0)
        }
        plan.heal()
        try database.execute("INSERT INTO t VALUES (1)")
        #expect(try database.integer("SELECT count(*) FROM t") == 1)
    }

    @Test func `a second connection to a file does not release the locks of the first`() throws {
        let directory = try ScratchDirectory()
        let first = try Database(.file(directory.path + "/db"))
        try first.execute("CREATE TABLE t (x)")
        #expect(try first.integer("SELECT count(*) FROM t") == 0)
        let second = try Database(.file(directory.path + "/db"))
        let descriptor = unsafe open(directory.path + "/db", O_RDWR)
        defer { close(descriptor) }
        // A lock of an open file description conflicts with those of any process, this one too (fcntl(2)).
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        let getLock: Int32 = 36
        #expect(unsafe fcntl(descriptor, getLock, &lock) == 0)
        #expect(lock.l_type != Int16(F_UNLCK))
        #expect(try second.integer("SELECT count(*) FROM t") == 0)
    }

    @Test func `a renamed file counts as moved, and a missing file is not created without the option`() throws {
        let directory = try ScratchDirectory()
        let database = try Database(.file(directory.path + "/db"))
        try database.execute("CREATE TABLE t (x)")
        #expect(!database.hasMoved)
        unsafe rename(directory.path + "/db", directory.path + "/db2")
        #expect(database.hasMoved)
        unsafe rename(directory.path + "/db2", directory.path + "/db")
        #expect(!database.hasMoved)
        var options = Database.Options()
        options.creates = false
        let error = try #require(throws: SQLiteError.self) { try Database(.file(directory.path + "/none"), options) }
        #expect(error.code == .cannotOpen)
        #expect(!Database.fileExists(directory.path + "/none"))
    }

    @Test func `growth beyond the limited room fails, and truncation returns room`()
        throws
    {
        let directory = try ScratchDirectory()
        let plan = FaultPlan()
        let database = try Database(.file(directory.path + "/db"), faults: plan)
        try database.execute("CREATE TABLE t (x)")
        plan.limitRoom(to: 100_000)
        let error = #expect(throws: SQLiteError.self) {
            for _ in 0..<100 { try database.execute("INSERT INTO t VALUES (zeroblob(10000))") }
        }
        #expect(error?.code == .full)
        #expect((3...10).contains(try database.integer("SELECT count(*) FROM t")))
        plan.limitRoom(to: 1_000_000)
        // The log is longer than the growth of the file.
        #expect(try database.checkpoint())
        #expect(try #require(plan.room) > 1_000_000)
        plan.limitRoom(to: nil)
        for _ in 0..<100 { try database.execute("INSERT INTO t VALUES (zeroblob(10000))") }
    }
}
