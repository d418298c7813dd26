import LarderStorage

/// The stamps of one store, or of a cache without one.
struct StampClock: Sendable {
    private let source: StampSource
    /// The number of the boot among those in which the store was used.
    private var boot: Int64

    init(_ source: StampSource, boot: Int64) { (self.source, self.boot) = (source, boot) }

    func next() -> Stamp { Stamp(boot: boot, time: source.next()) }
}

extension StampClock {
    /// Its value is the boot number, and the name of that boot.
    private static let key = "larder.boot"

    /// The clock of a store. Writes a row if this is the first use of the store since the machine was booted: into the store of the
    /// outbox, because the system may remove the content while processes go on with the number.
    ///
    /// - Parameter report: gets the error of a store that takes no row. The boot then has the number that the row would have had.
    init(_ source: StampSource, _ outbox: DiskStore?, of content: DiskStore?, _ report: (LarderError) -> Void) {
        self.init(source, boot: 1)
        guard let outbox, let content else { return }
        var stored: [UInt8]?
        do {
            stored = try outbox.read { try $0.plainMetadata(Self.key) }
            boot = try Self.boot(stored, source) ?? Self.newBoot(source, outbox, content)
        } catch {
            report(LarderError(error))
            boot = min((Self.number(stored) ?? 0) + 1, Stamp.bootMaximum)
        }
    }

    private static func newBoot(_ source: StampSource, _ outbox: DiskStore, _ content: DiskStore) throws -> Int64 {
        // The items of a boot must not survive a power loss that takes its number.
        try outbox.write(.powerLoss) { transaction in
            let stored = try transaction.plainMetadata(key)
            if let boot = boot(stored, source) { return boot }
            // Without the row, which damage may have taken, the items say which boots there were.
            var boot = try (number(stored) ?? content.read { try $0.latestStamp() }?.boot ?? 0) + 1
            if boot > Stamp.bootMaximum {
                try content.removeAllItems()
                boot = 1
            }
            try transaction.setPlainMetadata(Array("\(boot) \(source.bootID)".utf8), for: key)
            return boot
        }
    }

    private static func number(_ stored: [UInt8]?) -> Int64? {
        stored.flatMap { Int64(String(decoding: $0.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)) }
            .flatMap { (1...Stamp.bootMaximum).contains($0) ? $0 : nil }
    }

    /// The number of the present boot, if it is stored.
    private static func boot(_ stored: [UInt8]?, _ source: StampSource) -> Int64? {
        guard let stored, let number = number(stored), stored == Array("\(number) \(source.bootID)".utf8) else {
            return nil
        }
        return number
    }
}
