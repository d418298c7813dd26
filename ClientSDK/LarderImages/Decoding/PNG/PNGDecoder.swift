import LarderCoding

/// Decodes PNG (ISO/IEC 15948): every colour type and depth, transparency, interlacing. Needs the system's zlib; without it
/// decoding fails with `.unsupportedFormat`.
///
/// Rows are downsampled while they are decompressed: besides the file and the result it uses two rows, two rows of sums and
/// 40 KiB for zlib (some hundred kilobytes for a 12-megapixel picture). Downsampling an interlaced picture uses 32 more bytes for
/// each pixel of the result.
///
/// All checksums are verified, also of unused chunks: a picture with a flipped bit is `.damaged` and never shown. Gamma, colour
/// profiles and physical sizes are ignored on purpose. Sides have at most 65,535 pixels. Of an animated PNG the first picture is
/// decoded. About as fast as libpng; cancellation is checked every 64 rows.
package struct PNGDecoder: ProgressiveImageDecoder {
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
        return chunks.header.isInterlaced
            ? try interlaced(bytes, chunks, target, limits, factor: 1) : try rows(bytes, chunks, target, limits)
    }

    /// Every eighth, fourth or second pixel of an interlaced picture, as soon as their chunks are complete: details 1, 2 and 3.
    package func preview(
        _ start: [UInt8],
        beyond detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> DecodedImage.Preview? {
        guard detail < 3 else { return nil }
        for finer in (max(1, detail + 1)...3).reversed() {
            do {
                let chunks = try PNGChunks(start, limits: limits, zlib: library(), isPart: true)
                guard chunks.header.isInterlaced else { return nil }
                let image = try interlaced(start, chunks, target, limits, factor: 16 >> finer)
                return DecodedImage.Preview(image, detail: finer)
            } catch {
                // Errors are reported when the complete file is decoded; until then there is no preview of this detail.
                continue
            }
        }
        return nil
    }

    /// Decodes the rows of a picture in order.
    private func rows(
        _ bytes: [UInt8],
        _ chunks: PNGChunks,
        _ target: ImageTarget?,
        _ limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        let header = chunks.header
        let plan = ImageTarget.plan(width: header.width, height: header.height, target: target)
        try Self.check(plan, limits)
        let expander = PNGRowExpander(chunks)
        var stream = PNGDataStream(bytes, chunks.data, try library())
        var reader = PNGRowReader(header, width: header.width)
        let start = PNGUnfilter.padding
        var expanded: [UInt8] = []
        if !expander.isIdentity {
            expanded = [UInt8](repeating: 0, count: header.width * expander.channels + start)
        }
        var averager = AreaAverager(plan, channels: expander.channels)
        let first = start + plan.x * expander.channels
        for row in 0..<header.height {
            if row & 63 == 0 { try Self.checkCancellation() }
            try reader.next(&stream)
            guard row >= plan.y, row < plan.y + plan.sourceHeight else { continue }
            if expander.isIdentity {
                averager.add(reader.row, at: first)
            } else {
                expander.expand(reader.row, from: start, pixels: header.width, into: &expanded)
                averager.add(expanded, at: first)
            }
        }
        try stream.finish()
        return Self.image(plan, averager.pixels, header, expander)
    }

    /// Decodes the passes of a picture, or those for every `factor`th pixel.
    private func interlaced(
        _ bytes: [UInt8],
        _ chunks: PNGChunks,
        _ target: ImageTarget?,
        _ limits: DecodedImage.Limits,
        factor: Int
    ) throws(ImageError) -> DecodedImage {
        let header = chunks.header
        let passes = Adam7.passes.prefix(Adam7.passCount(factor: factor))
        let plan = ImageTarget.plan(
            width: (header.width + factor - 1) / factor,
            height: (header.height + factor - 1) / factor,
            target: target
        )
        try Self.check(plan, limits)
        let expander = PNGRowExpander(chunks)
        var stream = PNGDataStream(bytes, chunks.data, try library())
        var gatherer = InterlaceGatherer(plan, channels: expander.channels)
        let start = PNGUnfilter.padding
        var expanded: [UInt8] = []
        if !expander.isIdentity {
            expanded = [UInt8](repeating: 0, count: header.width * expander.channels + start)
        }
        for pass in passes {
            let width = pass.width(of: header.width)
            // A pass without columns has no rows either, and no filter bytes.
            guard width > 0 else { continue }
            var reader = PNGRowReader(header, width: width)
            for row in 0..<pass.height(of: header.height) {
                if row & 63 == 0 { try Self.checkCancellation() }
                try reader.next(&stream)
                if !expander.isIdentity {
                    expander.expand(reader.row, from: start, pixels: width, into: &expanded)
                }
                gatherer.add(
                    expander.isIdentity ? reader.row : expanded,
                    from: start,
                    pixels: width,
                    y: (pass.y + row * pass.stepY) / factor,
                    x: pass.x / factor,
                    step: pass.stepX / factor
                )
            }
        }
        if factor == 1 { try stream.finish() }
        return Self.image(plan, gatherer.finish(), header, expander)
    }

    private static func image(
        _ plan: ImageTarget.Plan,
        _ pixels: [UInt8],
        _ header: PNGHeader,
        _ expander: PNGRowExpander
    ) -> DecodedImage {
        DecodedImage(
            width: plan.width,
            height: plan.height,
            pixels: pixels,
            isOpaque: expander.channels != 4,
            sourceWidth: header.width,
            sourceHeight: header.height
        )
    }

    private static func check(_ plan: ImageTarget.Plan, _ limits: DecodedImage.Limits) throws(ImageError) {
        guard plan.width * plan.height <= limits.resultPixelsMaximum else {
            throw ImageError(
                .tooLarge,
                "The result would have \(plan.width) × \(plan.height) pixels, which is beyond the limits. Give a target."
            )
        }
    }

    private static func checkCancellation() throws(ImageError) {
        if Task.isCancelled { throw ImageError(.cancelled, "The decode was cancelled.") }
    }
}

/// Reads and unfilters the rows of a picture or of a pass.
private struct PNGRowReader {
    /// The last row, from `PNGUnfilter.padding` on.
    private(set) var row: [UInt8]
    private var previous: [UInt8]
    private let count: Int
    private let step: Int

    init(_ header: PNGHeader, width: Int) {
        count = header.rowBytes(width)
        step = header.bytesPerPixel
        row = [UInt8](repeating: 0, count: count + 2 * PNGUnfilter.padding)
        previous = row
    }

    mutating func next(_ stream: inout PNGDataStream) throws(ImageError) {
        swap(&row, &previous)
        // The filter's byte is stored just before the row, where a zero is required.
        let place = PNGUnfilter.padding - 1
        try stream.read(count + 1, into: &row, at: place)
        let filter = row[place]
        row[place] = 0
        try PNGUnfilter.apply(filter, &row, previous, count: count, step: step)
    }
}
