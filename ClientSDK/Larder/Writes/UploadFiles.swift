import Foundation
import LarderResources
import LarderStorage
import LarderTime
import Synchronization

/// The files that writes carry: copies in pieces beside the outbox, through the payload transform of the store, and for each the URL at which
/// the server takes the rest. Safe from any thread.
///
/// A copy lives as long as its write is in the outbox. `sweep` removes the others, so a process that dies at any point leaves at most a copy
/// that the next start removes.
final class UploadFiles: Sendable {
    /// A piece must arrive within the time limit of a request, also on a slow network.
    static let pieceBytes = 256 << 10
    /// The place of the URL among the pieces of a copy.
    private static let place = "place"

    private let directory: String
    private let bytesMaximum: Int64
    private let transform: (any DiskStore.PayloadTransform)?
    /// Names of copies whose writes are not in the outbox yet.
    private let fresh = Mutex<Set<String>>([])
    /// Whether the account was erased: nothing is copied any more.
    private let isErased = Atomic<Bool>(false)
    private let mayHaveFiles = Atomic<Bool>(true)

    /// - Parameters:
    ///   - directory: made with the first copy.
    ///   - bytesMaximum: the most bytes of all copies together.
    init(directory: String, bytesMaximum: Int64, transform: (any DiskStore.PayloadTransform)?) {
        self.directory = directory
        self.bytesMaximum = bytesMaximum
        self.transform = transform
    }

    private func path(_ name: String) -> String { directory + "/" + name }

    /// Copies a file durably, readable by this user only. `keep` or `remove` follows.
    ///
    /// - Returns: the name of the copy, and the length of the file.
    /// - Throws: `.invalidArgument` if it cannot be read, is empty, or does not fit; `.storage`.
    func add(_ source: String) throws(LarderError) -> (name: String, length: Int64) {
        let name = RandomKey.make()
        guard let input = FileHandle(forReadingAtPath: source) else {
            throw LarderError(.invalidArgument, "The file \(source) cannot be read. Nothing was written.")
        }
        defer { try? input.close() }
        fresh.withLock { _ = $0.insert(name) }
        mayHaveFiles.store(true, ordering: .relaxed)
        do {
            let length = try copy(input, source, name)
            guard !isErased.load(ordering: .acquiring) else {
                throw LarderError(.closed, "The account is being signed out. Nothing was written.")
            }
            return (name, length)
        } catch {
            remove(name)
            throw LarderError(error)
        }
    }

    private func copy(_ input: FileHandle, _ source: String, _ name: String) throws -> Int64 {
        let room = bytesMaximum - size
        var (length, index): (Int64, Int) = (0, 0)
        do {
            try FileManager.default.createDirectory(
                atPath: path(name),
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            while let bytes = try input.read(upToCount: Self.pieceBytes), !bytes.isEmpty {
                length += Int64(bytes.count)
                guard length <= room else {
                    throw LarderError(
                        .invalidArgument,
                        "The file \(source) does not fit: the files of unsent writes may have \(bytesMaximum) bytes "
                            + "(uploadBytesMaximum), and \(max(0, room)) are left. Nothing was written."
                    )
                }
                try write(Array(bytes), as: "\(index)", of: name)
                index += 1
            }
        } catch let error as LarderError { throw error } catch {
            throw LarderError(.storage, "The copy of \(source) cannot be written: \(error)", cause: error)
        }
        guard length > 0 else {
            throw LarderError(.invalidArgument, "The file \(source) is empty. Nothing was written.")
        }
        return length
    }

    private func write(_ bytes: [UInt8], as piece: String, of name: String) throws {
        let file = "\(path(name))/\(piece)"
        let stored = Data(try transform?.encode(bytes) ?? bytes)
        let permissions: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file, contents: nil, attributes: permissions),
            let output = FileHandle(forWritingAtPath: file)
        else { throw CocoaError(.fileWriteUnknown) }
        defer { try? output.close() }
        try output.write(contentsOf: stored)
        try output.synchronize()
    }

    private func read(_ piece: String, of name: String) -> [UInt8]? {
        guard let stored = FileManager.default.contents(atPath: "\(path(name))/\(piece)") else { return nil }
        // What cannot be decoded is missing.
        return transform.map { try? $0.decode(Array(stored)) } ?? Array(stored)
    }

    /// The bytes of all copies on disk.
    private var size: Int64 {
        names().reduce(0) { sum, name in
            let files = (try? FileManager.default.contentsOfDirectory(atPath: path(name))) ?? []
            return files.reduce(sum) { sum, file in
                let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path(name))/\(file)")
                return sum + ((attributes?[.size] as? NSNumber)?.int64Value ?? 0)
            }
        }
    }

    private func names() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] }

    /// The write with this copy is in the outbox.
    func keep(_ name: String) { fresh.withLock { _ = $0.remove(name) } }

    /// A copy that cannot be removed is tried again by `sweep`.
    func remove(_ name: String) {
        try? FileManager.default.removeItem(atPath: path(name))
        fresh.withLock { _ = $0.remove(name) }
    }

    /// Removes all copies, for a sign-out. One that is being made is removed by `add`.
    func erase() throws(LarderError) {
        isErased.store(true, ordering: .releasing)
        guard FileManager.default.fileExists(atPath: directory) else { return }
        do { try FileManager.default.removeItem(atPath: directory) } catch {
            throw LarderError(.storage, "The files of unsent writes cannot be removed: \(error)", cause: error)
        }
    }

    /// Removes the copies whose writes are not in the outbox any more. Costs nothing while there are no copies.
    ///
    /// - Parameter used: the names of the copies that the outbox needs; nil if that is not known.
    func sweep(keeping used: () -> Set<String>?) {
        guard mayHaveFiles.load(ordering: .relaxed) else { return }
        let found = names()
        // Read after the directory: a copy that was made since is not in it.
        guard let used = used() else { return }
        let kept = fresh.withLock { $0 }.union(used)
        for name in found where !kept.contains(name) { remove(name) }
        if found.isEmpty { mayHaveFiles.store(!fresh.withLock { $0.isEmpty }, ordering: .relaxed) }
    }

    // MARK: Sending

    /// Whether there is a copy, perhaps without some of its pieces.
    func contains(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

    /// The rest of the piece that contains an offset; nil if it is missing.
    func bytes(_ name: String, from offset: Int64) -> [UInt8]? {
        let (index, start) = Int(offset).quotientAndRemainder(dividingBy: Self.pieceBytes)
        guard let piece = read("\(index)", of: name), start < piece.count else { return nil }
        return Array(piece[start...])
    }

    /// Where the server takes the rest.
    struct Place {
        /// Nil if the upload was not begun, or if the server has forgotten it.
        var url: String?
        /// How often the server has forgotten the upload: each beginning after that is another request.
        var losses = 0
    }

    func place(_ name: String) -> Place {
        guard let stored = read(Self.place, of: name) else { return Place() }
        let parts = String(decoding: stored, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        return Place(url: parts.count > 1 ? String(parts[1]) : nil, losses: parts.first.flatMap { Int($0) } ?? 0)
    }

    /// - Throws: `.storage`. Without the place the upload would begin anew after a restart, under the same idempotency key.
    func setPlace(_ name: String, _ place: Place) throws(LarderError) {
        do {
            let text = "\(place.losses)" + (place.url.map { " " + $0 } ?? "")
            try write(Array(text.utf8), as: Self.place, of: name)
        } catch { throw LarderError(.storage, "The place of an upload cannot be stored: \(error)", cause: error) }
    }
}
