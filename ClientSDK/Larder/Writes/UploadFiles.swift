import Foundation
import LarderEvents
import LarderResources
import LarderStorage
import Synchronization

/// The files that writes carry: copies in pieces beside the outbox, through the payload transform of the store, and for each the place at
/// which the server takes the rest. Work on the disk runs on threads of its own. Safe from any thread, in several processes.
///
/// The lock of a copy is held from before it is made until its write is stored. A copy that nobody has locked, and that no row of the outbox
/// needs, is one whose write is settled, or whose process has died: `sweep` removes it.
final class UploadFiles: Sendable {
    /// A piece must arrive within the time limit of a request, also on a slow network.
    static let pieceBytes = 256 << 10
    /// What follows the name of a copy in that of its lock.
    private static let lockSuffix = ".lock"
    /// The name of the file with the place among the pieces of a copy.
    private static let placeName = "place"
    /// How many copies a sweep removes: each of them is locked for the time.
    private static let sweptMaximum = 64

    private let directory: String
    private let bytesMaximum: Int64
    private let transform: (any DiskStore.PayloadTransform)?
    private let files: DiskFiles
    /// Nil if the store is not on a disk that may block.
    private let disk: DiskExecutor?
    /// For copies, whose sources may be slow: what is being sent does not wait for them.
    private let copying: DiskExecutor?
    /// Whether the account was erased: nothing is copied any more.
    private let isErased = Atomic<Bool>(false)

    /// - Parameters:
    ///   - directory: made with the first copy, in a directory that exists.
    ///   - bytesMaximum: the most bytes of all copies together. Several processes may exceed it by a file each.
    ///   - store: the store beside whose outbox the copies are.
    init(directory: String, bytesMaximum: Int64, of store: DiskStore.Configuration) {
        self.directory = directory
        self.bytesMaximum = bytesMaximum
        transform = store.transform
        files = DiskFiles(faults: store.sharesFaults ? store.faults : nil)
        disk = store.mayBlock ? DiskExecutor(threadsMaximum: 1) : nil
        copying = store.mayBlock ? DiskExecutor(threadsMaximum: 1) : nil
    }

    private func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// The names of the copies, also of those that are being made or removed.
    private var copies: Set<String> {
        Set(
            files.names(in: directory).map {
                $0.hasSuffix(Self.lockSuffix) ? String($0.dropLast(Self.lockSuffix.count)) : $0
            }
        )
    }

    private func lock(_ name: String) -> FileProcessLock { FileProcessLock(path: path(name) + Self.lockSuffix) }

    /// Runs on a thread that may wait for the disk.
    private nonisolated(nonsending) func run<Result: Sendable>(
        on executor: DiskExecutor?,
        _ body: @Sendable () throws -> Result
    ) async throws(LarderError) -> Result {
        try await withTaskExecutorPreference(executor) { () throws(LarderError) in
            do { return try body() } catch { throw error as? LarderError ?? LarderError(DiskError(error)) }
        }
    }

    // MARK: Copies

    /// Copies a file durably, readable by this user only, and stores its write.
    ///
    /// - Parameter store: gets the name of the copy and the length of the file. If it throws, the copy is removed.
    /// - Throws: `.invalidArgument` if the file cannot be read, is empty, or does not fit; `.storage`, `.closed`, `.cancelled`; the error
    ///   of `store`.
    func add<Result: Sendable>(
        _ source: String,
        _ store: @escaping @Sendable (_ name: String, _ length: Int64) throws(LarderError) -> Result
    ) async throws(LarderError) -> Result {
        try await run(on: copying) {
            try requireAccount()
            try files.makeDirectory(directory)
            let (name, lock) = try lockedName()
            defer { lock.release() }
            do {
                try files.makeDirectory(path(name))
                // From here on `erase` finds it.
                try requireAccount()
                return try store(name, try copy(source, name))
            } catch {
                try remove(name)
                if isErased.load(ordering: .acquiring) { _ = try files.removeDirectory(directory) }
                throw error
            }
        }
    }

    /// A new name whose lock this holds. A sweep may hold the lock of a name that it has just seen: then another one is taken.
    private func lockedName() throws -> (name: String, lock: FileProcessLock) {
        while true {
            let name = RandomKey.make()
            let lock = lock(name)
            if try lock.take() { return (name, lock) }
        }
    }

    /// - Throws: `.closed` if the account was erased, by this process or another one.
    private func requireAccount() throws(LarderError) {
        let parent = URL(fileURLWithPath: directory).deletingLastPathComponent().path
        guard isErased.load(ordering: .acquiring) || !files.exists(parent) else { return }
        throw LarderError(.closed, "The account was signed out. Nothing was written.")
    }

    private func copy(_ source: String, _ name: String) throws -> Int64 {
        let room = max(0, bytesMaximum - size)
        var (length, count): (Int64, Int) = (0, 0)
        func unreadable(_ cause: (any Error)?) -> LarderError {
            LarderError(.invalidArgument, "The file \(source) cannot be read. Nothing was written.", cause: cause)
        }
        // Another kind, such as a FIFO, may not end, or wait for ever when it is opened.
        let file = URL(fileURLWithPath: source).resolvingSymlinksInPath().path
        let type: FileAttributeType?
        do { type = try FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType } catch {
            throw unreadable(error)
        }
        guard type == .typeRegular, let input = FileHandle(forReadingAtPath: file) else { throw unreadable(nil) }
        while true {
            let bytes: [UInt8]
            do { bytes = Array(try input.read(upToCount: Self.pieceBytes) ?? Data()) } catch { throw unreadable(error) }
            guard !bytes.isEmpty else { break }
            guard !Task.isCancelled else { throw LarderError(CancellationError()) }
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
        // Its lock is the last of it.
        if try files.removeDirectory(path(name)) { try files.remove(path(name) + Self.lockSuffix) }
    }

    /// Removes all copies, for a sign-out. One that is being made is removed by its maker if it appears later.
    func erase() async throws(LarderError) {
        isErased.store(true, ordering: .releasing)
        try await run(on: disk) {
            for name in copies { try remove(name) }
            _ = try files.removeDirectory(directory)
        }
    }

    /// Removes the copies whose writes are not in the outbox any more. Costs a look into the directory if there are none.
    ///
    /// - Parameters:
    ///   - used: reads the names of the copies that the outbox needs.
    ///   - onFailure: a place that cannot be read. Its copy is removed.
    /// - Returns: where the server waits for the rest of files that are removed.
    func sweep(
        keeping used: @Sendable () throws(LarderError) -> Set<String>,
        onFailure: @Sendable (LarderError) -> Void
    ) async throws(LarderError) -> [String] {
        try await run(on: disk) {
            let found = copies
            guard !found.isEmpty else { return [] }
            let unused = try found.subtracting(used()).sorted().prefix(Self.sweptMaximum).map { ($0, lock($0)) }
            defer { for (_, lock) in unused { lock.release() } }
            let free = try unused.filter { try $0.1.take() }
            // The write of a copy is stored before its lock is released.
            let stored = free.isEmpty ? [] : try used()
            var abandoned: [String] = []
            for (name, _) in free where !stored.contains(name) {
                // Of a copy whose removal was interrupted only the lock may be left.
                if files.exists(path(name)) {
                    do throws(LarderError) {
                        let place = try readPlace(name)
                        if !place.isEnding, let url = place.url { abandoned.append(url) }
                    } catch { onFailure(error) }
                }
                try remove(name)
            }
            return abandoned
        }
    }

    // MARK: Sending

    /// Where the server takes the rest.
    struct Place: Codable, Sendable {
        /// The idempotency key of the write. With another one it is another request.
        var key = ""
        /// Nil if the upload was not begun, or if the server has forgotten or rejected it.
        var url: String?
        /// How often that was so: each beginning after it is another request.
        var losses = 0
        /// Whether the last piece was perhaps sent, in any attempt, and the server may have carried out the write.
        var isEnding = false
    }

    /// The bytes from an offset on: so many, or fewer at the end.
    ///
    /// - Throws: `.invalidArgument` if they are missing, `.storage` if they cannot be read now, `.encoding`.
    func bytes(_ name: String, from offset: Int64, count: Int) async throws(LarderError) -> [UInt8] {
        try await run(on: disk) {
            var bytes: [UInt8] = []
            var (index, start) = Int(offset).quotientAndRemainder(dividingBy: Self.pieceBytes)
            while bytes.count < count, let piece = try read("\(index)", of: name), start < piece.count {
                bytes += piece[start...].prefix(count - bytes.count)
                (index, start) = (index + 1, 0)
            }
            guard !bytes.isEmpty else {
                throw LarderError(
                    .invalidArgument,
                    "The copy of the file has no byte \(offset). Drop the operation, and write it again."
                )
            }
            return bytes
        }
    }

    /// - Throws: `.invalidArgument` if there is no copy, `.storage` if it cannot be read now, `.encoding`.
    func place(_ name: String) async throws(LarderError) -> Place { try await run(on: disk) { try readPlace(name) } }

    private func readPlace(_ name: String) throws(LarderError) -> Place {
        // Its place could not be stored either: it would be begun again and again.
        guard files.exists(path(name)) else {
            throw LarderError(
                .invalidArgument,
                "The copy of the file has gone. Drop the operation, and write it again."
            )
        }
        guard let stored = try read(Self.placeName, of: name) else { return Place() }
        do { return try JSONDecoder().decode(Place.self, from: Data(stored)) } catch {
            throw LarderError(.encoding, "The place of a file to upload cannot be decoded.", cause: error)
        }
    }

    /// - Throws: `.storage`. Without the place the upload would begin anew after a restart, under the same idempotency key.
    func setPlace(_ name: String, _ place: Place) async throws(LarderError) {
        try await run(on: disk) { try write(Array(try JSONEncoder().encode(place)), as: Self.placeName, of: name) }
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
