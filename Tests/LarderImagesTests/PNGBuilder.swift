import LarderCoding

@testable import LarderImages

/// Splits PNGs into chunks and builds valid and invalid ones.
enum PNGBuilder {
    struct Chunk {
        var type: String
        var content: [UInt8]
    }

    static func header(width: Int, height: Int, depth: Int, color: Int, interlaced: Bool = false) -> Chunk {
        let rest = [UInt8(depth), UInt8(color), 0, 0, interlaced ? 1 : 0]
        return Chunk(type: "IHDR", content: integer(width) + integer(height) + rest)
    }

    private static func crc(_ bytes: [UInt8], _ range: Range<Int>) -> UInt32 {
        (try? Zlib.system.get().crc32(bytes, range)) ?? 0
    }

    static func file(_ chunks: [Chunk]) -> [UInt8] {
        var bytes = PNGChunks.signature
        for chunk in chunks {
            bytes += integer(chunk.content.count)
            let start = bytes.count
            bytes += Array(chunk.type.utf8) + chunk.content
            bytes += integer(Int(crc(bytes, start..<bytes.count)))
        }
        return bytes
    }

    static func chunks(_ file: [UInt8]) -> [Chunk] {
        var chunks: [Chunk] = []
        var position = 8
        while position + 12 <= file.count {
            let length = PNGChunks.integer(file[...], at: position)
            guard position + 12 + length <= file.count else { break }
            chunks.append(
                Chunk(
                    type: String(decoding: file[(position + 4)..<(position + 8)], as: UTF8.self),
                    content: Array(file[(position + 8)..<(position + 8 + length)])
                )
            )
            position += 12 + length
        }
        return chunks
    }

    /// Corrects the checksums of all complete chunks.
    static func mendChecksums(_ file: inout [UInt8]) {
        var position = 8
        while position + 12 <= file.count {
            let length = PNGChunks.integer(file[...], at: position)
            guard position + 12 + length <= file.count else { return }
            let end = position + 8 + length
            file.replaceSubrange(end..<(end + 4), with: integer(Int(crc(file, (position + 4)..<end))))
            position = end + 4
        }
    }

    /// A zlib stream of stored (uncompressed) blocks.
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: bytes.count, by: 60_000) {
            let part = bytes[start..<min(start + 60_000, bytes.count)]
            let length = UInt16(part.count)
            stream.append(part.endIndex == bytes.count ? 1 : 0)
            stream += [UInt8(length & 255), UInt8(length >> 8), UInt8(~length & 255), UInt8(~length >> 8)]
            stream += part
        }
        // Adler-32 (RFC 1950 §8.2).
        let (a, b) = bytes.reduce((1, 0)) { sums, byte in
            let a = (sums.0 + Int(byte)) % 65_521
            return (a, (sums.1 + a) % 65_521)
        }
        return stream + integer(b << 16 | a)
    }

    /// An RGB picture, uncompressed.
    static func picture(width: Int, height: Int, color: (Int, Int) -> (UInt8, UInt8, UInt8)) -> [UInt8] {
        var raw: [UInt8] = []
        for y in 0..<height {
            raw.append(0)
            for x in 0..<width {
                let (red, green, blue) = color(x, y)
                raw += [red, green, blue]
            }
        }
        return file([
            header(width: width, height: height, depth: 8, color: 2), Chunk(type: "IDAT", content: stored(raw)),
            Chunk(type: "IEND", content: []),
        ])
    }

    /// The same picture in a larger file, with an unknown chunk.
    static func padded(_ file: [UInt8], _ padding: [UInt8]) -> [UInt8] {
        var chunks = chunks(file)
        chunks.insert(Chunk(type: "paDd", content: padding), at: 1)
        return self.file(chunks)
    }

    private static func integer(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
