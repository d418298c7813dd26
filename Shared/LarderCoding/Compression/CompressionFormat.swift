/// The framing of a compressed stream.
package enum CompressionFormat: Sendable, Hashable {
    /// No framing and no checksum (RFC 1951).
    case deflate
    /// A header of 2 bytes and an Adler-32 (RFC 1950).
    case zlib
    /// A header of 10 bytes or more, a CRC-32 and the length (RFC 1952).
    case gzip
}
