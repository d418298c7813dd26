import Foundation
import Glibc
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
        try PrivateFile.write(try JSONEncoder().encode(known), to: usersPath)
    }
}

/// Writes files that only their owner can read.
enum PrivateFile {
    /// Replaces a file atomically, and creates its directory if it does not exist.
    static func write(_ data: Data, to path: String) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let manager = FileManager.default
        if !manager.fileExists(atPath: folder) {
            try manager.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        }
        let part = path + ".part"
        do {
            try fill(part, Array(data))
            guard unsafe rename(part, path) == 0 else { throw Failure(unsafe String(cString: strerror(errno))) }
        } catch let error as Failure {
            let isLeft = unsafe unlink(part) != 0 && errno != ENOENT
            throw Failure(
                "'\(path)' cannot be written (\(error.message)). Choose another path, or check its permissions."
                    + (isLeft ? " The temporary file '\(part)' could not be removed." : "")
            )
        }
    }

    /// Creates a file with mode 0600 before anything is written to it.
    private static func fill(_ path: String, _ bytes: [UInt8]) throws(Failure) {
        // A file that an earlier run has left may have other permissions.
        _ = unsafe unlink(path)
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Failure(unsafe String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes[written...].withUnsafeBytes { raw in
                unsafe pwrite(descriptor, raw.baseAddress, raw.count, off_t(written))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure(unsafe String(cString: strerror(errno))) }
            written += count
        }
    }
}
