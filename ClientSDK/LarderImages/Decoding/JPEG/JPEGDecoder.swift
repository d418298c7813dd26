/// Decodes JPEG (ITU T.81) of 8 bits: baseline, extended and progressive with Huffman codes; gray, YCbCr and RGB. Pure Swift.
///
/// The pixels are those of libjpeg-turbo with its accurate transform and smooth upsampling. Rows are downsampled as they are complete:
/// besides the file and the result a sequential file needs some hundred kilobytes for 12 megapixels. Progressive files, and those with a scan for each
/// component, need 2 bytes for each coefficient, at most `DecodedImage.Limits.workingBytesMaximum`. An Exif orientation is applied,
/// for which a turned result is in memory twice.
///
/// A JPEG has no checksums. Coded data that cannot be is `.damaged`. Arithmetic coding, lossless and hierarchical files, CMYK, 12 bits
/// and heights behind the data are `.unsupportedFormat`; more than 100 scans are `.tooLarge`. Colour profiles are ignored on purpose.
/// Cancellation is checked in every row of blocks.
package struct JPEGDecoder: ProgressiveImageDecoder {
    /// Creates a decoder; it has no settings.
    package init() {}

    package var name: String { "JPEG" }

    /// Whether the file begins with the markers of a JPEG.
    package func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: [0xFF, 0xD8, 0xFF]) }

    /// Verifies the segments, and that the file has its end. Does not look at the coded data.
    package func verify(_ bytes: [UInt8]) throws(ImageError) {
        _ = try JPEGFile(bytes, limits: DecodedImage.Limits(sourcePixelsMaximum: .max, resultPixelsMaximum: .max))
    }

    /// Decodes the picture.
    package func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        let file = try JPEGFile(bytes, limits: limits)
        let (width, height) = file.shownSize
        let plan = ImageTarget.plan(width: width, height: height, target: target)
        return try Self.picture(bytes, file, plan, limits)
    }

    /// The picture as coarse as the complete scans of a progressive file make it. Its detail is the number of scans.
    ///
    /// With the first scans alone it has at most an eighth of the file's pixels in each direction.
    package func preview(
        _ start: [UInt8],
        beyond detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> (image: DecodedImage, detail: Int)? {
        do {
            let file = try JPEGFile(start, limits: limits, isPart: true)
            guard file.frame.isProgressive, file.hasAllComponents, file.scans.count > detail else { return nil }
            let (width, height) = file.shownSize
            var plan = ImageTarget.plan(width: width, height: height, target: target)
            if file.scans.allSatisfy({ $0.band.upperBound == 0 }) {
                plan = plan.limited(width: plan.sourceWidth / 8, height: plan.sourceHeight / 8)
            }
            return (try Self.picture(start, file, plan, limits), file.scans.count)
        } catch {
            // Errors are reported when the complete file is decoded; until then there is no preview.
            return nil
        }
    }

    /// - Parameter plan: for the picture as it is shown.
    private static func picture(
        _ bytes: [UInt8],
        _ file: JPEGFile,
        _ plan: ImageTarget.Plan,
        _ limits: DecodedImage.Limits
    ) throws(ImageError) -> DecodedImage {
        try plan.check(limits)
        let stored = file.orientation.stored(plan, width: file.frame.width, height: file.frame.height)
        var strips = JPEGStrips(file.frame, file.colors, stored)
        try decode(bytes, file, into: &strips, limits)
        let (width, height) = file.shownSize
        return DecodedImage(
            width: plan.width,
            height: plan.height,
            pixels: file.orientation.shown(strips.pixels, width: stored.width, height: stored.height),
            isOpaque: true,
            sourceWidth: width,
            sourceHeight: height
        )
    }

    private static func decode(
        _ bytes: [UInt8],
        _ file: JPEGFile,
        into strips: inout JPEGStrips,
        _ limits: DecodedImage.Limits
    ) throws(ImageError) {
        let (needsAll, factors) = (file.needsCoefficients, file.factors)
        let rows = needsAll ? file.frame.unitsHigh : 1
        var coefficients = try JPEGCoefficients(file.frame, rows: rows, limits: limits)
        for scan in needsAll ? file.scans : [file.scans[0]] {
            try unsafe JPEGScanDecoder.with(bytes, file, scan, coefficients.planes) { decoder throws(ImageError) in
                for row in unsafe 0..<decoder.rows {
                    try unsafe decoder.readRow(into: &coefficients.values, at: needsAll ? row : 0)
                    if !needsAll { strips.take(row, coefficients, factors) }
                }
            }
        }
        if needsAll {
            for row in 0..<rows {
                try ImageError.checkCancellation()
                strips.take(row, coefficients, factors)
            }
        }
    }
}
