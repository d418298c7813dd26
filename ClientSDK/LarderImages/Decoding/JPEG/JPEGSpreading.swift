/// Spreads the samples of a component over the pixels of a row. The weights and the rounding are those of libjpeg: a pixel gets three
/// quarters of the nearest sample and one of the next in each direction.
enum JPEGSpreading {
    /// - Parameters:
    ///   - width: the samples of the row.
    ///   - target: gets twice as many.
    static func doubleWidth(_ source: UnsafePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>, width: Int) {
        unsafe double(target, width, roundings: (1, 2), shift: 2) { unsafe Int(source[$0]) }
    }

    /// - Parameters:
    ///   - next: the row above, for the upper of two rows of pixels; otherwise that below.
    static func doubleHeight(
        _ source: UnsafePointer<UInt8>,
        _ next: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        width: Int,
        isUpper: Bool
    ) {
        let rounding = isUpper ? 1 : 2
        for index in 0..<width {
            let sum = unsafe Int(source[index]) &* 3 &+ Int(next[index]) &+ rounding
            unsafe target[index] = UInt8(truncatingIfNeeded: sum &>> 2)
        }
    }

    /// - Parameters:
    ///   - next: the row above, for the upper of two rows of pixels; otherwise that below.
    ///   - width: the samples of the row.
    ///   - target: gets twice as many.
    static func doubleBoth(
        _ source: UnsafePointer<UInt8>,
        _ next: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        width: Int
    ) {
        unsafe double(target, width, roundings: (8, 7), shift: 4) { unsafe Int(source[$0]) &* 3 &+ Int(next[$0]) }
    }

    /// Writes two pixels for each of `width` samples. The first and the last sample are their own neighbours.
    @inline(__always)
    private static func double(
        _ target: UnsafeMutablePointer<UInt8>,
        _ width: Int,
        roundings: (Int, Int),
        shift: Int,
        _ sample: (Int) -> Int
    ) {
        var (left, middle) = (sample(0), sample(0))
        for index in 0..<width {
            let right = index &+ 1 < width ? sample(index &+ 1) : middle
            unsafe target[2 &* index] = UInt8(truncatingIfNeeded: (middle &* 3 &+ left &+ roundings.0) &>> shift)
            unsafe target[2 &* index &+ 1] = UInt8(truncatingIfNeeded: (middle &* 3 &+ right &+ roundings.1) &>> shift)
            (left, middle) = (middle, right)
        }
    }

    /// - Parameters:
    ///   - unit: the ratio of samples to pixels.
    ///   - pixels: the pixels of the row.
    static func nearest(
        _ source: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        unit: (samples: Int, pixels: Int),
        pixels: Int
    ) {
        for pixel in 0..<pixels { unsafe target[pixel] = source[pixel &* unit.samples / unit.pixels] }
    }
}
