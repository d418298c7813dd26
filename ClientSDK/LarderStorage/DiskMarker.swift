/// An empty file whose existence says something that survives a loss of power.
package struct DiskMarker: Sendable {
    private let directory: String
    private let name: String
    private let files: DiskFiles

    /// - Parameters:
    ///   - name: the name of the file.
    ///   - directory: an existing directory.
    ///   - store: a store of that directory.
    package init(_ name: String, in directory: String, of store: DiskStore.Configuration) {
        self.name = name
        self.directory = directory
        files = DiskFiles(faults: store.faults)
    }

    private var path: String { "\(directory)/\(name)" }
    private var temporaryPath: String { path + ".new" }

    package var isSet: Bool { files.exists(path) }

    package func set() throws(DiskError) {
        do {
            try files.write([], to: path, temporary: temporaryPath)
            try files.syncDirectory(directory)
        } catch {
            throw DiskError(error)
        }
    }

    package func remove() throws(DiskError) {
        do {
            guard files.exists(path) || files.exists(temporaryPath) else { return }
            try files.remove(path)
            try files.remove(temporaryPath)
            try files.syncDirectory(directory)
        } catch {
            throw DiskError(error)
        }
    }
}
