/// Undoes the filters of PNG's rows (PNG §9).
///
/// Rows are stored in arrays with `padding` zero bytes before them, which stand for the pixel before the first, and as many behind,
/// which are read and never used.
enum PNGUnfilter {
    static let padding = 16

    /// Up to four bytes of a pixel.
    private typealias Pixel = SIMD4<Int16>

    /// - Parameters:
    ///   - filter: the first byte of the row in the file.
    ///   - count: the bytes of the row.
    ///   - step: the bytes of a pixel, from 1 to 8.
    static func apply(
        _ filter: UInt8,
        _ row: inout [UInt8],
        _ previous: [UInt8],
        count: Int,
        step: Int
    ) throws(ImageError) {
        precondition(row.count >= count + 2 * padding && previous.count >= count + 2 * padding, "Rows have room.")
        guard filter <= 4 else { throw ImageError(.damaged, "The PNG has a row with filter \(filter).") }
        unsafe row.withUnsafeMutableBytes { row in
            unsafe previous.withUnsafeBytes { previous in
                let row = unsafe row.baseAddress.unsafelyUnwrapped.advanced(by: padding)
                let above = unsafe previous.baseAddress.unsafelyUnwrapped.advanced(by: padding)
                switch filter {
                case 1: unsafe restore(row, above, count, step) { left, _, _ in left }
                case 2:
                    let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
                    let others = unsafe above.assumingMemoryBound(to: UInt8.self)
                    for index in 0..<count { unsafe bytes[index] &+= others[index] }
                case 3: unsafe restore(row, above, count, step) { left, up, _ in (left &+ up) &>> 1 }
                case 4: unsafe restore(row, above, count, step, paeth)
                default: break
                }
            }
        }
    }

    /// Adds to each pixel what `predict` makes of the pixels to the left, above, and above to the left. Four bytes of a pixel at once:
    /// each pixel depends on the one before, so the length of this chain determines the speed.
    @inline(__always)
    private static func restore(
        _ row: UnsafeMutableRawPointer,
        _ above: UnsafeRawPointer,
        _ count: Int,
        _ step: Int,
        _ predict: (_ left: Pixel, _ up: Pixel, _ corner: Pixel) -> Pixel
    ) {
        for first in stride(from: 0, to: step, by: 4) {
            let lanes = min(4, step - first)
            var (left, corner) = (Pixel(), Pixel())
            var index = first
            while index < count {
                let up = unsafe pixel(above, index)
                let raw = unsafe pixel(row, index)
                left = (predict(left, up, corner) &+ raw) & 255
                corner = up
                if lanes == 4 {
                    unsafe row.storeBytes(
                        of: SIMD4<UInt8>(truncatingIfNeeded: left),
                        toByteOffset: index,
                        as: SIMD4<UInt8>.self
                    )
                } else {
                    // The bytes behind the pixel belong to the next one.
                    for lane in 0..<lanes {
                        unsafe row.storeBytes(
                            of: UInt8(truncatingIfNeeded: left[lane]),
                            toByteOffset: index &+ lane,
                            as: UInt8.self
                        )
                    }
                }
                index &+= step
            }
        }
    }

    @inline(__always)
    private static func pixel(_ row: UnsafeRawPointer, _ index: Int) -> Pixel {
        unsafe Pixel(truncatingIfNeeded: row.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self))
    }

    @inline(__always)
    private static func paeth(_ left: Pixel, _ up: Pixel, _ corner: Pixel) -> Pixel {
        let (p, q) = (up &- corner, left &- corner)
        let sum = p &+ q
        let toLeft = p.replacing(with: 0 &- p, where: p .< 0)
        let toUp = q.replacing(with: 0 &- q, where: q .< 0)
        let toCorner = sum.replacing(with: 0 &- sum, where: sum .< 0)
        let nearest = corner.replacing(with: up, where: toUp .<= toCorner)
        return nearest.replacing(with: left, where: (toLeft .<= toUp) .& (toLeft .<= toCorner))
    }
}
