import Foundation
import Glibc
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite", .oneMinute)
struct DatabaseTests {
    struct Failure: Error {}

    @Test func `stored values are read back unchanged`() throws {
        let database = try Database(.memory)
        let statement = try database.prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6")
        try statement.bind(Int64.min, at: 1)
        try statement.bind("a\u{0}b😀", at: 2)
        try statement.bind("", at: 3)
        try statement.bind([UInt8](), at: 4)
        try statement.bind([0, 255] as [UInt8], at: 5)
        try statement.bindNull(at: 6)
        #expect(try statement.step())
        #expect(statement.int64(0) == .min)
        #expect(statement.text(1) == "a\u{0}b😀")
        #expect(!statement.isNull(2) && statement.text(2) == "")
        #expect(!statement.isNull(3) && statement.bytes(3) == [])
        #expect(statement.bytes(4) == [0, 255])
        #expect(statement.isNull(5))
    }

    @Test func `a statement that is not in use holds no value`() throws {
        let statement = try Database(.memory).prepare("SELECT ?1")
        try statement.bind([1], at: 1)
        #expect(try statement.step() && !statement.isNull(0))
        statement.reset()
        #expect(try statement.step() && statement.isNull(0))
    }

    @Test func `a transaction that throws is rolled back, and a nested one reverts only its own changes`() throws {
        let database = try Database(.memory)
        try database.execute("CREATE TABLE t (x)")
        #expect(throws: Failure.self) {
            try database.transaction {
                try database.execute("INSERT INTO t VALUES (1)")
                throw Failure()
            }
        }
        try database.transaction {
            try database.execute("INSERT INTO t VALUES (2)")
            #expect(throws: Failure.self) {
                try database.transaction {
                    try database.execute("INSERT INTO t VALUES (3)")
                    throw Failure()
                }
            }
        }
        #expect(try database.integer("SELECT sum(x) FROM t") == 2)
    }

    @Test func `the file and its journals are readable by their owner only`() throws {
        let directory = try ScratchDirectory()
        let database = try Database(.file(directory.path + "/db"))
        try database.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        #expect(try directory.mode("db") == 0o600)
        #expect(try directory.mode("db-wal") == 0o600)
        #expect(try directory.mode("db-shm") == 0o600)
    }

    @Test func `a page number beyond all pages, which damage has made, is not reported as a full disk`() throws {
        let directory = try ScratchDirectory()
        let path = directory.path + "/db"
        var options = Database.Options()
        options.reclaimsPages = true
        do {
            let database = try Database(.file(path), options)
            try database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, payload BLOB)")
            try database.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                INSERT INTO t SELECT i, zeroblob(4591) FROM n
                """
            )
            #expect(try database.checkpoint())
        }
        // Eight rows are in a leaf, with 499 or 500 bytes of each and then the number of the page with the rest.
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var count = 0
        for page in stride(from: 4_096, to: bytes.count, by: 4_096) where bytes[page] == 0x0D {
            for cell in 0..<Int(bytes[page + 4]) {
                let start = page + Int(bytes[page + 8 + 2 * cell]) << 8 + Int(bytes[page + 9 + 2 * cell])
                guard bytes[start] >= 0x80, bytes[start + 2] % 4 == 1 else { continue }
                let size = Int(bytes[start] & 0x7F) << 7 + Int(bytes[start + 1])
                let number = start + 3 + 489 + (size - 489) % 4_092
                bytes.replaceSubrange(number..<(number + 4), with: [0xD6, 0x1A, 0xE3, 0xA0])
                count += 1
            }
        }
        #expect(count == 10)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        // Rows with such a number move to other pages.
        let database = try Database(.file(path), options)
        try database.execute("DELETE FROM t WHERE id % 4 <> 1")
        #expect(try database.integer("SELECT count(*) FROM t") == 10)
    }

    @Test func `a constraint violation names its kind`() throws {
        let database = try Database(.memory)
        try database.execute("CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)")
        let error = try #require(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (1)") }
        #expect(error.code == .constraint)
        #expect(error.extendedCode == 2_067)
    }

    @Test func `a second writer fails after the busy timeout`() throws {
        let directory = try ScratchDirectory()
        var options = Database.Options()
        options.busyTimeoutMilliseconds = 0
        let first = try Database(.file(directory.path + "/db"), options)
        try first.execute("CREATE TABLE t (x)")
        let second = try Database(.file(directory.path + "/db"), options)
        try first.transaction {
            try first.execute("INSERT INTO t VALUES (1)")
            let error = try #require(throws: SQLiteError.self) {
                try second.transaction { try second.execute("INSERT INTO t VALUES (2)") }
            }
            #expect(error.code == .busy)
        }
    }

    @Test func `a file that is not a database is rejected with a remedy`() throws {
        let directory = try ScratchDirectory()
        let path = directory.path + "/db"
        let descriptor = unsafe open(path, O_CREAT | O_WRONLY, 0o600)
        let junk = [UInt8](repeating: 0x41, count: 4_096)
        _ = unsafe write(descriptor, junk, junk.count)
        close(descriptor)
        let error = try #require(throws: SQLiteError.self) { _ = try Database(.file(path)) }
        #expect(error.code == .notADatabase)
        #expect(error.description.contains("move it away"))
    }

    @Test func `each migration runs once, and a newer schema is rejected`() throws {
        let database = try Database(.memory)
        let one = Migration("one") { database throws(SQLiteError) in try database.execute("CREATE TABLE a (x)") }
        let two = Migration("two") { database throws(SQLiteError) in try database.execute("CREATE TABLE b (x)") }
        try Migrations(applicationID: 7, [one]).run(on: database)
        try Migrations(applicationID: 7, [one, two]).run(on: database)
        try Migrations(applicationID: 7, [one, two]).run(on: database)
        #expect(try database.integer("PRAGMA user_version") == 2)
        #expect(throws: MigrationError.self) { try Migrations(applicationID: 7, [one]).run(on: database) }
        #expect(throws: MigrationError.self) { try Migrations(applicationID: 8, [one, two]).run(on: database) }
    }

    @Test func `a failed migration leaves the schema of the previous step`() throws {
        let database = try Database(.memory)
        let good = Migration("good") { database throws(SQLiteError) in try database.execute("CREATE TABLE a (x)") }
        let bad = Migration("bad") { database throws(SQLiteError) in
            try database.execute("CREATE TABLE b (x)")
            try database.execute("CREATE TABLE a (x)")
        }
        #expect(throws: MigrationError.self) { try Migrations(applicationID: 7, [good, bad]).run(on: database) }
        #expect(try database.integer("PRAGMA user_version") == 1)
        #expect(try database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'b'") == 0)
    }
}
