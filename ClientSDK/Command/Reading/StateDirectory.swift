import Foundation
import LarderArguments
import LarderCoding

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where the command keeps what it knows between runs: a directory of stores, and who logged in last on which server.
struct StateDirectory: Sendable {
    let path: String

    /// The directory that was asked for, or the one that the user's system has for state.
    init(_ given: String?, environment: [String: String]) throws(UsageError) {
        if let given {
            path = given
        } else if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
            path = state + "/larder"
        } else if let home = environment["HOME"], home.hasPrefix("/") {
            path = home + "/.local/state/larder"
        } else {
            throw UsageError(message: "there is no home directory to keep the cache in; say --directory DIR")
        }
    }

    private var usersPath: String { path + "/users.json" }

    /// Who logged in last on a server.
    func user(on server: String) -> String? { read().users[server] }

    /// Why it is not known who logged in last; nil where it is, or where nobody has.
    var problem: String? { read().problem }

    /// A file that does not decode says nothing that could not be said again: nobody is known, and the next login replaces it.
    private func read() -> (users: [String: String], problem: String?) {
        guard let data = FileManager.default.contents(atPath: usersPath) else { return ([:], nil) }
        do {
            return (try JSONDecoder().decode([String: String].self, from: data), nil)
        } catch {
            return ([:], "\(usersPath) is damaged, so nobody counts as logged in last; larder login replaces it")
        }
    }

    /// Notes who logged in; nil forgets.
    func remember(_ user: String?, on server: String) throws {
        var known = read().users
        known[server] = user
        try PrivateFile.write(try JSONEncoder().encode(known), to: usersPath)
    }
}

/// Files that only their owner may read.
enum PrivateFile {
    /// Writes a file as a whole, and makes its directory.
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
                "\(path) cannot be written (\(error.message)). Choose another place, or look at its permissions."
                    + (isLeft ? " \(part) is left over." : "")
            )
        }
    }

    /// Makes a file that is private from its first moment on, and not only once it is written.
    private static func fill(_ path: String, _ bytes: [UInt8]) throws(Failure) {
        // What another run has left there may be open to everybody.
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
