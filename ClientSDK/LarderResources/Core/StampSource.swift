import Glibc
import LarderStorage
import Synchronization

/// Counts the time since the machine was booted, which all of its processes share and which never goes back, also not while the machine
/// sleeps. Within a process no number comes twice.
///
/// Safe from any thread. Taking a number takes some 30 ns, and writes nothing.
package final class StampSource: Sendable {
    /// Names the boot: another one after each.
    let bootID: String
    /// Microseconds since the boot.
    private let time: @Sendable () -> Int64
    private let last = Atomic<Int64>(0)

    /// Creates a source with a clock of its own. What shares a store shares a source, or the clock.
    package init(bootID: String, time: @escaping @Sendable () -> Int64) {
        self.bootID = bootID
        self.time = time
    }

    /// The source of this process.
    package static let system = StampSource(bootID: systemBootID()) {
        var time = timespec()
        // The clock exists since Linux 2.6.39: the call cannot fail.
        _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// The kernel's name for the boot. Without it each process counts as a boot of its own.
    private static func systemBootID() -> String {
        let file = unsafe open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return RandomKey.make() }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(file, &bytes, bytes.count)
        guard count > 0 else { return RandomKey.make() }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    func next() -> Int64 {
        let now = time()
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(now, known + 1)
            let (exchanged, original) = last.weakCompareExchange(expected: known, desired: next, ordering: .relaxed)
            if exchanged { return next }
            known = original
        }
    }
}

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
