import CSQLite
import Glibc
import LarderTime

/// A whole database in an unnamed file, from which any number of in-memory databases can start.
///
/// Each of them maps the same pages copy-on-write: unchanged pages cost no memory. Immutable, safe from any thread.
package final class DatabaseImage: Sendable {
    private let descriptor: Int32
    /// The length of the database.
    package let byteCount: Int

    /// Takes ownership of an open file that holds a database of `byteCount` bytes.
    private init(descriptor: Int32, byteCount: Int) {
        self.descriptor = descriptor
        self.byteCount = byteCount
    }

    deinit { close(descriptor) }

    /// Opens a file that holds a database. The file must not change.
    ///
    /// - Throws: `.cannotOpen`, or `.notADatabase` if the file is too short or has no SQLite header.
    package convenience init(opening path: String) throws(SQLiteError) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw Self.error(path) }
        var status = stat()
        var header = [UInt8](repeating: 0, count: 16)
        guard unsafe fstat(descriptor, &status) == 0, unsafe pread(descriptor, &header, 16, 0) == 16,
            header.starts(with: "SQLite format 3".utf8), status.st_size > 512, status.st_size % 512 == 0
        else {
            close(descriptor)
            throw SQLiteError(code: .notADatabase, message: "\(path) is not a database")
        }
        self.init(descriptor: descriptor, byteCount: Int(status.st_size))
    }

    /// Copies bytes into an unnamed file.
    convenience init(copying bytes: UnsafeRawBufferPointer) throws(SQLiteError) {
        let descriptor = try Self.anonymousFile()
        var written = 0
        while written < bytes.count {
            let result = unsafe pwrite(
                descriptor,
                bytes.baseAddress.map { unsafe $0 + written },
                bytes.count - written,
                off_t(written)
            )
            if result < 0, errno == EINTR { continue }
            guard result > 0 else {
                let error = Self.error("a copy of the database")
                close(descriptor)
                throw error
            }
            written += result
        }
        // A copy cannot be in WAL mode, because it has no separate log file.
        var mode: [UInt8] = [1, 1]
        guard unsafe pwrite(descriptor, &mode, 2, 18) == 2 else {
            let error = Self.error("a copy of the database")
            close(descriptor)
            throw error
        }
        self.init(descriptor: descriptor, byteCount: bytes.count)
    }

    /// A copy of the whole database.
    package func bytes() throws(SQLiteError) -> [UInt8] {
        guard let bytes = FileBytes.read(descriptor, first: byteCount), bytes.count == byteCount else {
            throw Self.error("the copy of a database")
        }
        return bytes
    }

    /// Maps the image, with room to grow; nil if the system rejects.
    func map() -> Mapping? {
        // Reserved address space costs nothing until it is written. If it is scarce, a smaller reservation is tried.
        for room in [1 << 30, 64 << 20] {
            let length = (byteCount + room + 0xFFFF) & ~0xFFFF
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
            guard let start = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, flags, -1, 0), unsafe start != MAP_FAILED
            else { continue }
            let protection = PROT_READ | PROT_WRITE
            let mapped = unsafe mmap(start, byteCount, protection, MAP_PRIVATE | MAP_FIXED, descriptor, 0)
            if unsafe mapped == start { return unsafe Mapping(start: start, length: length) }
            unsafe munmap(start, length)
        }
        return nil
    }

    /// A private view of an image. Unmapped when released.
    ///
    /// `@safe`: the memory is valid from `init` to `deinit`, and only SQLite gets its address.
    @safe final class Mapping {
        let start: UnsafeMutableRawPointer
        let length: Int

        init(start: UnsafeMutableRawPointer, length: Int) {
            unsafe self.start = start
            self.length = length
        }

        deinit { unsafe munmap(start, length) }
    }

    private static func anonymousFile() throws(SQLiteError) -> Int32 {
        let descriptor = unsafe memfd_create("larder-image", UInt32(LARDER_MFD_CLOEXEC))
        guard descriptor >= 0 else { throw error("a copy of the database") }
        return descriptor
    }

    private static func error(_ what: String) -> SQLiteError {
        SQLiteError(code: .cannotOpen, message: "\(what): \(unsafe String(cString: strerror(errno)))")
    }
}

extension Database {
    /// The current state of the database as an image. Cost: a copy of all pages.
    package func image() throws(SQLiteError) -> DatabaseImage {
        var byteCount: Int64 = 0
        let flags = UInt32(SQLITE_SERIALIZE_NOCOPY)
        if let bytes = unsafe sqlite3_serialize(connection, "main", &byteCount, flags), byteCount > 0 {
            return try unsafe DatabaseImage(copying: UnsafeRawBufferPointer(start: bytes, count: Int(byteCount)))
        }
        guard let bytes = unsafe sqlite3_serialize(connection, "main", &byteCount, 0), byteCount > 0 else {
            throw SQLiteError(
                code: .error,
                message: "the database cannot be copied: out of memory, or it is empty"
            )
        }
        defer { unsafe sqlite3_free(bytes) }
        return try unsafe DatabaseImage(copying: UnsafeRawBufferPointer(start: bytes, count: Int(byteCount)))
    }
}
