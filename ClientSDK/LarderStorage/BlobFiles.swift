import LarderCoding
import LarderSQLite

/// The files of payloads that are too large for the database, each named by the SHA-256 of its bytes.
///
/// Written and removed under the database's write lock only. While it is held, a file that is not in the table and any temporary
/// file were left by a process that died.
struct BlobFiles: Sendable {
    let directory: String
    let files: DiskFiles

    /// The name for bytes. O(n).
    static func name(for bytes: [UInt8]) -> String { hexEncode(SHA256.hash(bytes)) }

    /// Stores bytes under their name; false if the file exists already.
    func write(_ bytes: [UInt8], _ name: String) throws(SQLiteError) -> Bool {
        let path = path(name)
        guard files.size(path) != Int64(bytes.count) else { return false }
        try files.makeDirectory(folder(name))
        try files.write(bytes, to: path, temporary: "\(directory)/new-\(name)")
        return true
    }

    /// Syncs the directories of files that were just written.
    func sync(_ names: [String]) throws(SQLiteError) {
        guard !names.isEmpty else { return }
        for folder in Set(names.map(folder)) { try files.syncDirectory(folder) }
        try files.syncDirectory(directory)
    }

    func read(_ name: String) -> [UInt8]? { Self.isName(name) ? files.read(path(name)) : nil }

    func size(_ name: String) -> Int64? { Self.isName(name) ? files.size(path(name)) : nil }

    func remove(_ name: String) throws(SQLiteError) { if Self.isName(name) { try files.remove(path(name)) } }

    /// Whether a string has the form of `name(for:)`. A damaged database may contain anything, and an invalid name must not become a path.
    private static func isName(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// The names of all files that begin with two digits.
    func names(in folder: String) -> [String] { files.names(in: "\(directory)/\(folder)") }

    /// The folders, and the temporary files.
    func entries() -> (folders: [String], temporaries: [String]) {
        let names = files.names(in: directory)
        return (names.filter { $0.utf8.count == 2 }, names.filter { $0.hasPrefix("new-") })
    }

    func removeTemporary(_ name: String) throws(SQLiteError) { try files.remove("\(directory)/\(name)") }

    /// Removes everything.
    func erase() throws(SQLiteError) {
        for name in files.names(in: directory) {
            if name.utf8.count == 2 {
                for file in names(in: name) { try files.remove("\(directory)/\(name)/\(file)") }
                _ = try files.removeDirectory("\(directory)/\(name)")
            } else {
                try files.remove("\(directory)/\(name)")
            }
        }
        _ = try files.removeDirectory(directory)
    }

    private func folder(_ name: String) -> String { "\(directory)/\(name.prefix(2))" }

    private func path(_ name: String) -> String { "\(folder(name))/\(name)" }
}
