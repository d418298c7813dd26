import LarderCoding

/// The chunks of a PNG (PNG §5.3), located and verified before decoding.
struct PNGChunks: Sendable {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    let header: PNGHeader
    /// Red, green, blue of each entry.
    private(set) var palette: [UInt8] = []
    /// The content of tRNS.
    private(set) var transparency: [UInt8]?
    /// The ranges of the compressed pixels.
    private(set) var data: [Range<Int>] = []

    init(_ bytes: [UInt8], limits: DecodedImage.Limits, zlib: Zlib) throws(ImageError) {
        guard bytes.starts(with: Self.signature) else {
            throw ImageError(bytes.count < 8 ? .truncated : .damaged, "This does not begin as a PNG does.")
        }
        var header: PNGHeader?
        var dataHasEnded = false
        var isWhole = false
        var position = 8
        while !isWhole {
            guard bytes.count - position >= 8 else { break }
            let length = Self.integer(bytes[...], at: position)
            let type = Self.integer(bytes[...], at: position + 4)
            let start = position + 8
            let isCritical = type & 0x2000_0000 == 0
            guard length <= 0x7FFF_FFFF, Self.isType(bytes[(position + 4)..<(position + 8)]) else {
                throw ImageError(.damaged, "The PNG has a chunk at \(position) that cannot be.")
            }
            guard bytes.count - start >= length + 4 else { break }
            let end = start + length
            // Checked for all chunks, also unused ones: a wrong one means that these are not the bytes that were sent.
            guard zlib.crc32(bytes, (start - 4)..<end) == UInt32(Self.integer(bytes[...], at: end)) else {
                throw ImageError(.damaged, "The checksum of the PNG's chunk at \(position) is wrong.")
            }
            guard header != nil || type == Self.ihdr else {
                throw ImageError(.damaged, "The PNG does not begin with IHDR.")
            }
            if type != Self.idat, !data.isEmpty { dataHasEnded = true }
            switch type {
            case Self.ihdr:
                guard header == nil else { throw ImageError(.damaged, "The PNG has two IHDR.") }
                header = try PNGHeader(bytes[start..<end], limits: limits)
            case Self.plte:
                guard palette.isEmpty, data.isEmpty, length % 3 == 0, (1...256).contains(length / 3) else {
                    throw ImageError(.damaged, "The PNG's palette is misplaced or of \(length) bytes.")
                }
                palette = Array(bytes[start..<end])
            case Self.trns:
                guard transparency == nil, data.isEmpty else {
                    throw ImageError(.damaged, "The PNG's transparency is misplaced.")
                }
                transparency = Array(bytes[start..<end])
            case Self.idat:
                guard !dataHasEnded else { throw ImageError(.damaged, "The PNG's data is in two places.") }
                data.append(start..<end)
            case Self.iend:
                guard length == 0 else { throw ImageError(.damaged, "The PNG's end has content.") }
                isWhole = true
            default:
                if isCritical {
                    throw ImageError(.damaged, "The PNG needs a chunk that no version of the format has.")
                }
            }
            position = end + 4
        }
        guard let header else { throw ImageError(.truncated, "The PNG ends within its header.") }
        self.header = header
        guard isWhole else {
            throw ImageError(.truncated, "The PNG ends after \(bytes.count) bytes without its last chunk.")
        }
        guard !data.isEmpty else {
            throw ImageError(.damaged, "The PNG has no pixels in it.")
        }
        try checkColors()
    }

    private func checkColors() throws(ImageError) {
        let count = transparency?.count
        switch header.colorType {
        case .palette:
            guard !palette.isEmpty else { throw ImageError(.damaged, "The PNG has no palette and needs one.") }
            guard palette.count / 3 <= 1 << header.depth, (count ?? 0) <= palette.count / 3 else {
                throw ImageError(.damaged, "The PNG's palette does not suit its depth.")
            }
        case .gray:
            guard (count ?? 2) == 2 else { throw ImageError(.damaged, "The PNG's transparency is not a gray.") }
        case .rgb:
            guard (count ?? 6) == 6 else {
                throw ImageError(.damaged, "The PNG's transparency chunk is invalid.")
            }
        case .grayAlpha, .rgba:
            guard count == nil else {
                throw ImageError(.damaged, "The PNG has transparency twice.")
            }
        }
    }

    private static let ihdr = 0x4948_4452
    private static let plte = 0x504C_5445
    private static let trns = 0x7452_4E53
    private static let idat = 0x4944_4154
    private static let iend = 0x4945_4E44

    /// A big-endian number of four bytes.
    static func integer(_ bytes: ArraySlice<UInt8>, at index: Int) -> Int {
        Int(bytes[index]) << 24 | Int(bytes[index + 1]) << 16 | Int(bytes[index + 2]) << 8 | Int(bytes[index + 3])
    }

    private static func isType(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    }
}
