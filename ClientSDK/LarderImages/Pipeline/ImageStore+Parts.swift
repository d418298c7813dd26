import LarderCoding
import LarderHTTP
import LarderHTTPCache
import LarderStorage
import LarderTime

/// The parts of interrupted downloads, written while they arrive, so that a download resumes after the process died.
///
/// A part is one record: the response head, a line feed and the bytes. All parts together are bounded, the oldest is removed first; parts
/// older than their lifetime are not used and are removed.
extension ImageStore {
    /// The received bytes at which a part is first written; then each time it has doubled.
    static let pieceLength = 128 << 10
    private static let partLifetime = Duration.seconds(86_400)
    private static let prefix = "image.part/"

    /// The stored part of a file; nil if there is none that can be resumed.
    func part(_ key: ImageSourceKey) -> PartialImage? {
        do {
            guard let record = try disk?.record(Self.prefix + key.digest) else { return nil }
            // After the clock was set back, ages are unknown.
            if clock.now >= record.recordedAt, clock.now < record.expiresAt, let part = Self.part(record.payload),
                part.isResumable
            {
                return part
            }
            // An unusable part is not read again.
            removePart(key)
        } catch {
            report(error)
        }
        return nil
    }

    /// Writes a part. Parts that cannot be resumed are not written.
    func keep(_ part: inout PartialImage, for key: ImageSourceKey, epoch begun: Int) {
        guard let disk, part.isResumable, part.bytes.count <= partBytesMaximum, part.bytes.count > part.keptCount
        else { return }
        let (now, count) = (clock.now, part.bytes.count)
        let head = HTTPCacheEntry(
            bodyID: "part",
            bodyCount: count,
            status: .ok,
            fields: part.fields,
            selectors: [],
            requestedAt: part.requestedAt,
            receivedAt: part.receivedAt
        )
        let record = DiskRecord(
            Self.prefix + key.digest,
            payload: HTTPCacheEntry.encode([head]) + [UInt8(ascii: "\n")] + part.bytes,
            recordedAt: now,
            expiresAt: now + Self.partLifetime
        )
        do {
            let isWritten = try disk.write { transaction -> Bool in
                guard isCurrent(begun) else { return false }
                try transaction.put(record)
                try makeRoom(for: record.key, count, now, transaction)
                return true
            }
            if isWritten { part.keptCount = count }
        } catch {
            report(error)
        }
    }

    /// Removes the part of a file.
    func removePart(_ key: ImageSourceKey) {
        do {
            try disk?.write { transaction in try transaction.removeRecord(Self.prefix + key.digest) }
        } catch {
            report(error)
        }
    }

    /// Removes the oldest parts until there is room for one more, and those beyond their lifetime. The store is read each time, because
    /// other processes write parts too; there are few, because all together are bounded.
    private func makeRoom(
        for name: String,
        _ count: Int,
        _ now: WallTime,
        _ transaction: DiskConnection
    ) throws {
        var others: [(name: String, count: Int, writtenAt: WallTime)] = []
        for key in try transaction.recordKeys(startingWith: Self.prefix) where key != name {
            guard let record = try transaction.record(key) else { continue }
            others.append((key, Self.halves(record.payload)?.bytes.count ?? 0, record.recordedAt))
        }
        others.sort { $0.writtenAt < $1.writtenAt }
        var sum = others.reduce(count) { $0 + $1.count }
        for other in others {
            guard sum > partBytesMaximum || now - other.writtenAt >= Self.partLifetime else { break }
            try transaction.removeRecord(other.name)
            sum -= other.count
        }
    }

    /// The response head and the bytes; nil if the record is damaged.
    private static func halves(_ payload: [UInt8]) -> (head: HTTPCacheEntry, bytes: ArraySlice<UInt8>)? {
        guard let end = payload.firstIndex(of: UInt8(ascii: "\n")),
            let head = HTTPCacheEntry.decode(Array(payload[..<end]))?.first, payload.count - end - 1 == head.bodyCount
        else { return nil }
        return (head, payload[(end + 1)...])
    }

    private static func part(_ payload: [UInt8]) -> PartialImage? {
        guard let (head, bytes) = halves(payload) else { return nil }
        var part = PartialImage(
            beginning: head.fields,
            requestedAt: head.requestedAt,
            receivedAt: head.receivedAt
        )
        part.bytes = Array(bytes)
        part.keptCount = bytes.count
        return part
    }
}
