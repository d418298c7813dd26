/// Writes a chunked body (RFC 9112 §7.1), without extensions and trailers.
package enum ChunkedEncoder {
    /// The last chunk and the end of the body.
    package static let end = Array("0\r\n\r\n".utf8)

    /// One chunk; nothing for no bytes, because an empty chunk ends the body.
    package static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return [] }
        let size = String(bytes.count, radix: 16)
        var chunk: [UInt8] = []
        chunk.reserveCapacity(size.utf8.count + bytes.count + 4)
        chunk += size.utf8
        chunk += [13, 10]
        chunk += bytes
        chunk += [13, 10]
        return chunk
    }
}
