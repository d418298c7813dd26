import LarderHTTP
import LarderSQLite
import LarderTime
import Synchronization

extension WorldRegistry {
    /// Stores the present state under a name; it replaces a snapshot with that name.
    ///
    /// - Parameter isKept: whether it is also written to the directory of snapshots.
    func takeSnapshot(_ name: String, of id: String, isKept: Bool = false) throws(Problem) -> Snapshot {
        try Self.check(name: name, "name")
        let world = try world(id)
        let snapshot = Snapshot(image: try world.image(), time: world.clock.now)
        if isKept {
            let path = try path(of: name)
            do { try SourceFile.replace(path, with: try snapshot.image.bytes(), mode: 0o600) } catch {
                throw ProblemType.storageUnavailable(
                    "The snapshot cannot be written: \(SQLiteError.summary(of: error))"
                )
            }
        }
        try state.withLock { state throws(Problem) in
            guard let entry = state.entries[id] else {
                throw ProblemType.unknownWorld("The world '\(id)' was removed.")
            }
            guard entry.snapshots[name] != nil || entry.snapshots.count < Self.snapshotsMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Self.snapshotsMaximum) snapshots.",
                    limit: Self.snapshotsMaximum
                )
            }
            state.entries[id]?.snapshots[name] = snapshot
        }
        return snapshot
    }

    /// Restores a snapshot from memory or from the directory of snapshots. A clock that is frozen or runs by itself is set back
    /// too, and keeps its mode.
    ///
    /// - Throws: also for a world in a database file.
    func restore(_ name: String, in id: String) throws(Problem) {
        try Self.check(name: name, "name")
        let world = try world(id)
        _ = try origin(of: id)
        if let snapshot = state.withLock({ $0.entries[id]?.snapshots[name] }) {
            let isReal = world.clock.mode == .real
            guard isReal || snapshot.time - world.clock.now <= world.clock.remaining else {
                throw ProblemType.invalidParameter(
                    "The snapshot is of \(snapshot.time.rfc3339()), which is beyond the range of the world's clock. Make a new world."
                )
            }
            try world.replace(with: snapshot.image)
            if !isReal { world.clock.set(to: snapshot.time) }
            return
        }
        guard options.snapshotsDirectory != nil, Database.fileExists(try path(of: name)) else {
            let names = snapshots(of: id).map(\.name).joined(separator: ", ")
            throw ProblemType.notFound(
                "There is no snapshot '\(name)'. Existing snapshots: \(names.isEmpty ? "none" : names)."
            )
        }
        try world.replace(with: try keptImage(name))
    }

    /// A snapshot from the directory of snapshots, migrated to this program's schema.
    private func keptImage(_ name: String) throws(Problem) -> DatabaseImage {
        do {
            let database = try Database(.image(try DatabaseImage(opening: try path(of: name))))
            try WorldSchema.migrations.run(on: database)
            return try database.image()
        } catch let problem as Problem {
            throw problem
        } catch {
            let reason = SQLiteError.summary(of: error)
            throw ProblemType.invalidParameter("The snapshot '\(name)' cannot be used: \(reason)")
        }
    }

    func snapshots(of id: String) -> [(name: String, snapshot: Snapshot)] {
        state.withLock { $0.entries[id]?.snapshots ?? [:] }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The name was validated: it cannot leave the directory.
    private func path(of name: String) throws(Problem) -> String {
        guard let directory = options.snapshotsDirectory else {
            throw ProblemType.invalidParameter("Start the server with --snapshots DIR to keep snapshots in files.")
        }
        return directory + "/" + name + ".larder"
    }
}
