import Foundation
import LarderArguments

/// The directory of the command: the stores of all accounts, and the last user of each server.
struct StateDirectory: Sendable {
    let path: String

    /// Uses the given directory, or `$XDG_STATE_HOME/larder`, or `~/.local/state/larder`.
    init(_ given: String?, environment: [String: String]) throws(UsageError) {
        if let given {
            path = given
        } else if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
            path = state + "/larder"
        } else if let home = environment["HOME"], home.hasPrefix("/") {
            path = home + "/.local/state/larder"
        } else {
            throw UsageError(message: "HOME is not set; choose a directory with --directory DIR")
        }
    }

    private var usersPath: String { path + "/users.json" }

    /// The last user who logged in on a server.
    func user(on server: String) -> String? { read().users[server] }

    /// Why the last user is unknown; nil if the file was read or does not exist.
    var problem: String? { read().problem }

    /// A file that cannot be decoded counts as empty; the next login replaces it.
    private func read() -> (users: [String: String], problem: String?) {
        guard let data = FileManager.default.contents(atPath: usersPath) else { return ([:], nil) }
        do {
            return (try JSONDecoder().decode([String: String].self, from: data), nil)
        } catch {
            return ([:], "\(usersPath) is damaged and ignored; 'larder login' replaces it")
        }
    }

    /// Stores the last user of a server; nil removes it.
    func remember(_ user: String?, on server: String) throws {
        var known = read().users
        known[server] = user
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            try JSONEncoder().encode(known).write(to: URL(fileURLWithPath: usersPath), options: .atomic)
        } catch {
            throw Failure(
                "'\(usersPath)' cannot be written (\(error.localizedDescription)). Choose another --directory."
            )
        }
    }
}
