import Glibc

/// Reads and writes whole parts of open files: pread(2) and pwrite(2) may do less than they are asked for.
package enum FileBytes {
    /// Writes bytes at the beginning of a file.
    ///
    /// - Returns: false if not all were written; `errno` has the reason.
    package static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        unsafe bytes.withUnsafeBytes { raw in
            var written = 0
            while written < raw.count {
                let start = unsafe raw.baseAddress.map { unsafe $0 + written }
                let count = unsafe pwrite(descriptor, start, raw.count - written, off_t(written))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                written += count
            }
            return true
        }
    }

    /// The first bytes of a file; fewer if it ends before.
    ///
    /// - Returns: nil if it cannot be read; `errno` has the reason.
    package static func read(_ descriptor: Int32, first maximum: Int) -> [UInt8]? {
        var hasFailed = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: maximum) { buffer, count in
            while count < maximum {
                let start = unsafe UnsafeMutableRawPointer(buffer.baseAddress).map { unsafe $0 + count }
                let result = unsafe pread(descriptor, start, maximum - count, off_t(count))
                if result < 0, errno == EINTR { continue }
                hasFailed = result < 0
                guard result > 0 else { break }
                count += result
            }
        }
        return hasFailed ? nil : bytes
    }
}
