import LarderCoding
import LarderMemory
import LarderStorage
import LarderTime

/// Pixels that left memory for lack of room, in a store of their own, which bounds them. Safe from any thread.
///
/// Pixels are found by the content of their file: they are used only after the file is known to be valid, instead of decoding it.
struct ImageSpill: Sendable {
    typealias Departure = MemoryTier<ImageResultKey, MemoryPicture>.Departure

    private let disk: DiskStore
    private let clock: any WallClock
    private let report: @Sendable (DiskError) -> Void
    /// Removed from memory and not written yet.
    private let pending = DepartureList<Departure>()

    init?(_ disk: DiskStore?, _ clock: any WallClock, report: @escaping @Sendable (DiskError) -> Void) {
        guard let disk else { return nil }
        self.disk = disk
        self.clock = clock
        self.report = report
    }

    /// Notes an entry that left memory. Pressure, a replacement and `removeAll` write nothing, nor do pixels that must not be on disk.
    func note(_ departure: Departure) {
        if departure.reason == .cost, departure.value.maySpill { pending.add(departure) }
    }

    /// Writes what was noted.
    ///
    /// - Parameter isWanted: asked within each transaction; false: nothing is written.
    func write(if isWanted: @Sendable () -> Bool) {
        for departure in pending.take() {
            let picture = departure.value
            let record = DiskRecord(
                Self.name(departure.key, picture.contentID),
                payload: PixelCoding.bytes(picture.image),
                recordedAt: clock.now,
                expiresAt: clock.now + .seconds(30 * 86_400)
            )
            do {
                try disk.write { transaction in
                    if isWanted() { try transaction.put(record) }
                }
            } catch { report(DiskError(error)) }
        }
    }

    /// The pixels of a file, if they were written.
    func image(_ key: ImageResultKey, contentID: String) -> DecodedImage? {
        do {
            guard let record = try disk.record(Self.name(key, contentID)), clock.now < record.expiresAt else {
                return nil
            }
            return try PixelCoding.image(record.payload)
        } catch {
            if !(error is PixelCoding.Damage) { report(DiskError(error)) }
            return nil
        }
    }

    /// Forgets what is not written yet.
    func discard() { _ = pending.take() }

    func removeAll() {
        do throws(DiskError) { try disk.removeAllItems() } catch { report(error) }
    }

    private static func name(_ key: ImageResultKey, _ contentID: String) -> String {
        let target = key.target.map { "\($0.width)x\($0.height) \($0.mode)" } ?? ""
        return "image.pixels/" + hexEncode(SHA256.hash(Array("\(key.source.digest) \(target) \(contentID)".utf8)))
    }
}
