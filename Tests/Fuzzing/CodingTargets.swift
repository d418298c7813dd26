import LarderCoding

@testable import LarderBackend

private func inflated(
    _ pieces: [ArraySlice<UInt8>],
    _ format: CompressionFormat,
    step: Int
) -> (bytes: [UInt8], hasEnded: Bool)? {
    var inflater = Inflater(format, limits: Inflater.Limits(outputBytesMaximum: 1 << 20, ratioMaximum: 1_100))
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: step)
    do throws(InflateError) {
        for piece in pieces {
            let input = Array(piece)
            var consumed = 0
            while true {
                let count = try inflater.read(step, into: &buffer, from: input.span, consumed: &consumed)
                output += buffer[..<count]
                if count < step { break }
            }
            if inflater.hasEnded { break }
            require(consumed == input.count, "\(input.count - consumed) bytes are not read.")
        }
    } catch { return nil }
    return (output, inflater.hasEnded)
}

/// Compressed data in the three framings.
func fuzzInflate(_ bytes: [UInt8]) {
    for format in [CompressionFormat.deflate, .zlib, .gzip] {
        let whole = inflated([bytes[...]], format, step: 4_096)
        let parts = inflated(pieces(bytes), format, step: 777)
        // A piece ends at the end of the stream: what follows it is damage only where it is seen.
        if whole?.hasEnded != true, parts?.hasEnded != true {
            requireEqual(whole?.bytes, parts?.bytes, "Pieces give other \(format) data.")
        }
    }
}

/// Data that is compressed, and decompressed again. The first byte chooses the level.
func fuzzDeflate(_ bytes: [UInt8]) {
    let level: Zlib.Level = (bytes.first ?? 0) & 1 == 0 ? .good : .fast
    for format in [CompressionFormat.deflate, .zlib, .gzip] {
        guard let coded = try? Zlib.system.get().deflated(bytes, format, level) else { fail("There is no zlib.") }
        guard let back = inflated(pieces(coded), format, step: 4_096) else { fail("Own \(format) data is damaged.") }
        require(back.hasEnded && back.bytes == bytes, "Own \(format) data is decompressed to something else.")
    }
}

/// JSON documents: what is accepted is written as JSON with the same value. Bytes that are Base64 are written as the same text.
func fuzzJSON(_ bytes: [UInt8]) throws {
    if let value = try? JSONParser.parse(bytes) {
        var writer = JSONWriter()
        writer.value(value)
        let again = try JSONParser.parse(writer.bytes)
        requireEqual(value, again, "The value changes when it is written: \(text(writer.bytes))")
        var second = JSONWriter()
        second.value(again)
        requireEqual(writer.bytes, second.bytes, "Written JSON changes.")
        require(String(validating: bytes, as: UTF8.self) != nil, "A document that is not UTF-8 is accepted.")
    }
    requireEqual(Base64.decode(Base64.encode(bytes)), bytes, "Base64 changes bytes.")
    if let decoded = Base64.decode(text(bytes)) {
        requireEqual(Base64.decode(Base64.encode(decoded)), decoded, "Base64 changes bytes.")
    }
}
