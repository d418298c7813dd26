import Foundation
import LarderEvents
import LarderResources
import LarderStorage
import Synchronization

/// The files that writes carry: copies in pieces beside the outbox, through the payload transform of the store, and for each the URL at which
/// the server takes the rest. Work on the disk runs on a thread of its own. Safe from any thread, in several processes.
///
/// A copy is made and its write is stored under one lock of all processes, so a copy without a row in the outbox is one whose write is
/// settled, or whose process has died: `sweep` removes it.
final class UploadFiles: Sendable {
    /// A piece must arrive within the time limit of a request, also on a slow network.
    static let pieceBytes = 256 << 10
    private static let lockName = "lock"
    /// The name of the file with the place among the pieces of a copy.
    private static let placeName = "place"

    private let directory: String
    private let bytesMaximum: Int64
    private let transform: (any DiskStore.PayloadTransform)?
    private let files: DiskFiles
    /// Nil if the store is not on a disk that may block.
    private let disk: DiskExecutor?
    /// Whether the account was erased: nothing is copied any more.
    private let isErased = Atomic<Bool>(false)

    /// - Parameters:
    ///   - directory: made with the first copy.
    ///   - bytesMaximum: the most bytes of all copies together.
    ///   - store: the store beside whose outbox the copies are.
    init(directory: String, bytesMaximum: Int64, of store: DiskStore.Configuration) {
        self.directory = directory
        self.bytesMaximum = bytesMaximum
        transform = store.transform
        files = DiskFiles(faults: store.sharesFaults ? store.faults : nil)
        disk = store.mayBlock ? DiskExecutor(threadsMaximum: 1) : nil
    }

    private var lockPath: String { "\(directory)/\(Self.lockName)" }

    private func path(_ name: String) -> String { "\(directory)/\(name)" }

    private var copies: [String] { files.names(in: directory).filter { $0 != Self.lockName } }

    private nonisolated(nonsending) func onDisk<Result: Sendable>(
        _ body: @Sendable () async throws(LarderError) -> Result
    ) async throws(LarderError) -> Result {
        try await withTaskExecutorPreference(disk, operation: body)
    }

    private static func failure(_ error: any Error) -> LarderError {
        error as? LarderError ?? LarderError(DiskError(error))
    }

    // MARK: Copies

    /// Copies a file durably, readable by this user only, and stores its write.
    ///
    /// - Parameter store: gets the name of the copy and the length of the file. If it throws, the copy is removed.
    /// - Throws: `.invalidArgument` if the file cannot be read, is empty, or does not fit; `.storage`, `.closed`; the error of `store`.
    func add<Result: Sendable>(
        _ source: String,
        _ store: @escaping @Sendable (_ name: String, _ length: Int64) throws(LarderError) -> Result
    ) async throws(LarderError) -> Result {
        try await onDisk { () throws(LarderError) in
            let closed = LarderError(.closed, "The account is being signed out. Nothing was written.")
            guard !isErased.load(ordering: .acquiring) else { throw closed }
            do {
                try files.makeDirectory(directory)
                return try files.locked(lockPath) {
                    guard !isErased.load(ordering: .acquiring) else {
                        try removeDirectory()
                        throw closed
                    }
                    let name = RandomKey.make()
                    do { return try store(name, try copy(source, name)) } catch {
                        try remove(name)
                        throw error
                    }
                }
            } catch { throw Self.failure(error) }
        }
    }

    private func copy(_ source: String, _ name: String) throws -> Int64 {
        let room = max(0, bytesMaximum - size)
        var (length, count): (Int64, Int) = (0, 0)
        guard let input = FileHandle(forReadingAtPath: source) else {
            throw LarderError(.invalidArgument, "The file \(source) cannot be read. Nothing was written.")
        }
        try files.makeDirectory(path(name))
        while let bytes = try Self.next(input, source) {
            length += Int64(bytes.count)
            guard length <= room else {
                throw LarderError(
                    .invalidArgument,
                    "The file \(source) does not fit: the files of unsent writes may have \(bytesMaximum) bytes "
                        + "(uploadBytesMaximum), and \(room) are left. Nothing was written."
                )
            }
            try write(bytes, as: "\(count)", of: name)
            count += 1
        }
        guard length > 0 else {
            throw LarderError(.invalidArgument, "The file \(source) is empty. Nothing was written.")
        }
        try files.syncDirectory(path(name))
        return length
    }

    /// The next piece of a file; nil at its end.
    private static func next(_ input: FileHandle, _ source: String) throws(LarderError) -> [UInt8]? {
        do {
            guard let bytes = try input.read(upToCount: pieceBytes), !bytes.isEmpty else { return nil }
            return Array(bytes)
        } catch {
            throw LarderError(
                .invalidArgument,
                "The file \(source) cannot be read: \(error). Nothing was written.",
                cause: error
            )
        }
    }

    private func write(_ bytes: [UInt8], as piece: String, of name: String) throws {
        let stored = try transform?.encode(bytes) ?? bytes
        try files.write(stored, to: "\(path(name))/\(piece)", temporary: "\(path(name))/new")
    }

    /// The bytes of all copies on disk.
    private var size: Int64 {
        copies.reduce(0) { sum, name in
            files.names(in: path(name)).reduce(sum) { $0 + (files.size("\(path(name))/\($1)") ?? 0) }
        }
    }

    private func remove(_ name: String) throws {
        for file in files.names(in: path(name)) { try files.remove("\(path(name))/\(file)") }
        _ = try files.removeDirectory(path(name))
    }

    /// Removes the directory and its lock. While the lock is held.
    private func removeDirectory() throws {
        try files.remove(lockPath)
        _ = try files.removeDirectory(directory)
    }

    /// Removes all copies, for a sign-out. It waits for a copy that is being made.
    func erase() throws(LarderError) {
        isErased.store(true, ordering: .releasing)
        guard files.exists(directory) else { return }
        do {
            try files.locked(lockPath) {
                for name in copies { try remove(name) }
                try removeDirectory()
            }
        } catch { throw Self.failure(error) }
    }

    /// Removes the copies whose writes are not in the outbox any more. Does nothing while a copy is being made: the next one, or the next
    /// start, removes them. Costs a look into the directory if there are none.
    ///
    /// - Parameter used: reads the names of the copies that the outbox needs.
    func sweep(keeping used: () throws(LarderError) -> Set<String>) throws(LarderError) {
        guard !copies.isEmpty else { return }
        let lock = FileProcessLock(path: lockPath)
        do {
            guard try lock.take() else { return }
            defer { lock.release() }
            let used = try used()
            for name in copies where !used.contains(name) { try remove(name) }
        } catch { throw Self.failure(error) }
    }

    // MARK: Sending

    /// Where the server takes the rest.
    struct Place: Sendable {
        /// Nil if the upload was not begun, or if the server has forgotten it.
        var url: String?
        /// How often the server has forgotten the upload: each beginning after that is another request.
        var losses = 0
    }

    /// The rest of the piece that contains an offset.
    ///
    /// - Throws: `.invalidArgument` if it is missing, `.storage` if it cannot be read now, `.encoding`.
    func bytes(_ name: String, from offset: Int64) async throws(LarderError) -> [UInt8] {
        try await onDisk { () throws(LarderError) in
            let (index, start) = Int(offset).quotientAndRemainder(dividingBy: Self.pieceBytes)
            guard let piece = try read("\(index)", of: name), start < piece.count else {
                throw LarderError(
                    .invalidArgument,
                    "The copy of the file has no byte \(offset). Drop the operation, and write it again."
                )
            }
            return Array(piece[start...])
        }
    }

    /// - Throws: `.invalidArgument` if there is no copy, `.storage` if it cannot be read now, `.encoding`.
    func place(_ name: String) async throws(LarderError) -> Place {
        try await onDisk { () throws(LarderError) in
            // Its place could not be stored either: it would be begun again and again.
            guard files.exists(path(name)) else {
                throw LarderError(
                    .invalidArgument,
                    "The copy of the file has gone. Drop the operation, and write it again."
                )
            }
            guard let stored = try read(Self.placeName, of: name) else { return Place() }
            let parts = String(decoding: stored, as: UTF8.self).split(separator: " ")
            return Place(url: parts.count > 1 ? String(parts[1]) : nil, losses: parts.first.flatMap { Int($0) } ?? 0)
        }
    }

    /// - Throws: `.storage`. Without the place the upload would begin anew after a restart, under the same idempotency key.
    func setPlace(_ name: String, _ place: Place) async throws(LarderError) {
        try await onDisk { () throws(LarderError) in
            let text = [String(place.losses), place.url].compactMap { $0 }.joined(separator: " ")
            do { try write(Array(text.utf8), as: Self.placeName, of: name) } catch { throw Self.failure(error) }
        }
    }

    /// A file of a copy; nil if there is none.
    private func read(_ piece: String, of name: String) throws(LarderError) -> [UInt8]? {
        let file = "\(path(name))/\(piece)"
        guard files.exists(file) else { return nil }
        guard let stored = files.read(file) else {
            throw LarderError(.storage, "A piece of a file to upload cannot be read now: \(file)")
        }
        do { return try transform?.decode(stored) ?? stored } catch {
            throw LarderError(.encoding, "A piece of a file to upload cannot be decoded.", cause: error)
        }
    }
}
