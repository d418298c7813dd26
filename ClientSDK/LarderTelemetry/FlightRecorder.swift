import Glibc
import LarderCoding
import LarderTime
import Synchronization

/// Stores the last events in a file of fixed size, so that they can be read after the process was killed.
///
/// Each event is one write of one slot; when it returns, the event survives the death of the process (but not a loss of power,
/// which would need a sync each time). The slots are a ring. A slot that was half written is detected by its checksum and skipped.
/// All blocks are allocated when the file is created, so that a full disk later does no harm. The file is readable by its owner
/// alone (0600). It is written and not mapped, because a mapped file that is truncated kills the process. Safe from any thread.
/// Cost: some microseconds per event.
public final class FlightRecorder: Sendable {
    /// The path of the file.
    public let path: String
    /// The number of events that the file holds.
    public let capacity: Int
    /// The number of this opening of the file, from 1.
    public let life: UInt32

    private let descriptor: Int32
    private let lastPosition: Atomic<UInt64>
    private let failures = Atomic<Int>(0)

    private static let magic: [UInt8] = Array("LARDERFR0001".utf8)
    /// The first bytes of the file, before the slots.
    private static let prefaceBytes = 256
    /// The bytes of an event.
    private static let slotBytes = 256
    private static let capacityMaximum = 1 << 20

    /// Opens a file and continues after its last event, or creates it.
    ///
    /// - Parameters:
    ///   - path: the directory must exist. A file of another capacity is replaced.
    ///   - capacity: the number of events, from 16 to 1,048,576; the file has 256 bytes for each.
    /// - Throws: `.busy` while another recorder has the file open, `.full`, `.foreignFile` or `.cannotOpen`.
    public init(path: String, capacity: Int = 4_096) throws(FlightRecorderError) {
        let capacity = min(max(capacity, 16), Self.capacityMaximum)
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.error(path) }
        do throws(FlightRecorderError) {
            guard FileLock.take(descriptor) else {
                guard errno == EWOULDBLOCK else { throw Self.error(path) }
                throw FlightRecorderError(
                    code: .busy,
                    description: "\(path) is in use by another recorder. Use a separate file for each process."
                )
            }
            guard fchmod(descriptor, 0o600) == 0 else { throw Self.error(path) }
            let bytes = try Self.contents(descriptor, path)
            let ring = Ring(bytes)
            guard ring != nil || bytes.isEmpty || bytes.starts(with: Self.magic) else {
                throw FlightRecorderError(
                    code: .foreignFile,
                    description: "\(path) is not a flight recorder's file. Choose another path."
                )
            }
            if let ring, ring.capacity == capacity, ring.isComplete {
                let records = ring.records
                lastPosition = Atomic(records.last?.position ?? 0)
                life = (records.map(\.life).max() ?? 0) &+ 1
            } else {
                try Self.format(descriptor, path, capacity)
                lastPosition = Atomic(0)
                life = 1
            }
        } catch {
            FileLock.giveBack(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.path = path
        self.capacity = capacity
    }

    deinit { FileLock.giveBack(descriptor) }

    /// Whether a recorder of any process has the file open.
    package static func isOpen(path: String) -> Bool {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { FileLock.giveBack(descriptor) }
        return !FileLock.take(descriptor, isShared: true) && errno == EWOULDBLOCK
    }

    /// The number of events that could not be written.
    public var failureCount: Int { failures.load(ordering: .relaxed) }

    /// Replaces the oldest event. A failure is counted, and the stored events stay readable.
    public func record(_ event: TelemetryEvent) {
        let position = lastPosition.wrappingAdd(1, ordering: .relaxed).newValue
        let bytes = Record.encode(event, position: position, life: life, slotBytes: Self.slotBytes)
        let slot = Int((position - 1) % UInt64(capacity))
        let offset = off_t(Self.prefaceBytes + slot * Self.slotBytes)
        while true {
            let count = unsafe pwrite(descriptor, bytes, bytes.count, offset)
            if count < 0, errno == EINTR { continue }
            if count != bytes.count { failures.wrappingAdd(1, ordering: .relaxed) }
            return
        }
    }

    /// The stored events, oldest first, including those of earlier openings.
    public func records() throws(FlightRecorderError) -> [Record] {
        try Ring(Self.contents(descriptor, path))?.records ?? []
    }

    /// The events in a file, oldest first. It may be in use. Incomplete slots are skipped.
    ///
    /// - Throws: `.cannotOpen` if there is no such file, `.foreignFile` if it is another kind of file.
    public static func records(path: String) throws(FlightRecorderError) -> [Record] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw error(path) }
        defer { close(descriptor) }
        guard let ring = Ring(try contents(descriptor, path)) else {
            throw FlightRecorderError(code: .foreignFile, description: "\(path) is not a flight recorder's file.")
        }
        return ring.records
    }

    // MARK: The file

    /// A parsed file: the preface has the number and size of the slots.
    private struct Ring {
        let capacity: Int
        let bytes: [UInt8]

        init?(_ bytes: [UInt8]) {
            guard bytes.count >= FlightRecorder.prefaceBytes, bytes.starts(with: FlightRecorder.magic) else {
                return nil
            }
            var rest = bytes[FlightRecorder.magic.count...]
            guard let capacity: UInt32 = rest.takeNumber(),
                (1...FlightRecorder.capacityMaximum).contains(Int(capacity)),
                let slotBytes: UInt32 = rest.takeNumber(), slotBytes == FlightRecorder.slotBytes
            else { return nil }
            self.capacity = Int(capacity)
            self.bytes = bytes
        }

        /// Whether no slot is truncated.
        var isComplete: Bool { bytes.count >= FlightRecorder.prefaceBytes + capacity * FlightRecorder.slotBytes }

        var records: [Record] {
            let slotBytes = FlightRecorder.slotBytes
            let starts = stride(from: FlightRecorder.prefaceBytes, through: bytes.count - slotBytes, by: slotBytes)
            return starts.prefix(capacity).compactMap { Record(slot: bytes[$0..<$0 + slotBytes]) }
                .sorted { $0.position < $1.position }
        }
    }

    private static func format(_ descriptor: Int32, _ path: String, _ capacity: Int) throws(FlightRecorderError) {
        guard ftruncate(descriptor, 0) == 0 else { throw error(path) }
        var bytes = magic
        bytes.append(number: UInt32(capacity))
        bytes.append(number: UInt32(slotBytes))
        bytes += [UInt8](repeating: 0, count: prefaceBytes + capacity * slotBytes - bytes.count)
        guard FileBytes.write(bytes[...], to: descriptor) else { throw error(path) }
    }

    private static func contents(_ descriptor: Int32, _ path: String) throws(FlightRecorderError) -> [UInt8] {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw error(path) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw FlightRecorderError(code: .foreignFile, description: "\(path) is not a file. Choose another path.")
        }
        let size = min(Int(status.st_size), prefaceBytes + capacityMaximum * slotBytes)
        guard let bytes = FileBytes.read(descriptor, first: size) else { throw error(path) }
        return bytes
    }

    /// The error for `errno`.
    private static func error(_ path: String) -> FlightRecorderError {
        let number = errno
        let text = "\(path): \(unsafe String(cString: strerror(number)))"
        switch number {
        case ENOSPC, EDQUOT: return FlightRecorderError(code: .full, description: "\(text). Free some space.")
        case ELOOP, EISDIR: return FlightRecorderError(code: .foreignFile, description: "\(text). Choose another path.")
        default:
            return FlightRecorderError(code: .cannotOpen, description: "\(text). Check the directory and its rights.")
        }
    }
}
