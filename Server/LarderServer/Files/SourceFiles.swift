import LarderCoding
import LarderEngine
import LarderTime
import Synchronization

/// The files that a server was started with: what was loaded from them, when, and what is wrong with them since. Safe from any thread.
///
/// A file that cannot be used leaves the last good version in use.
final class SourceFiles: Sendable {
    /// What loading has made of a source, in a few words.
    struct Loaded: Sendable {
        let summary: String
        var warnings: [String] = []
        /// Whether it differs from what was loaded before.
        var isNew = true

        init(_ summary: String, warnings: [String] = [], isNew: Bool = true) {
            (self.summary, self.warnings, self.isNew) = (summary, warnings, isNew)
        }

        init(count: Int, _ noun: String, warnings: [String] = []) {
            self.init("\(count) \(noun)\(count == 1 ? "" : "s")", warnings: warnings)
        }
    }

    struct Source: Sendable {
        /// `routes`, `data`, `contract` or `faults`.
        let kind: String
        let path: String
        /// Sets the directories whose files it needs, also before it throws: a file that is missing may appear there.
        let load: @Sendable (inout Set<String>) throws -> Loaded
    }

    struct Report: Sendable {
        let kind: String
        let path: String
        var loadedAt: WallTime
        var summary: String
        /// Why the newest version is not used.
        var error: String?
        var directories: Set<String>

        var json: JSONValue {
            .members([
                "kind": .string(kind), "path": .string(path), "loadedAt": .string(loadedAt.rfc3339()),
                "summary": .string(summary), "error": error.map { .string($0) },
            ])
        }
    }

    private struct State {
        var sources: [Source] = []
        var reports: [Report] = []
        var watch: FileWatch?
    }

    private let state = Mutex(State())
    private let wall: any WallClock
    /// Told of each version that is loaded, and of each that cannot be.
    private let announce: (@Sendable (String) -> Void)?

    init(wall: any WallClock, announce: (@Sendable (String) -> Void)?) {
        self.wall = wall
        self.announce = announce
    }

    var reports: [Report] { state.withLock { $0.reports } }

    /// Loads a source for the first time, and again whenever one of its files changes if `watch` was called.
    ///
    /// - Throws: the error of `source.load`.
    /// - Returns: its warnings.
    @discardableResult func add(_ source: Source) throws -> [String] {
        // Watched first, so that no change is missed.
        let watch = state.withLock { $0.watch }
        // A directory can be removed and made again.
        try watch?.add(SourceFile.parent(of: source.path))
        try watch?.add(SourceFile.folder(of: source.path))
        var directories: Set<String> = []
        let loaded = try source.load(&directories)
        for directory in directories { try watch?.add(directory) }
        state.withLock { [directories] state in
            state.sources.append(source)
            state.reports.append(
                Report(
                    kind: source.kind,
                    path: source.path,
                    loadedAt: wall.now,
                    summary: loaded.summary,
                    directories: directories
                )
            )
        }
        return loaded.warnings
    }

    /// Begins to watch the files of the sources that are added afterwards.
    func watch() throws {
        let watch = try FileWatch { [weak self] paths in self?.changed(paths) }
        state.withLock { $0.watch = watch }
    }

    func stop() {
        let watch = state.withLock { state in
            defer { state.watch = nil }
            return state.watch
        }
        watch?.stop()
    }

    /// On the thread of the watch.
    private func changed(_ paths: Set<String>) {
        let (sources, reports, watch) = state.withLock { ($0.sources, $0.reports, $0.watch) }
        for (index, source) in sources.enumerated() where reports[index].concerns(paths) {
            var directories: Set<String> = []
            do {
                try watch?.add(SourceFile.folder(of: source.path))
                let result = Result { try source.load(&directories) }
                state.withLock { [directories] in $0.reports[index].directories = directories }
                // One that does not exist has no files yet.
                for directory in directories where SourceFile.isDirectory(directory) { try watch?.add(directory) }
                let loaded = try result.get()
                let isRepaired = reports[index].error != nil
                state.withLock { state in
                    state.reports[index].loadedAt = wall.now
                    state.reports[index].summary = loaded.summary
                    state.reports[index].error = nil
                }
                if loaded.isNew || isRepaired { announce?("\(source.path): loaded \(loaded.summary)") }
                for warning in loaded.warnings { announce?("\(source.path): \(warning)") }
            } catch {
                let text = "\(error)"
                state.withLock { $0.reports[index].error = text }
                announce?("\(text); the last good version stays in use")
            }
        }
    }

}

extension SourceFiles.Report {
    /// Whether the source has to be loaded again. Hidden files and backups of editors do not count.
    fileprivate func concerns(_ paths: Set<String>) -> Bool {
        paths.contains { changed in
            // Below `/` itself.
            let changed = changed.hasPrefix("//") ? changed.dropFirst() : changed[...]
            if changed == path || changed == "./" + path { return true }
            guard let slash = changed.lastIndex(of: "/"), kind != "faults", kind != "contract" else { return false }
            let name = changed[changed.index(after: slash)...]
            guard !name.hasPrefix("."), !name.hasSuffix("~") else { return false }
            return directories.contains(slash == changed.startIndex ? "/" : String(changed[..<slash]))
        }
    }
}
