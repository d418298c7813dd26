import Glibc
import LarderArguments
import LarderBackend
import LarderSQLite

/// `larder-server init DIR`: an example of the user's own data.
enum CollectionExample {
    private static let files = [
        (
            "todos.json",
            """
            [
              { "id": 1, "title": "Buy flour", "done": false, "authorId": 1, "due": "2026-07-01" },
              { "id": 2, "title": "Bake bread", "done": false, "authorId": 2, "due": "2026-07-02" },
              { "id": 3, "title": "Wash up", "done": true, "authorId": 1, "due": null }
            ]

            """
        ),
        (
            "authors.json",
            """
            [
              { "id": 1, "name": "Ana", "address": { "city": "Lisbon" } },
              { "id": 2, "name": "Bo", "address": { "city": "Oslo" } }
            ]

            """
        ),
    ]

    /// Writes the files and prints the next command.
    ///
    /// - Throws: `UsageError` if one of them exists.
    static func write(to directory: String) throws {
        if unsafe mkdir(directory, 0o755) != 0, errno != EEXIST {
            throw UsageError(message: "\(directory): \(unsafe String(cString: strerror(errno)))")
        }
        for (name, _) in files + [("db.json", "")] where Database.fileExists(directory + "/" + name) {
            throw UsageError(message: "\(directory)/\(name) exists; choose another directory")
        }
        for (name, text) in files { try SourceFile.write(Array(text.utf8), to: directory + "/" + name) }
        Terminal.print("Wrote \(files.map { "\(directory)/\($0.0)" }.joined(separator: " and "))")
        Terminal.print("Next: larder-server --data \(directory)")
    }
}
