import Glibc

/// A part of an open file, sent in pieces. The file is closed when its last region is released.
package struct FileRegion: Sendable {
    private final class File: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }
    }

    private let file: File
    let range: Range<Int>

    /// Opens a file with a known length.
    ///
    /// - Throws: if it cannot be opened or has another length.
    package init(opening path: String, byteCount: Int) throws(EngineError) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw EngineError("Opening the file failed", errno) }
        file = File(descriptor)
        range = 0..<byteCount
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, Int(status.st_size) == byteCount else {
            throw EngineError("The file does not have the expected length of \(byteCount) bytes")
        }
    }

    private init(_ file: File, _ range: Range<Int>) {
        self.file = file
        self.range = range
    }

    /// A part of this region, counted from its beginning.
    package func extracting(_ part: Range<Int>) -> FileRegion {
        precondition(part.upperBound <= range.count, "A part must lie inside its region.")
        return FileRegion(file, (range.lowerBound + part.lowerBound)..<(range.lowerBound + part.upperBound))
    }

    /// Reads bytes; nil if the file has become shorter or the read fails.
    func read(at offset: Int, count: Int) -> [UInt8]? {
        SystemCall.read(file.descriptor, at: range.lowerBound + offset, count: count)
    }
}
