/// Why compressed data cannot be decompressed.
package enum InflateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The data violates its format, or a checksum differs. The text names the part.
    case damaged(String)
    /// The data ends before its last block or its checksum.
    case truncated
    /// The decompressed data exceeds a limit; the text names it.
    case tooLarge(String)
    /// The system's zlib is missing or has no memory. The text says what to install.
    case unavailable(String)

    package var description: String {
        switch self {
        case .damaged(let reason), .unavailable(let reason): reason
        case .truncated: "The compressed data ends in the middle."
        case .tooLarge(let limit): "The decompressed data exceeds \(limit)."
        }
    }
}
