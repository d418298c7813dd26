/// Expands the rows of a PNG to 8-bit samples: gray, RGB or RGBA, whichever is the smallest that is sufficient.
///
/// Samples of other depths are scaled to 8 bits, rounded to the nearest. Gamma, colour profiles and `sBIT` are ignored on
/// purpose: pictures are shown as the values they were written with, as image views do by default.
struct PNGRowExpander: Sendable {
    private let header: PNGHeader
    /// 1 for gray, 3 for RGB, 4 for RGBA.
    let channels: Int
    /// Whether rows need no expansion.
    let isIdentity: Bool
    /// Four bytes for each possible index, also of gray below 8 bits; those beyond the palette are opaque black, as libpng shows them.
    private var palette: [UInt8] = []
    /// The samples that are transparent, at the file's depth.
    private let transparent: [Int]?

    init(_ chunks: PNGChunks) {
        header = chunks.header
        let transparency = chunks.transparency
        switch header.colorType {
        case .gray: channels = transparency == nil ? 1 : 4
        case .rgb, .palette: channels = transparency == nil ? 3 : 4
        case .grayAlpha, .rgba: channels = 4
        }
        isIdentity = header.depth == 8 && header.colorType != .palette && channels == header.colorType.samples
        let header = header
        let mask = (1 << header.depth) - 1
        let transparent =
            header.colorType == .palette
            ? nil
            : transparency.map { bytes in
                stride(from: 0, to: bytes.count - 1, by: 2).map { (Int(bytes[$0]) << 8 | Int(bytes[$0 + 1])) & mask }
            }
        self.transparent = transparent
        guard header.colorType == .palette || (header.colorType == .gray && header.depth < 8) else { return }
        palette = (0...mask).flatMap { index -> [UInt8] in
            if header.colorType == .gray {
                let gray = UInt8(index * 255 / mask)
                return [gray, gray, gray, index == transparent?[0] ? 0 : 255]
            }
            let alpha = transparency.flatMap { index < $0.count ? $0[index] : nil } ?? 255
            return index * 3 < chunks.palette.count
                ? chunks.palette[(index * 3)..<(index * 3 + 3)] + [alpha] : [0, 0, 0, 255]
        }
    }

    /// Expands a row.
    ///
    /// - Parameters:
    ///   - row: the row of the file, from `start` on.
    ///   - pixels: the number of pixels.
    ///   - target: gets `pixels * channels` bytes from `start` on too.
    func expand(_ row: [UInt8], from start: Int, pixels: Int, into target: inout [UInt8]) {
        switch (header.colorType, header.depth) {
        case _ where !palette.isEmpty: expandPalette(row, start, pixels, &target)
        case (.gray, 16) where channels == 1, (.rgb, 16) where channels == 3, (.rgba, 16) where channels == 4:
            for index in 0..<(pixels * channels) { target[start + index] = Self.scaled(row, start + index * 2) }
        default: expandPixels(row, start, pixels, &target)
        }
    }

    private func expandPalette(_ row: [UInt8], _ start: Int, _ pixels: Int, _ target: inout [UInt8]) {
        let depth = header.depth
        let mask = (1 << depth) - 1
        for pixel in 0..<pixels {
            let index = Int(row[start + pixel * depth / 8]) >> (8 - depth - (pixel * depth & 7)) & mask
            for channel in 0..<channels {
                target[start + pixel * channels + channel] = palette[index * 4 + channel]
            }
        }
    }

    /// Expands gray with alpha, or samples with a transparent colour.
    private func expandPixels(_ row: [UInt8], _ start: Int, _ pixels: Int, _ target: inout [UInt8]) {
        let samples = header.colorType.samples
        let bytes = header.depth / 8
        let isGray = samples <= 2
        var position = start
        var out = start
        for _ in 0..<pixels {
            let red = Self.sample(row, position, bytes)
            let green = isGray ? red : Self.sample(row, position + bytes, bytes)
            let blue = isGray ? red : Self.sample(row, position + 2 * bytes, bytes)
            let alpha: UInt8
            if let transparent {
                let isTransparent =
                    red.full == transparent[0] && (isGray || green.full == transparent[1])
                    && (isGray || blue.full == transparent[2])
                alpha = isTransparent ? 0 : 255
            } else {
                alpha = Self.sample(row, position + (samples - 1) * bytes, bytes).scaled
            }
            target[out] = red.scaled
            target[out + 1] = green.scaled
            target[out + 2] = blue.scaled
            target[out + 3] = alpha
            position += samples * bytes
            out += 4
        }
    }

    private static func sample(_ row: [UInt8], _ index: Int, _ bytes: Int) -> (full: Int, scaled: UInt8) {
        bytes == 1
            ? (Int(row[index]), row[index]) : (Int(row[index]) << 8 | Int(row[index + 1]), scaled(row, index))
    }

    /// Rounds 16 bits to 8.
    private static func scaled(_ row: [UInt8], _ index: Int) -> UInt8 {
        let value = UInt32(row[index]) << 8 | UInt32(row[index + 1])
        return UInt8(truncatingIfNeeded: (value * 255 + 32_767) / 65_535)
    }
}
