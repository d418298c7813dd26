import Glibc
package import LarderSQLite
import LarderTime

/// File operations of the store. Each change is a step of the fault plan, if there is one.
package struct DiskFiles: Sendable {
    let faults: (any DiskFaults)?

    package init(faults: (any DiskFaults)?) {
        self.faults = faults
    }

    /// The space at a path that a process without privileges may use, in bytes; nil if the system does not tell.
    static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return nil }
        return Int64(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
        )
    }

    /// Creates a directory with mode 0700, and its parents.
    ///
    /// An existing one is made private if it is empty or belongs to a store.
    package func makeDirectory(_ path: String) throws(SQLiteError) {
        // The system would stop at the zero byte and create another directory.
        guard !path.utf8.contains(0) else {
            throw SQLiteError(
                code: .cannotOpen,
                message: "the path of the store's directory has a NUL byte: use a path without one"
            )
        }
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw SQLiteError(code: .cannotOpen, message: "\(path) is not a directory")
            }
            guard status.st_mode & 0o777 != 0o700 else { return }
            let names = names(in: path)
            guard names.isEmpty || names.contains("store.lock") else { return }
            guard unsafe chmod(path, 0o700) == 0 else { throw Self.error(path) }
            return
        }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            let parent = String(path[..<slash])
            if !exists(parent) { try makeDirectory(parent) }
        }
        try step()
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw Self.error(path) }
        // A power loss must not take the directory with everything in it.
        let parent = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        try syncDirectory(parent)
    }

    /// Writes a file atomically: under a temporary name, synced, renamed.
    package func write(_ bytes: [UInt8], to path: String, temporary: String) throws(SQLiteError) {
        let isTorn = try faults?.step() ?? false
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.error(temporary) }
        defer { close(descriptor) }
        let count = isTorn ? bytes.count / 2 : bytes.count
        try takeRoom(Int64(count))
        guard FileBytes.write(bytes.prefix(count), to: descriptor) else { throw Self.error(temporary) }
        if isTorn { throw Self.planned }
        // With a fault plan, files of the store itself count as synced.
        if faults == nil { guard fsync(descriptor) == 0 else { throw Self.error(temporary) } }
        try step()
        try rename(temporary, to: path)
    }

    /// Syncs a directory, so that the names of new files in it survive a power loss.
    package func syncDirectory(_ path: String) throws(SQLiteError) {
        if let faults { return faults.syncedDirectory(path) }
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.error(path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Self.error(path) }
    }

    /// The bytes of a file, or a prefix; nil if it cannot be read.
    package func read(_ path: String, first countMaximum: Int = .max) -> [UInt8]? {
        if faults?.isDead ?? false { return nil }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let size = min(Int(status.st_size), countMaximum)
        return FileBytes.read(descriptor, first: size).flatMap { $0.count == size ? $0 : nil }
    }

    /// Creates a file of a length with all blocks allocated, or removes it.
    func allocate(_ bytes: Int64, at path: String) throws(SQLiteError) {
        try remove(path)
        try step()
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.error(path) }
        defer { close(descriptor) }
        do throws(SQLiteError) {
            try takeRoom(bytes)
            errno = posix_fallocate(descriptor, 0, off_t(bytes))
            guard errno == 0 else { throw Self.error(path) }
        } catch {
            unsafe unlink(path)
            throw error
        }
    }

    /// Renames a file, replacing the target.
    func rename(_ path: String, to other: String) throws(SQLiteError) {
        try step()
        let replaced = faults == nil ? 0 : size(other) ?? 0
        let result = unsafe Glibc.rename(path, other)
        guard result == 0 else { throw Self.error(path) }
        faults?.giveRoom(replaced)
    }

    /// Removes a file. A missing one is no error.
    package func remove(_ path: String) throws(SQLiteError) {
        guard exists(path) else { return }
        try step()
        let removed = faults == nil ? 0 : size(path) ?? 0
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw Self.error(path) }
        faults?.giveRoom(removed)
    }

    /// Removes a directory if it is empty; false if it is not.
    package func removeDirectory(_ path: String) throws(SQLiteError) -> Bool {
        guard exists(path) else { return true }
        try step()
        if unsafe rmdir(path) == 0 || errno == ENOENT { return true }
        guard errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY else { throw Self.error(path) }
        return false
    }

    /// Whether the name exists, even as a dangling link.
    package func exists(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0
    }

    /// The length of a file; nil if there is none.
    package func size(_ path: String) -> Int64? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    /// The names in a directory, sorted; empty if there is none.
    package func names(in path: String) -> [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Runs `body` under an exclusive or shared lock of a file.
    ///
    /// - Parameter makes: whether a missing file is created; otherwise it is an error.
    package func locked<Result>(
        _ path: String,
        isShared: Bool = false,
        makes: Bool = true,
        _ body: () throws -> Result
    ) throws -> Result {
        if exists(path) || !makes { try faults?.checkAlive() } else { try step() }
        let descriptor = unsafe open(path, O_RDWR | (makes ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.error(path) }
        defer { FileLock.giveBack(descriptor) }
        guard FileLock.take(descriptor, isShared: isShared, waits: true) else { throw Self.error(path) }
        return try body()
    }

    private func step() throws(SQLiteError) {
        if let faults, try faults.step() { throw Self.planned }
    }

    private func takeRoom(_ bytes: Int64) throws(SQLiteError) {
        guard let faults, !faults.takeRoom(bytes) else { return }
        throw SQLiteError(code: .full, message: "a planned fault")
    }

    private static var planned: SQLiteError { SQLiteError(code: .inputOutput, message: "a planned fault") }

    /// The error for `errno` as an SQLite error.
    private static func error(_ path: String) -> SQLiteError {
        let number = errno
        let code: SQLiteError.Code =
            switch number {
            case ENOSPC, EDQUOT: .full
            case EACCES, EPERM, EROFS: .readOnly
            case ENOENT, ENOTDIR, ELOOP, EISDIR, ENAMETOOLONG, EMFILE, ENFILE: .cannotOpen
            default: .inputOutput
            }
        return SQLiteError(code: code, message: "\(path): \(unsafe String(cString: strerror(number)))")
    }
}
