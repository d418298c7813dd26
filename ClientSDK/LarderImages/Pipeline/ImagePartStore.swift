import LarderCoding
import LarderHTTP
import LarderHTTPCache
import LarderStorage
import LarderTime

/// The parts of interrupted downloads on disk, written while they arrive, so that a download resumes after the process died.
///
/// A part is one record with the response head and records of `pieceLength` bytes each, of which only the last is ever rewritten.
/// All parts together are bounded, the oldest is removed first; parts older than their lifetime are not used and are removed. Safe
/// from any thread.
final class ImagePartStore: Sendable {
    /// The bytes received between two writes.
    static let pieceLength = 128 << 10
    private static let prefix = "image.part/"

    private let disk: DiskStore
    private let clock: any WallClock
    private let bytesMaximum: Int
    private let lifetime: Duration
    private let report: @Sendable (DiskError) -> Void

    init(
        _ disk: DiskStore,
        _ clock: any WallClock,
        bytesMaximum: Int,
        lifetime: Duration,
        report: @escaping @Sendable (DiskError) -> Void
    ) {
        self.disk = disk
        self.clock = clock
        self.bytesMaximum = bytesMaximum
        self.lifetime = lifetime
        self.report = report
    }

    /// The stored part of a file; nil if there is none that can be resumed.
    func read(_ key: ImageSourceKey) -> PartialImage? {
        let name = Self.name(key)
        do {
            var isStored = false
            let part = try disk.read { transaction -> PartialImage? in
                guard let record = try transaction.record(name) else { return nil }
                isStored = true
                guard let head = Self.head(record.payload) else { return nil }
                // After the clock was set back, ages are unknown.
                guard clock.now >= record.recordedAt, clock.now < record.expiresAt else { return nil }
                var part = PartialImage(
                    beginning: head.fields,
                    requestedAt: head.requestedAt,
                    receivedAt: head.receivedAt
                )
                for index in 0..<Self.pieces(head.bodyCount) {
                    guard let piece = try transaction.record(Self.name(name, index)) else { break }
                    let wanted = min(Self.pieceLength, head.bodyCount - index * Self.pieceLength)
                    guard piece.payload.count >= wanted else { break }
                    part.bytes += piece.payload.prefix(wanted)
                }
                part.keptCount = part.bytes.count
                return part
            }
            if let part, part.isResumable { return part }
            // An unusable part is not read again.
            if isStored { remove(key) }
        } catch {
            report(DiskError(error))
        }
        return nil
    }

    /// Writes the bytes that are not on disk yet; false if the part is not kept. Parts that cannot be resumed are not written.
    ///
    /// - Parameter isWanted: asked within the transaction; false: nothing is written.
    func write(_ part: inout PartialImage, for key: ImageSourceKey, if isWanted: () -> Bool) -> Bool {
        guard part.isResumable, part.bytes.count <= bytesMaximum else { return false }
        guard part.bytes.count > part.keptCount else { return true }
        let name = Self.name(key)
        let (start, bytes, now) = (part.keptCount, part.bytes, clock.now)
        let expires = now + lifetime
        let entry = HTTPCacheEntry(
            bodyID: "part",
            bodyCount: bytes.count,
            status: .ok,
            fields: part.fields,
            selectors: [],
            requestedAt: part.requestedAt,
            receivedAt: part.receivedAt
        )
        let tag = part.entityTag
        do {
            let isWritten = try disk.write { transaction -> Bool in
                guard isWanted() else { return false }
                // Another process may have replaced the part with another file's: then all pieces are written again.
                let old = try transaction.read { try $0.record(name) }.flatMap { Self.head($0.payload) }
                let isSame = old.map { $0.entityTag == tag && $0.bodyCount >= start } ?? (start == 0)
                let first = isSame ? start / Self.pieceLength : 0
                for index in first..<Self.pieces(bytes.count) {
                    let end = min(bytes.count, (index + 1) * Self.pieceLength)
                    let piece = Array(bytes[(index * Self.pieceLength)..<end])
                    try transaction.put(
                        DiskRecord(Self.name(name, index), payload: piece, recordedAt: now, expiresAt: expires)
                    )
                }
                let head = HTTPCacheEntry.encode([entry])
                try transaction.put(DiskRecord(name, payload: head, recordedAt: now, expiresAt: expires))
                try makeRoom(for: name, bytes.count, now, transaction)
                return true
            }
            guard isWritten else { return false }
            part.keptCount = bytes.count
            return true
        } catch {
            report(DiskError(error))
            return false
        }
    }

    /// Removes the part of a file.
    func remove(_ key: ImageSourceKey) {
        let name = Self.name(key)
        do {
            try disk.write { transaction in
                guard let part = try transaction.read({ try Self.stored(name, $0) }) else { return }
                try Self.remove(name, part.count, transaction)
            }
        } catch {
            report(DiskError(error))
        }
    }

    // MARK: Room

    /// Removes the oldest parts until there is room for one more, and those beyond their lifetime. The store is read each time, because
    /// other processes write parts too; there are few, because all together are bounded.
    private func makeRoom(
        for name: String,
        _ count: Int,
        _ now: WallTime,
        _ transaction: borrowing DiskStore.WriteTransaction
    ) throws {
        var others: [(name: String, count: Int, writtenAt: WallTime)] = []
        try transaction.read { reading in
            for key in try reading.recordKeys(startingWith: Self.prefix)
            where key != name && !key.dropFirst(Self.prefix.count).contains("/") {
                guard let part = try Self.stored(key, reading) else { continue }
                others.append((key, part.count, part.writtenAt))
            }
        }
        others.sort { $0.writtenAt < $1.writtenAt }
        var sum = others.reduce(count) { $0 + $1.count }
        for other in others {
            guard sum > bytesMaximum || now - other.writtenAt >= lifetime else { break }
            try Self.remove(other.name, other.count, transaction)
            sum -= other.count
        }
    }

    /// A part with an unreadable head has an unknown length and is removed when its lifetime ends.
    private static func stored(
        _ name: String,
        _ transaction: borrowing DiskStore.ReadTransaction
    ) throws -> (count: Int, writtenAt: WallTime)? {
        try transaction.record(name).map { (head($0.payload)?.bodyCount ?? 0, $0.recordedAt) }
    }

    // MARK: Names

    private static func name(_ key: ImageSourceKey) -> String { prefix + key.digest }

    private static func name(_ name: String, _ index: Int) -> String { "\(name)/\(index)" }

    private static func pieces(_ count: Int) -> Int { (max(0, count) + pieceLength - 1) / pieceLength }

    private static func head(_ payload: [UInt8]) -> HTTPCacheEntry? { HTTPCacheEntry.decode(payload)?.first }

    private static func remove(
        _ name: String,
        _ count: Int,
        _ transaction: borrowing DiskStore.WriteTransaction
    ) throws {
        for index in 0..<pieces(count) { try transaction.removeRecord(Self.name(name, index)) }
        try transaction.removeRecord(name)
    }
}
