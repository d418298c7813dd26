/// The header chunk of a PNG (PNG §11.2.1), verified.
struct PNGHeader: Sendable, Hashable {
    enum ColorType: UInt8, Sendable {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgba = 6

        /// The samples of a pixel in the file.
        var samples: Int {
            switch self {
            case .gray, .palette: 1
            case .grayAlpha: 2
            case .rgb: 3
            case .rgba: 4
            }
        }

        var depths: [Int] {
            switch self {
            case .gray: [1, 2, 4, 8, 16]
            case .palette: [1, 2, 4, 8]
            case .rgb, .grayAlpha, .rgba: [8, 16]
            }
        }
    }

    /// Sums of a whole column of premultiplied samples fit 32 bits up to this (255 · 255 · 65,535).
    static let sideMaximum = 65_535

    let width: Int
    let height: Int
    let depth: Int
    let colorType: ColorType
    let isInterlaced: Bool

    /// - Parameter chunk: the 13 bytes of IHDR.
    init(_ chunk: ArraySlice<UInt8>, limits: DecodedImage.Limits) throws(ImageError) {
        guard chunk.count == 13 else { throw ImageError(.damaged, "The PNG's IHDR has \(chunk.count) bytes.") }
        let start = chunk.startIndex
        width = PNGChunks.integer(chunk, at: start)
        height = PNGChunks.integer(chunk, at: start + 4)
        depth = Int(chunk[start + 8])
        guard let colorType = ColorType(rawValue: chunk[start + 9]), colorType.depths.contains(depth) else {
            throw ImageError(
                .damaged,
                "The PNG has colour type \(chunk[start + 9]) with \(depth) bits, which there is not."
            )
        }
        self.colorType = colorType
        guard chunk[start + 10] == 0, chunk[start + 11] == 0, chunk[start + 12] <= 1 else {
            throw ImageError(.damaged, "The PNG names a compression, filter or interlace method there is not.")
        }
        isInterlaced = chunk[start + 12] == 1
        guard width > 0, height > 0 else { throw ImageError(.damaged, "The PNG has no pixels.") }
        guard width <= Self.sideMaximum, height <= Self.sideMaximum, width * height <= limits.sourcePixelsMaximum else {
            throw ImageError(.tooLarge, "The PNG has \(width) × \(height) pixels, which is beyond the limits.")
        }
    }

    var bitsPerPixel: Int { depth * colorType.samples }

    /// The distance in bytes to the previous pixel for filters (PNG §9.2).
    var bytesPerPixel: Int { max(1, bitsPerPixel / 8) }

    /// The bytes of a row with so many pixels, without its filter's.
    func rowBytes(_ pixels: Int) -> Int { (pixels * bitsPerPixel + 7) / 8 }
}
