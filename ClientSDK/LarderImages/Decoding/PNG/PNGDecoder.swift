import LarderCoding

/// Decodes PNG (ISO/IEC 15948): every colour type and depth, transparency, interlacing. Needs the system's zlib; without it
/// decoding fails with `.unsupportedFormat`.
///
/// Rows are downsampled while they are decompressed: besides the file and the result it uses two rows, a row of sums and
/// 40 KiB for zlib (some hundred kilobytes for a 12-megapixel picture). An interlaced picture needs up to 4 bytes for each of its pixels, at
/// most `DecodedImage.Limits.workingBytesMaximum`.
///
/// All checksums are verified, also of unused chunks: a picture with a flipped bit is `.damaged` and never shown. Gamma, colour
/// profiles and physical sizes are ignored on purpose. Sides have at most 65,535 pixels. Of an animated PNG the first picture is
/// decoded. Cancellation is checked every 64 rows.
package struct PNGDecoder: ImageDecoder {
    /// Creates a decoder; it has no settings.
    package init() { zlib = Zlib.system }

    init(zlib: Result<Zlib, InflateError>) { self.zlib = zlib }

    private let zlib: Result<Zlib, InflateError>

    private func library() throws(ImageError) -> Zlib {
        do throws(InflateError) { return try zlib.get() } catch { throw ImageError(error) }
    }

    package var name: String { "PNG" }

    /// Whether the file begins with the PNG signature.
    package func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: PNGChunks.signature) }

    /// Verifies every chunk and its checksum.
    package func verify(_ bytes: [UInt8]) throws(ImageError) {
        let limits = DecodedImage.Limits(sourcePixelsMaximum: .max, resultPixelsMaximum: .max)
        _ = try PNGChunks(bytes, limits: limits, zlib: library())
    }

    /// Decodes the picture.
    package func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        let chunks = try PNGChunks(bytes, limits: limits, zlib: library())
        let header = chunks.header
        let plan = ImageTarget.plan(width: header.width, height: header.height, target: target)
        try plan.check(limits)
        var reader = PNGRowReader(bytes, chunks, try library())
        var averager = AreaAverager(plan, channels: reader.channels)
        if header.isInterlaced {
            let picture = try Self.passes(&reader, header, limits)
            for row in averager.usedRows { averager.add(picture, at: (row * header.width + plan.x) * reader.channels) }
        } else {
            reader.begin(width: header.width)
            for row in 0..<header.height {
                if row & 63 == 0 { try ImageError.checkCancellation() }
                try reader.next()
                guard averager.usedRows.contains(row) else { continue }
                averager.add(reader.pixels, at: PNGUnfilter.padding + plan.x * reader.channels)
            }
        }
        try reader.finish()
        return DecodedImage(
            width: plan.width,
            height: plan.height,
            pixels: averager.pixels,
            isOpaque: !averager.hasAlpha,
            sourceWidth: header.width,
            sourceHeight: header.height
        )
    }

    /// The pixels that the passes of an interlaced picture make up.
    private static func passes(
        _ reader: inout PNGRowReader,
        _ header: PNGHeader,
        _ limits: DecodedImage.Limits
    ) throws(ImageError) -> [UInt8] {
        let (width, height, channels) = (header.width, header.height, reader.channels)
        guard width * height * channels <= limits.workingBytesMaximum else {
            throw ImageError(
                .tooLarge,
                "The PNG is interlaced and needs \(width * height * channels) bytes for its pixels, which is beyond the limits. "
                    + "Ask for a smaller rendition, or raise workingBytesMaximum."
            )
        }
        var picture = [UInt8](repeating: 0, count: width * height * channels)
        for pass in Adam7.passes {
            let count = pass.width(of: width)
            // A pass without columns has no rows either, and no filter bytes.
            guard count > 0 else { continue }
            reader.begin(width: count)
            for row in 0..<pass.height(of: height) {
                if row & 63 == 0 { try ImageError.checkCancellation() }
                try reader.next()
                var place = ((pass.y + row * pass.stepY) * width + pass.x) * channels
                for pixel in 0..<count {
                    for channel in 0..<channels {
                        picture[place + channel] = reader.pixels[PNGUnfilter.padding + pixel * channels + channel]
                    }
                    place += pass.stepX * channels
                }
            }
        }
        return picture
    }
}

/// Reads, unfilters and expands the rows of a picture or of its passes.
private struct PNGRowReader: ~Copyable {
    private let header: PNGHeader
    private let expander: PNGRowExpander
    private var stream: PNGDataStream
    /// The last row, from `PNGUnfilter.padding` on.
    private var row: [UInt8] = []
    private var previous: [UInt8] = []
    private var expanded: [UInt8] = []
    private var width = 0

    init(_ bytes: [UInt8], _ chunks: PNGChunks, _ zlib: Zlib) {
        header = chunks.header
        expander = PNGRowExpander(chunks)
        stream = PNGDataStream(bytes, chunks.data, zlib)
    }

    /// 1 for gray, 3 for RGB, 4 for RGBA.
    var channels: Int { expander.channels }

    /// The pixels of the last row, from `PNGUnfilter.padding` on.
    var pixels: [UInt8] { expander.isIdentity ? row : expanded }

    /// Begins a picture or a pass with rows of so many pixels.
    mutating func begin(width: Int) {
        self.width = width
        row = [UInt8](repeating: 0, count: header.rowBytes(width) + 2 * PNGUnfilter.padding)
        previous = row
        if !expander.isIdentity { expanded = [UInt8](repeating: 0, count: width * channels + PNGUnfilter.padding) }
    }

    mutating func next() throws(ImageError) {
        swap(&row, &previous)
        // The filter's byte is stored just before the row, where a zero is required.
        let (place, count) = (PNGUnfilter.padding - 1, header.rowBytes(width))
        try stream.read(count + 1, into: &row, at: place)
        let filter = row[place]
        row[place] = 0
        try PNGUnfilter.apply(filter, &row, previous, count: count, step: header.bytesPerPixel)
        if !expander.isIdentity { expander.expand(row, from: PNGUnfilter.padding, pixels: width, into: &expanded) }
    }

    /// Reads to the end of the data and compares the checksum.
    mutating func finish() throws(ImageError) { try stream.finish() }
}
