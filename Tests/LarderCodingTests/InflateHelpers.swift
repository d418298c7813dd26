import LarderCoding
import LarderTime
import Testing

/// Decompresses a whole stream that is given in pieces, and reads it in pieces.
///
/// - Parameters:
///   - pieceBytes: the size of the next piece of input.
///   - readBytes: the number of bytes to read next.
func inflate(
    _ stream: [UInt8],
    _ format: CompressionFormat,
    limits: Inflater.Limits = Inflater.Limits(),
    zlib: Result<Zlib, InflateError> = Zlib.system,
    pieceBytes: () -> Int = { .max },
    readBytes: () -> Int = { 65_536 }
) throws(InflateError) -> [UInt8] {
    var inflater = Inflater(format, limits: limits, zlib: zlib)
    var result: [UInt8] = []
    var start = 0
    repeat {
        let piece = Array(stream[start..<min(stream.count, start + min(stream.count, pieceBytes()))])
        start += piece.count
        var consumed = 0
        while true {
            var buffer = [UInt8](repeating: 0, count: readBytes())
            let count = try inflater.read(buffer.count, into: &buffer, from: piece.span, consumed: &consumed)
            result += buffer[..<count]
            if count < buffer.count { break }
        }
    } while start < stream.count
    guard inflater.hasEnded else { throw .truncated }
    return result
}

/// Compresses bytes with the system's zlib.
func deflate(_ content: [UInt8], _ format: CompressionFormat, _ level: Zlib.Level = .good) throws -> [UInt8] {
    try #require(try Zlib.system.get().deflated(content, format, level))
}
