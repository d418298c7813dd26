/// The tables of a JPEG as they were defined so far (ITU T.81 §B.2.4). A later definition replaces an earlier one.
struct JPEGTables {
    /// The factors of each table in natural order.
    private(set) var quantization: [[UInt16]?] = Array(repeating: nil, count: 4)
    /// Four codes for DC, then four for AC.
    private(set) var codes: [JPEGHuffmanCode?] = Array(repeating: nil, count: 8)
    private(set) var restartInterval = 0

    mutating func defineQuantization(_ segment: ArraySlice<UInt8>) throws(ImageError) {
        var rest = segment
        while let head = rest.popFirst() {
            let size = head >> 4 == 0 ? 1 : 2
            guard head >> 4 <= 1, head & 15 < 4, rest.count >= 64 * size else {
                throw ImageError(.damaged, "The JPEG has an invalid quantisation table.")
            }
            var table = [UInt16](repeating: 0, count: 64)
            for index in 0..<64 {
                let place = rest.startIndex + index * size
                table[Int(JPEGZigzag.order[index])] =
                    size == 1 ? UInt16(rest[place]) : UInt16(rest[place]) << 8 | UInt16(rest[place + 1])
            }
            quantization[Int(head & 15)] = table
            rest = rest.dropFirst(64 * size)
        }
    }

    mutating func defineCodes(_ segment: ArraySlice<UInt8>) throws(ImageError) {
        var rest = segment
        while let head = rest.popFirst() {
            let counts = rest.prefix(16)
            let total = counts.reduce(0) { $0 + Int($1) }
            guard head >> 4 <= 1, head & 15 < 4, counts.count == 16, total <= 256, rest.count >= 16 + total else {
                throw ImageError(.damaged, "The JPEG has an invalid Huffman table.")
            }
            let symbols = rest.dropFirst(16).prefix(total)
            let isDC = head >> 4 == 0
            codes[Int(head >> 4) * 4 + Int(head & 15)] = try JPEGHuffmanCode(
                counts: counts,
                symbols: symbols,
                isDC: isDC
            )
            rest = rest.dropFirst(16 + total)
        }
    }

    mutating func defineRestarts(_ segment: ArraySlice<UInt8>) throws(ImageError) {
        guard segment.count >= 2 else {
            throw ImageError(.damaged, "The JPEG has an invalid restart interval.")
        }
        restartInterval = Int(segment[segment.startIndex]) << 8 | Int(segment[segment.startIndex + 1])
    }
}

/// The order of a block's coefficients in the file (ITU T.81 §A.3.6).
enum JPEGZigzag {
    /// The natural index of each coefficient, and 16 more entries, because a run can lead beyond the last.
    static let order: [UInt8] =
        [
            0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
            14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46,
            53, 60, 61, 54, 47, 55, 62, 63,
        ] + [UInt8](repeating: 63, count: 16)
}
