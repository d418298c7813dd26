import LarderCoding
import LarderSQLite
public import LarderTime

/// Answers in files, one each, in a directory of its own with mode 0700: written whole or not at all, and checked when read.
///
/// Safe from any thread, and from several processes. Nothing limits how many there are but their time.
public final class FileRequestStorage: RequestStorage {
    private let directory: String
    private let files = DiskFiles(faults: nil)
    private static let magic = Array("Lardera1".utf8)

    /// Keeps answers in a directory, which is made if it is not there.
    public init(directory: String) throws(LarderError) {
        self.directory = directory
        do { try files.makeDirectory(directory) } catch { throw LarderError(DiskError(error)) }
    }

    /// The answer under a key; one that is damaged is removed.
    public func answer(for key: String) throws -> RecordedAnswer? {
        let path = path(key)
        guard let bytes = files.read(path) else { return nil }
        guard let answer = Self.decode(bytes, key) else {
            try files.remove(path)
            return nil
        }
        return answer
    }

    /// Records an answer.
    public func store(_ answer: RecordedAnswer, for key: String) throws {
        var bytes = Self.magic
        let content =
            Self.bytes(answer.recordedAt.nanosecondsSinceEpoch) + Self.bytes(answer.outdatedAt.nanosecondsSinceEpoch)
            + Self.bytes(Int64(key.utf8.count)) + Array(key.utf8) + answer.payload
        bytes += Self.bytes(Int64(bitPattern: ContentHash.hash64(content.span)))
        bytes += content
        let path = path(key)
        do {
            try files.makeDirectory(directory)
            try files.write(bytes, to: path, temporary: path + ".new")
        } catch {
            throw DiskError(error)
        }
    }

    /// Removes what is under a key.
    public func remove(_ key: String) throws { try files.remove(path(key)) }

    /// Removes what is outdated, and what is damaged. Cost: it reads the beginnings of all files.
    public func removeOutdated(at now: WallTime) throws -> Int {
        var removed = 0
        for name in names {
            guard let head = files.read("\(directory)/\(name)", first: 32) else { continue }
            let isWhole = head.count == 32 && head.starts(with: Self.magic)
            if !isWhole || Self.number(head, 24) <= now.nanosecondsSinceEpoch {
                try files.remove("\(directory)/\(name)")
                removed += 1
            }
        }
        return removed
    }

    /// Removes everything.
    public func removeAll() throws { for name in names { try files.remove("\(directory)/\(name)") } }

    private var names: [String] { files.names(in: directory).filter { $0.hasSuffix(".answer") } }

    /// Named by a digest: a key neither shows in a file's name nor leads out of the directory.
    private func path(_ key: String) -> String {
        "\(directory)/\(hexEncode(SHA256.hash(Array(key.utf8)))).answer"
    }

    private static func decode(_ bytes: [UInt8], _ key: String) -> RecordedAnswer? {
        guard bytes.count >= 40, bytes.starts(with: magic) else { return nil }
        let content = Array(bytes[16...])
        guard Int64(bitPattern: ContentHash.hash64(content.span)) == number(bytes, 8) else { return nil }
        let length = Int(clamping: number(bytes, 32))
        guard length >= 0, length <= bytes.count - 40, bytes[40..<(40 + length)].elementsEqual(key.utf8) else {
            return nil
        }
        return RecordedAnswer(
            payload: Array(bytes[(40 + length)...]),
            recordedAt: WallTime(nanosecondsSinceEpoch: number(bytes, 16)),
            outdatedAt: WallTime(nanosecondsSinceEpoch: number(bytes, 24))
        )
    }

    private static func bytes(_ number: Int64) -> [UInt8] {
        stride(from: 0, to: 64, by: 8).map { UInt8(truncatingIfNeeded: number >> Int64($0)) }
    }

    private static func number(_ bytes: [UInt8], _ start: Int) -> Int64 {
        (0..<8).reduce(0) { $0 | Int64(bytes[start + $1]) << Int64(8 * $1) }
    }
}
