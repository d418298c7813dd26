import LarderHTTP
import LarderTime
import Synchronization

/// A file as it lies on disk, with what the server said of it.
struct StoredImage: Sendable {
    var bytes: [UInt8]
    var entityTag: EntityTag?
    var expiresAt: WallTime
    var recordedAt: WallTime
}

/// The disk tier of the pipeline: files in generic records of a `DiskStore`. Safe from any thread.
///
/// What was begun before everything was erased is not written after it.
final class ImageStore: Sendable {
    private static let version: UInt8 = 1

    private let disk: DiskStore?
    private let clock: any WallClock
    private let report: @Sendable (DiskError) -> Void
    /// How often everything was erased. Held while something is written.
    private let epoch = Mutex(0)

    init(_ disk: DiskStore?, _ clock: any WallClock, report: @escaping @Sendable (DiskError) -> Void) {
        self.disk = disk
        self.clock = clock
        self.report = report
    }

    func read(_ key: ImageSourceKey) -> StoredImage? {
        guard let disk else { return nil }
        do {
            guard let record = try disk.record(key.diskKey) else { return nil }
            guard record.payload.count > 2, record.payload[0] == Self.version else { return nil }
            let tagEnd = 2 + Int(record.payload[1])
            guard record.payload.count > tagEnd else { return nil }
            return StoredImage(
                bytes: Array(record.payload[tagEnd...]),
                entityTag: EntityTag(parsing: String(decoding: record.payload[2..<tagEnd], as: UTF8.self)),
                expiresAt: record.expiresAt,
                recordedAt: record.recordedAt
            )
        } catch {
            report(error)
            return nil
        }
    }

    func write(_ image: StoredImage, for key: ImageSourceKey, epoch begun: Int) {
        guard let disk else { return }
        // A tag that is longer than its length can say is left out: then nothing is revalidated, and all is well.
        let tag = Array((image.entityTag?.description ?? "").utf8)
        let kept = tag.count <= 255 ? tag : []
        var payload: [UInt8] = []
        payload.reserveCapacity(2 + kept.count + image.bytes.count)
        payload += [Self.version, UInt8(kept.count)]
        payload += kept
        payload += image.bytes
        let record = DiskRecord(
            key.diskKey,
            payload: payload,
            recordedAt: image.recordedAt,
            expiresAt: image.expiresAt
        )
        epoch.withLock { epoch in
            guard epoch == begun else { return }
            do throws(DiskError) {
                try disk.put(record)
            } catch {
                report(error)
            }
        }
    }

    func remove(_ key: ImageSourceKey) {
        do {
            try disk?.removeRecord(key.diskKey)
        } catch {
            report(error)
        }
    }

    func removeAll(epoch next: Int) {
        epoch.withLock { epoch in
            epoch = next
            do throws(DiskError) {
                try disk?.removeAllItems()
            } catch {
                report(error)
            }
        }
    }
}
