/// Spreads the samples of a component over the pixels of a row. The weights and the rounding are those of libjpeg: a pixel gets three
/// quarters of the nearest sample and one of the next in each direction.
///
/// All functions read and write up to `JPEGLayout.slack` bytes beyond the samples.
enum JPEGSpreading {
    private typealias Words = JPEGLanes.Row

    /// Stores eight samples of even and eight of odd columns.
    @inline(__always)
    private static func store(_ even: Words, _ odd: Words, _ target: UnsafeMutablePointer<UInt8>, _ index: Int) {
        // Little-endian, as all processors are that Swift supports.
        unsafe UnsafeMutableRawPointer(target).storeBytes(of: even | (odd &<< 8), toByteOffset: index, as: Words.self)
    }

    /// - Parameters:
    ///   - width: the samples of the row, at least 2.
    ///   - target: gets twice as many.
    static func doubleWidth(_ source: UnsafePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>, width: Int) {
        var index = 1
        while index < width {
            let middle = unsafe JPEGLanes.load(source, index) &* 3
            let even = unsafe (middle &+ JPEGLanes.load(source, index &- 1) &+ 1) &>> 2
            let odd = unsafe (middle &+ JPEGLanes.load(source, index &+ 1) &+ 2) &>> 2
            unsafe store(even, odd, target, 2 &* index)
            index &+= 8
        }
        unsafe target[0] = source[0]
        unsafe target[1] = UInt8(truncatingIfNeeded: (Int(source[0]) &* 3 &+ Int(source[1]) &+ 2) &>> 2)
        unsafe target[2 &* width &- 1] = source[width &- 1]
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
        let bias: Int16 = isUpper ? 1 : 2
        var index = 0
        while index < width {
            let sum = unsafe JPEGLanes.load(source, index) &* 3 &+ JPEGLanes.load(next, index)
            unsafe UnsafeMutableRawPointer(target).storeBytes(
                of: JPEGLanes.bytes((sum &+ Words(repeating: bias)) &>> 2),
                toByteOffset: index,
                as: SIMD8<UInt8>.self
            )
            index &+= 8
        }
    }

    /// - Parameters:
    ///   - next: the row above, for the upper of two rows of pixels; otherwise that below.
    ///   - width: the samples of the row, at least 2.
    ///   - target: gets twice as many.
    static func doubleBoth(
        _ source: UnsafePointer<UInt8>,
        _ next: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        width: Int
    ) {
        @inline(__always)
        func sum(_ index: Int) -> Words { unsafe JPEGLanes.load(source, index) &* 3 &+ JPEGLanes.load(next, index) }
        @inline(__always)
        func oneSum(_ index: Int) -> Int { unsafe Int(source[index]) &* 3 &+ Int(next[index]) }
        var index = 1
        while index < width {
            let middle = sum(index) &* 3
            let even = (middle &+ sum(index &- 1) &+ 8) &>> 4
            let odd = (middle &+ sum(index &+ 1) &+ 7) &>> 4
            unsafe store(even, odd, target, 2 &* index)
            index &+= 8
        }
        let last = width &- 1
        unsafe target[0] = UInt8(truncatingIfNeeded: (oneSum(0) &* 4 &+ 8) &>> 4)
        unsafe target[1] = UInt8(truncatingIfNeeded: (oneSum(0) &* 3 &+ oneSum(1) &+ 7) &>> 4)
        unsafe target[2 &* last &+ 1] = UInt8(truncatingIfNeeded: (oneSum(last) &* 4 &+ 7) &>> 4)
    }

    /// - Parameters:
    ///   - unit: the samples and pixels of a unit of the picture.
    ///   - pixels: the pixels of the row.
    static func nearest(
        _ source: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        unit: (samples: Int, pixels: Int),
        pixels: Int
    ) {
        for pixel in 0..<pixels { unsafe target[pixel] = source[pixel &* unit.samples / unit.pixels] }
    }

    /// - Parameters:
    ///   - stride: the bytes from a row to the next.
    ///   - columns: the samples of a pixel in a row, `rows` those in a column.
    ///   - pixels: the pixels of the row.
    static func shrink(
        _ source: UnsafePointer<UInt8>,
        stride: Int,
        columns: Int,
        rows: Int,
        _ target: UnsafeMutablePointer<UInt8>,
        pixels: Int
    ) {
        let count = columns &* rows
        for pixel in 0..<pixels {
            var sum = count / 2
            for row in 0..<rows {
                for column in 0..<columns {
                    sum &+= unsafe Int(source[row &* stride &+ pixel &* columns &+ column])
                }
            }
            unsafe target[pixel] = UInt8(truncatingIfNeeded: sum / count)
        }
    }
}
