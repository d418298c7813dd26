import Foundation
import LarderHTTP
import LarderTime

@testable import LarderHTTPCache
@testable import LarderResources
@testable import LarderStorage

/// Stored rows: entries of the HTTP cache, packed operations.
func fuzzRows(_ bytes: [UInt8]) {
    if let entries = HTTPCacheEntry.decode(bytes) {
        let coded = HTTPCacheEntry.encode(entries)
        requireEqual(HTTPCacheEntry.decode(coded).map { HTTPCacheEntry.encode($0) }, coded, "Entries change.")
        for entry in entries {
            let terms = ResponseTerms(entry)
            require(terms.lifetime >= .zero && terms.age >= .zero, "\(terms)")
        }
    }
    var row = DiskOutboxRow(operation: "", idempotencyKey: "", payload: [])
    if row.unpack(bytes) {
        var again = row
        require(again.unpack(row.packed), "A packed operation cannot be unpacked.")
        requireEqual(
            [again.operation, again.scope, again.idempotencyKey],
            [row.operation, row.scope, row.idempotencyKey],
            ""
        )
        requireEqual(again.payload, row.payload, "The payload of an operation changes.")
    }
}

/// A store with entities, a list, a token and an outbox, made once.
private struct StoredFiles {
    static let count = 40
    static let times = RowTimes(fetchedAt: WallTime(seconds: 1), expiresAt: WallTime(seconds: 60))
    let directory: String
    var files: [(name: String, bytes: [UInt8])] = []

    init() throws {
        directory = "/dev/shm/larder-fuzz-\(getpid())/store"
        for isWhole in [true, false] {
            try? FileManager.default.removeItem(atPath: directory)
            let store = try DiskStore(Self.configuration(directory))
            try store.write { transaction throws in
                for index in 0..<3 {
                    try transaction.append(
                        DiskOutboxRow(operation: "o", idempotencyKey: "\(index)", payload: [UInt8(index)])
                    )
                }
                for index in 0..<Self.count { try transaction.put(Self.entity(index, version: 1)) }
                try transaction.put(
                    DiskQuery(
                        QueryKey("feed"),
                        ListMembers((0..<Self.count).map { Self.key($0) }),
                        isComplete: true,
                        times: Self.times
                    )
                )
                try transaction.setToken("t", for: "changes")
            }
            // The whole file without a log, and a file whose commits are in the log.
            if isWhole { store.suspend() }
            files = try FileManager.default.contentsOfDirectory(atPath: directory).sorted().compactMap { name in
                guard let data = FileManager.default.contents(atPath: "\(directory)/\(name)") else { return nil }
                return (name, Array(data))
            }
            if isWhole { whole = files }
        }
    }

    private(set) var whole: [(name: String, bytes: [UInt8])] = []

    static func configuration(_ directory: String) -> DiskStore.Configuration {
        var configuration = DiskStore.Configuration(directory: directory, clock: ManualClock(WallTime(seconds: 1)))
        configuration.busyTimeout = .zero
        configuration.outboxReserveBytes = 0
        return configuration
    }

    static func key(_ index: Int) -> EntityKey { EntityKey(type: "post", id: "\(index)") }

    static func payload(_ index: Int) -> [UInt8] { (0..<100).map { UInt8(truncatingIfNeeded: $0 &* index &+ index) } }

    static func entity(_ index: Int, version: Int64) -> DiskEntity {
        DiskEntity(key(index), payload: payload(index), version: version, times)
    }
}

private let stored: StoredFiles = {
    do { return try StoredFiles() } catch { fail("The store cannot be made: \(error)") }
}()

/// A damaged store. The input is a byte that chooses the state of the files, and edits of six bytes or more: a file and a kind, an
/// offset, a length. No call traps, no read returns a value that was not stored, and what is written afterwards is read back.
func fuzzDatabase(_ bytes: [UInt8]) throws {
    let stored = stored
    var files = (bytes.first ?? 0) & 1 == 0 ? stored.whole : stored.files
    var rest = bytes.dropFirst()
    while rest.count >= 6 {
        let edit = Array(rest.prefix(6))
        rest = rest.dropFirst(6)
        let index = Int(edit[0] & 0x3F) % files.count
        let count = files[index].bytes.count
        guard count > 0 else { continue }
        let offset = edit[1...3].reduce(0) { $0 << 8 | Int($1) } % count
        let length = min(Int(edit[4]), rest.count)
        switch edit[0] >> 6 {
        case 0:
            files[index].bytes.replaceSubrange(
                offset..<min(count, offset + length),
                with: rest.prefix(min(length, count - offset))
            )
            rest = rest.dropFirst(length)
        case 1: files[index].bytes.removeLast(count - offset)
        case 2: for place in offset..<min(count, offset + Int(edit[4]) * 16 + 1) { files[index].bytes[place] = edit[5] }
        default: files[index].bytes[offset] ^= 1 << (edit[5] & 7)
        }
    }
    try? FileManager.default.removeItem(atPath: stored.directory)
    try FileManager.default.createDirectory(atPath: stored.directory, withIntermediateDirectories: true)
    for file in files { try Data(file.bytes).write(to: URL(filePath: "\(stored.directory)/\(file.name)")) }
    for _ in 0..<2 { try use(DiskStore(StoredFiles.configuration(stored.directory))) }
}

private func use(_ store: DiskStore) throws {
    for index in 0..<StoredFiles.count {
        guard let entity = try store.entity(StoredFiles.key(index)) else { continue }
        requireEqual(entity.payload, StoredFiles.payload(index), "An entity was not stored like this.")
    }
    if let list = try store.list(QueryKey("feed")) {
        requireEqual(
            list.query.ids,
            (0..<StoredFiles.count).map { StoredFiles.key($0) },
            "A list was not stored like this."
        )
    }
    let token = try store.token("changes")
    require(token == nil || token == "t", "The token is '\(token ?? "")'.")
    for row in try store.read({ transaction throws in try transaction.outbox() }) {
        requireEqual(
            row.payload,
            [UInt8(truncatingIfNeeded: row.sequence - 1)],
            "An operation was not stored like this."
        )
    }
    // Damage that no read has met may still lose rows that are written beside it, until they are read and maintained.
    for version in [7, 8] as [Int64] {
        for index in 0..<StoredFiles.count {
            _ = try store.write { try $0.put(StoredFiles.entity(index, version: version)) }
        }
        for index in 0..<StoredFiles.count {
            guard let entity = try store.entity(StoredFiles.key(index)) else { continue }
            requireEqual(entity.payload, StoredFiles.payload(index), "An entity was not written like this.")
        }
        while try !store.maintain() {}
    }
    for index in 0..<StoredFiles.count { _ = try store.write { try $0.put(StoredFiles.entity(index, version: 9)) } }
    for index in 0..<StoredFiles.count {
        requireEqual(try store.entity(StoredFiles.key(index))?.version, 9, "A written entity is not read back.")
    }
}
