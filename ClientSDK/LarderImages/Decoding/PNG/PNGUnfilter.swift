/// Undoes the filters of PNG's rows (PNG §9).
///
/// Rows are stored in arrays with `padding` zero bytes before them, which stand for the pixel before the first, and as many behind,
/// which are read and never used.
enum PNGUnfilter {
    static let padding = 16

    /// - Parameters:
    ///   - filter: the first byte of the row in the file.
    ///   - count: the bytes of the row.
    ///   - step: the bytes of a pixel, at least 1.
    static func apply(
        _ filter: UInt8,
        _ row: inout [UInt8],
        _ previous: [UInt8],
        count: Int,
        step: Int
    ) throws(ImageError) {
        precondition(row.count >= count + 2 * padding && previous.count >= count + 2 * padding, "Rows have room.")
        guard filter <= 4 else { throw ImageError(.damaged, "The PNG has a row with filter \(filter).") }
        if filter == 0 { return }
        unsafe row.withUnsafeMutableBytes { row in
            unsafe previous.withUnsafeBytes { previous in
                let row = unsafe row.baseAddress.unsafelyUnwrapped.advanced(by: padding)
                let above = unsafe previous.baseAddress.unsafelyUnwrapped.advanced(by: padding)
                switch (filter, step) {
                case (1, 3): unsafe subtract3(row, count)
                case (1, 4): unsafe subtract4(row, count)
                case (1, _): unsafe subtract(row, count, step)
                case (2, _): unsafe up(row, above, count)
                case (3, 3): unsafe average3(row, above, count)
                case (3, _): unsafe average(row, above, count, step)
                case (_, 3): unsafe paeth3(row, above, count)
                case (_, 4): unsafe paeth4(row, above, count)
                default: unsafe paeth(row, above, count, step)
                }
            }
        }
    }

    private static func subtract(_ row: UnsafeMutableRawPointer, _ count: Int, _ step: Int) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count { unsafe bytes[index] &+= bytes[index &- step] }
    }

    private static func subtract3(_ row: UnsafeMutableRawPointer, _ count: Int) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        var (r, g, b): (UInt8, UInt8, UInt8) = (0, 0, 0)
        var index = 0
        while index < count {
            r = unsafe r &+ bytes[index]
            g = unsafe g &+ bytes[index &+ 1]
            b = unsafe b &+ bytes[index &+ 2]
            unsafe bytes[index] = r
            unsafe bytes[index &+ 1] = g
            unsafe bytes[index &+ 2] = b
            index &+= 3
        }
    }

    private static func subtract4(_ row: UnsafeMutableRawPointer, _ count: Int) {
        var left = SIMD4<UInt8>()
        var index = 0
        while index < count {
            left &+= unsafe row.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self)
            unsafe row.storeBytes(of: left, toByteOffset: index, as: SIMD4<UInt8>.self)
            index &+= 4
        }
    }

    private static func up(_ row: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int) {
        var index = 0
        while count &- index >= 32 {
            let sum =
                unsafe row.loadUnaligned(fromByteOffset: index, as: SIMD32<UInt8>.self)
                &+ above.loadUnaligned(fromByteOffset: index, as: SIMD32<UInt8>.self)
            unsafe row.storeBytes(of: sum, toByteOffset: index, as: SIMD32<UInt8>.self)
            index &+= 32
        }
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        let others = unsafe above.assumingMemoryBound(to: UInt8.self)
        while index < count {
            unsafe bytes[index] &+= others[index]
            index &+= 1
        }
    }

    private static func average(
        _ row: UnsafeMutableRawPointer,
        _ above: UnsafeRawPointer,
        _ count: Int,
        _ step: Int
    ) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        let others = unsafe above.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count {
            let sum = unsafe UInt16(bytes[index &- step]) &+ UInt16(others[index])
            unsafe bytes[index] &+= UInt8(truncatingIfNeeded: sum &>> 1)
        }
    }

    private static func average3(_ row: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        let others = unsafe above.assumingMemoryBound(to: UInt8.self)
        var (r, g, b): (UInt8, UInt8, UInt8) = (0, 0, 0)
        var index = 0
        while index < count {
            r = unsafe bytes[index] &+ half(r, others[index])
            g = unsafe bytes[index &+ 1] &+ half(g, others[index &+ 1])
            b = unsafe bytes[index &+ 2] &+ half(b, others[index &+ 2])
            unsafe bytes[index] = r
            unsafe bytes[index &+ 1] = g
            unsafe bytes[index &+ 2] = b
            index &+= 3
        }
    }

    @inline(__always)
    private static func half(_ left: UInt8, _ right: UInt8) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt32(left) &+ UInt32(right)) &>> 1)
    }

    private static func paeth(_ row: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int, _ step: Int) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        let others = unsafe above.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count {
            let left = unsafe Int(bytes[index &- step])
            let up = unsafe Int(others[index])
            let corner = unsafe Int(others[index &- step])
            let (toLeft, toUp) = (abs(up &- corner), abs(left &- corner))
            let toCorner = abs(left &+ up &- 2 &* corner)
            let nearest = toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner
            unsafe bytes[index] &+= UInt8(truncatingIfNeeded: nearest)
        }
    }

    /// All channels of a pixel at once. Each pixel depends on the one before, so the length of this chain determines the speed.
    @inline(__always)
    private static func predict(
        _ left: SIMD4<Int16>,
        _ up: SIMD4<Int16>,
        _ corner: SIMD4<Int16>
    ) -> SIMD4<Int16> {
        let (p, q) = (up &- corner, left &- corner)
        let sum = p &+ q
        let toLeft = p.replacing(with: 0 &- p, where: p .< 0)
        let toUp = q.replacing(with: 0 &- q, where: q .< 0)
        let toCorner = sum.replacing(with: 0 &- sum, where: sum .< 0)
        let nearest = corner.replacing(with: up, where: toUp .<= toCorner)
        return nearest.replacing(with: left, where: (toLeft .<= toUp) .& (toLeft .<= toCorner))
    }

    private static func paeth3(_ row: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int) {
        let bytes = unsafe row.assumingMemoryBound(to: UInt8.self)
        var left = SIMD4<Int16>()
        var corner = SIMD4<Int16>()
        var index = 0
        while index < count {
            let up = unsafe SIMD4<Int16>(
                truncatingIfNeeded: above.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self)
            )
            let raw = unsafe SIMD4<Int16>(
                truncatingIfNeeded: row.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self)
            )
            left = (predict(left, up, corner) &+ raw) & 255
            corner = up
            unsafe bytes[index] = UInt8(truncatingIfNeeded: left.x)
            unsafe bytes[index &+ 1] = UInt8(truncatingIfNeeded: left.y)
            unsafe bytes[index &+ 2] = UInt8(truncatingIfNeeded: left.z)
            index &+= 3
        }
    }

    private static func paeth4(_ row: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int) {
        var left = SIMD4<Int16>()
        var corner = SIMD4<Int16>()
        var index = 0
        while index < count {
            let up = unsafe SIMD4<Int16>(
                truncatingIfNeeded: above.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self)
            )
            let raw = unsafe SIMD4<Int16>(
                truncatingIfNeeded: row.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt8>.self)
            )
            left = (predict(left, up, corner) &+ raw) & 255
            corner = up
            unsafe row.storeBytes(
                of: SIMD4<UInt8>(truncatingIfNeeded: left),
                toByteOffset: index,
                as: SIMD4<UInt8>.self
            )
            index &+= 4
        }
    }
}
