/// The coefficients of a picture, or of a row of its units where its scan can be transformed row by row.
struct JPEGCoefficients: Sendable {
    struct Plane: Sendable {
        /// The place of the first block.
        let offset: Int
        /// The blocks of a row, those of the last unit included.
        let blocksWide: Int
    }

    let planes: [Plane]
    /// 64 coefficients of each block in natural order.
    var values: [Int16]

    /// The rows of units that are held: all, or one at a time.
    let rows: Int

    init(_ frame: JPEGFrame, rows: Int, limits: DecodedImage.Limits) throws(ImageError) {
        self.rows = rows
        var count = 0
        planes = frame.components.map { component in
            let blocksWide = frame.unitsWide * component.horizontal
            defer { count += blocksWide * rows * component.vertical * 64 }
            return Plane(offset: count, blocksWide: blocksWide)
        }
        guard rows == 1 || count * 2 <= limits.workingBytesMaximum else {
            throw ImageError(
                .tooLarge,
                "The JPEG is progressive and needs \(count * 2) bytes for its coefficients, which is beyond the limits. "
                    + "Ask for a smaller rendition, or raise workingBytesMaximum."
            )
        }
        values = [Int16](repeating: 0, count: count)
    }

    /// Transforms the blocks of a strip into samples.
    func transform(_ strip: Int, _ factors: [Int16], into strips: inout JPEGStrips) {
        let layout = strips.layout
        unsafe values.withUnsafeBufferPointer { values in
            unsafe factors.withUnsafeBufferPointer { factors in
                unsafe strips.samples.withUnsafeMutableBufferPointer { samples in
                    // The layout has a place for every block of the frame, as the planes have.
                    let values = unsafe values.baseAddress.unsafelyUnwrapped
                    let factors = unsafe factors.baseAddress.unsafelyUnwrapped
                    let samples = unsafe samples.baseAddress.unsafelyUnwrapped
                    for (index, plane) in planes.enumerated() {
                        let target = layout.planes[index]
                        let factors = unsafe factors + 64 * index
                        for row in 0..<target.blocksHigh {
                            var block =
                                unsafe values + plane.offset
                                + (strip % rows * target.blocksHigh + row) * plane.blocksWide * 64
                            var place = unsafe samples + target.place(ofRow: (strip * target.blocksHigh + row) * 8)
                            for _ in 0..<plane.blocksWide {
                                unsafe JPEGInverseDCT.transform(
                                    block,
                                    factors,
                                    isFlat: Self.isFlat(block),
                                    into: place,
                                    stride: target.stride
                                )
                                unsafe block += 64
                                unsafe place += 8
                            }
                        }
                    }
                }
            }
        }
    }

    /// Whether all coefficients but the first are zero.
    @inline(__always)
    private static func isFlat(_ block: UnsafePointer<Int16>) -> Bool {
        let rows = unsafe UnsafeRawPointer(block)
        var all = unsafe rows.loadUnaligned(as: SIMD8<Int16>.self)
        all[0] = 0
        for row in 1..<8 { unsafe all |= rows.loadUnaligned(fromByteOffset: row * 16, as: SIMD8<Int16>.self) }
        return all == SIMD8(repeating: 0)
    }
}
