import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

/// The files of `--data`: `main` begins again when they change, and its documents are written into them when that is asked for.
///
/// Safe from any thread. Reading and writing exclude each other.
final class CollectionFiles: Sendable {
    private struct State {
        /// The contents that `main` has begun with, or that were written.
        var fingerprint: UInt64
        /// The number of the commit up to which the files were written.
        var writtenCommit: Int64 = 0
    }

    let directory: String
    private let worlds: WorldRegistry
    private let state: Mutex<State>
    /// Whether each change is written.
    private let writesBack: Bool
    private let isWaiting = Atomic(false)
    private let announce: (@Sendable (String) -> Void)?

    init(
        _ directory: String,
        _ worlds: WorldRegistry,
        writesBack: Bool,
        _ announce: (@Sendable (String) -> Void)?
    ) throws(FileError) {
        self.directory = directory
        self.worlds = worlds
        self.writesBack = writesBack
        self.announce = announce
        state = Mutex(State(fingerprint: try CollectionReader.read(directory).fingerprint))
    }

    func load() throws -> SourceFiles.Loaded {
        // A change that a broken file has kept from being written.
        defer { finish() }
        return try state.withLock { state in
            let contents = try CollectionReader.read(directory)
            let isNew = state.fingerprint != contents.fingerprint
            if isNew { try worlds.restart() }
            state.fingerprint = contents.fingerprint
            return SourceFiles.Loaded(contents.collectionSummary, isNew: isNew)
        }
    }

    /// Writes each file whose documents `main` has changed; other files keep their text. Each is replaced as a whole and keeps its mode.
    ///
    /// - Returns: the paths of the written files.
    /// - Throws: `FileError` if the files were edited and are not loaded yet, or cannot be written.
    @discardableResult func write() throws -> [String] {
        try state.withLock { state in
            let old = try CollectionReader.read(directory)
            guard old.fingerprint == state.fingerprint else {
                throw FileError("\(directory): was edited meanwhile, so that nothing was written")
            }
            let commit = worlds.main.commitCount
            let all = try worlds.main.collectionTexts()
            let changed = all.filter { !old.collectionTexts.contains($0) }
            var files = changed.map { (path: "\(directory)/\($0.name).json", text: $0.text) }
            if !changed.isEmpty, try SourceFile.names(in: directory) == ["db.json"] {
                let members = all.map { "\"\($0.name)\": \($0.text)" }.joined(separator: ",\n")
                files = [(directory + "/db.json", "{\n\(members)\n}")]
            }
            for file in files { try SourceFile.replace(file.path, with: Array((file.text + "\n").utf8)) }
            state.fingerprint = try CollectionReader.read(directory).fingerprint
            state.writtenCommit = commit
            return files.map(\.path)
        }
    }

    /// Writes the files soon if each change is written and `main` has one that is not.
    func changed(on loop: EventLoop) {
        guard writesBack, hasChanged, !isWaiting.exchange(true, ordering: .acquiringAndReleasing) else { return }
        loop.offload { [self] in
            // A change from now on is written in another turn.
            isWaiting.store(false, ordering: .releasing)
            finish()
        }
    }

    /// Writes what is not written yet if each change is.
    func finish() {
        guard writesBack, hasChanged else { return }
        do { try write() } catch { announce?("\(error); the latest changes are not written yet") }
    }

    private var hasChanged: Bool { worlds.main.commitCount > state.withLock { $0.writtenCommit } }
}
