import Glibc
package import LarderTLS
package import LarderTime

/// The development authority of a user: `authority.pem` and `authority.key` (mode 0600) in a directory (mode 0700).
package struct AuthorityDirectory {
    private let path: String

    package init(_ path: String) { self.path = path }

    /// The standard place: `$XDG_DATA_HOME/larder`, or `~/.local/share/larder`; nil if there is no home directory.
    package static func standard(environment: (String) -> String?) -> String? {
        if let data = environment("XDG_DATA_HOME"), data.hasPrefix("/") { return data + "/larder" }
        return environment("HOME").flatMap { $0.hasPrefix("/") ? $0 + "/.local/share/larder" : nil }
    }

    /// The file with the authority's certificate.
    package var certificatePath: String { path + "/authority.pem" }

    private var keyPath: String { path + "/authority.key" }

    /// The authority. It is made if the directory has none; concurrent calls, also of other processes, get the same one.
    ///
    /// - Throws: `.invalidSettings` if the directory cannot be used, if others can read the key or change the files, or if the files are
    ///   damaged: they are left as they are.
    package func authority(now: WallTime) throws(TLSError) -> TLSAuthority {
        do { try SourceFile.makeDirectory(path) } catch { throw unusable("cannot be made") }
        try check(path, allows: 0o755)
        let lock = unsafe open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0, FileLock.take(lock, waits: true) else { throw unusable("cannot be locked") }
        defer { FileLock.giveBack(lock) }
        if unsafe access(certificatePath, F_OK) == 0 {
            try check(certificatePath, allows: 0o755)
            try check(keyPath, allows: 0o700)
            return try TLSAuthority(
                certificate: readFile(certificatePath),
                key: readFile(keyPath),
                from: "'\(certificatePath)' with '\(keyPath)'"
            )
        }
        let made = try TLSAuthority(name: "Larder Development Authority (\(Self.user()))", now: now)
        // The certificate is last: with it the authority is complete.
        try write(made.keyPEM, to: keyPath, mode: 0o600)
        try write(made.certificate.pem, to: certificatePath, mode: 0o644)
        return made
    }

    /// Refuses what belongs to somebody else, or has a mode that allows more.
    private func check(_ file: String, allows mode: mode_t) throws(TLSError) {
        var status = stat()
        // A missing file is reported when it is read.
        guard unsafe lstat(file, &status) == 0 else { return }
        guard status.st_uid == geteuid() else {
            throw TLSError(
                .invalidSettings,
                "'\(file)' belongs to the user \(status.st_uid), who could read or replace the key of the development authority. Remove it, "
                    + "or set XDG_DATA_HOME to a directory of your own."
            )
        }
        guard status.st_mode & 0o777 & ~mode == 0 else {
            let remedy =
                status.st_mode & S_IFMT == S_IFLNK
                ? "Remove it" : "Run 'chmod go-\(mode == 0o700 ? "rwx" : "w") \(file)'"
            throw TLSError(
                .invalidSettings,
                "Others can \(mode == 0o700 ? "read" : "change") '\(file)' of the development authority. \(remedy), or remove the directory "
                    + "if somebody may have done so: a new authority is made then."
            )
        }
    }

    private func write(_ text: String, to file: String, mode: mode_t) throws(TLSError) {
        do { try SourceFile.replace(file, with: Array(text.utf8), mode: mode) } catch {
            throw unusable("cannot be written to")
        }
    }

    private func unusable(_ what: String) -> TLSError {
        let reason = unsafe String(cString: strerror(errno))
        return TLSError(
            .invalidSettings,
            "The directory of the development authority, '\(path)', \(what): \(reason). Make it writable, or set XDG_DATA_HOME."
        )
    }

    private static func user() -> String {
        let name =
            unsafe getpwuid(getuid()).flatMap { unsafe String(validatingCString: $0.pointee.pw_name) } ?? "unknown"
        return String(name.prefix(24))
    }
}
