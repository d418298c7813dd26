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
    /// Four bytes for each possible index; those beyond the palette are opaque black, as libpng shows them.
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
        guard header.colorType == .palette else {
            let mask = (1 << header.depth) - 1
            transparent = transparency.map { bytes in
                stride(from: 0, to: bytes.count - 1, by: 2).map { (Int(bytes[$0]) << 8 | Int(bytes[$0 + 1])) & mask }
            }
            return
        }
        transparent = nil
        palette = [UInt8](repeating: 0, count: 256 * 4)
        for index in 0..<256 {
            palette[index * 4 + 3] = 255
            guard index * 3 < chunks.palette.count else { continue }
            for channel in 0..<3 { palette[index * 4 + channel] = chunks.palette[index * 3 + channel] }
            if let transparency, index < transparency.count { palette[index * 4 + 3] = transparency[index] }
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
        case (.palette, _): expandPalette(row, start, pixels, &target)
        case (.gray, 1...4): expandSmallGray(row, start, pixels, &target)
        case (.gray, 16) where channels == 1, (.rgb, 16) where channels == 3, (.rgba, 16) where channels == 4:
            for index in 0..<(pixels * channels) { target[start + index] = Self.scaled(row, start + index * 2) }
        default: expandPixels(row, start, pixels, &target)
        }
    }

    private func expandPalette(_ row: [UInt8], _ start: Int, _ pixels: Int, _ target: inout [UInt8]) {
        let depth = header.depth
        let mask = (1 << depth) - 1
        var out = start
        for pixel in 0..<pixels {
            let index =
                depth == 8
                ? Int(row[start + pixel])
                : Int(row[start + pixel * depth / 8]) >> (8 - depth - (pixel * depth & 7)) & mask
            target[out] = palette[index * 4]
            target[out + 1] = palette[index * 4 + 1]
            target[out + 2] = palette[index * 4 + 2]
            if channels == 4 { target[out + 3] = palette[index * 4 + 3] }
            out += channels
        }
    }

    private func expandSmallGray(_ row: [UInt8], _ start: Int, _ pixels: Int, _ target: inout [UInt8]) {
        let depth = header.depth
        let mask = (1 << depth) - 1
        let factor = 255 / mask
        var out = start
        for pixel in 0..<pixels {
            let value = Int(row[start + pixel * depth / 8]) >> (8 - depth - (pixel * depth & 7)) & mask
            let gray = UInt8(value * factor)
            target[out] = gray
            if channels == 4 {
                target[out + 1] = gray
                target[out + 2] = gray
                target[out + 3] = value == transparent?[0] ? 0 : 255
            }
            out += channels
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
