import Glibc
import LarderTLS

/// A file in the directory for temporary files that is removed with this object.
final class TemporaryFile: Sendable {
    let path: String

    /// - Throws: `.invalidSettings` if it cannot be written.
    init(_ text: String) throws(TLSError) {
        let directory = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var template = Array("\(directory)/larder-XXXXXX".utf8CString)
        let descriptor = unsafe mkstemp(&template)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let bytes = Array(text.utf8)
        let count = unsafe write(descriptor, bytes, bytes.count)
        if descriptor >= 0 { close(descriptor) }
        guard count == bytes.count else {
            throw TLSError(
                .invalidSettings,
                "No file can be written in '\(directory)'. Make the directory writable, or set TMPDIR."
            )
        }
    }

    deinit { _ = unsafe unlink(path) }
}
