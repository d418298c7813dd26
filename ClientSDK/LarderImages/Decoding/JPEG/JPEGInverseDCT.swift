/// The inverse cosine transform of a block of 8 × 8 coefficients (ITU T.81 §A.3.3), with the rounding of libjpeg's accurate integer
/// method: after Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications" (ICASSP 1989), with
/// constants of 13 bits.
///
/// All functions read 64 coefficients and 64 factors in natural order, and write 8 rows of 8 samples. Sums wrap around where no encoder's
/// coefficients lead.
enum JPEGInverseDCT {
    private typealias Row = JPEGLanes.Row
    private typealias Wide = JPEGLanes.Wide

    /// - Parameters:
    ///   - isFlat: whether all coefficients but the first are zero.
    @inline(__always)
    static func transform(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        isFlat: Bool,
        into target: UnsafeMutablePointer<UInt8>,
        stride: Int
    ) {
        guard isFlat else { return unsafe transform(block, factors, target, stride) }
        // The distance of all samples to the middle.
        let distance = unsafe (Int(block[0] &* factors[0]) &+ 4) &>> 3
        let row = SIMD8<UInt8>(repeating: UInt8(truncatingIfNeeded: max(0, min(255, distance &+ 128))))
        for index in 0..<8 {
            unsafe UnsafeMutableRawPointer(target).storeBytes(
                of: row,
                toByteOffset: index &* stride,
                as: SIMD8<UInt8>.self
            )
        }
    }

    @inline(__always)
    private static func row(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        _ index: Int
    ) -> Row {
        unsafe UnsafeRawPointer(block).loadUnaligned(fromByteOffset: index &* 16, as: Row.self)
            &* UnsafeRawPointer(factors).loadUnaligned(fromByteOffset: index &* 16, as: Row.self)
    }

    @inline(never)
    private static func transform(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        _ target: UnsafeMutablePointer<UInt8>,
        _ stride: Int
    ) {
        var rows = unsafe Rows(
            row(block, factors, 0),
            row(block, factors, 1),
            row(block, factors, 2),
            row(block, factors, 3),
            row(block, factors, 4),
            row(block, factors, 5),
            row(block, factors, 6),
            row(block, factors, 7)
        )
        // The columns, with 2 bits more than the samples have.
        pass(&rows, shift: 11)
        transpose(&rows)
        pass(&rows, shift: 18)
        transpose(&rows)
        let target = UnsafeMutableRawPointer(target)
        unsafe store(rows.0, target, 0)
        unsafe store(rows.1, target, stride)
        unsafe store(rows.2, target, 2 &* stride)
        unsafe store(rows.3, target, 3 &* stride)
        unsafe store(rows.4, target, 4 &* stride)
        unsafe store(rows.5, target, 5 &* stride)
        unsafe store(rows.6, target, 6 &* stride)
        unsafe store(rows.7, target, 7 &* stride)
    }

    private typealias Rows = (Row, Row, Row, Row, Row, Row, Row, Row)

    @inline(__always)
    private static func descale(_ value: Wide, _ shift: Int32) -> Row {
        JPEGLanes.narrow((value &+ Wide(repeating: 1 &<< (shift &- 1))) &>> Wide(repeating: shift))
    }

    /// One direction. The rotations are products with 16-bit operands only: each constant is a sum of those in the paper.
    @inline(__always)
    private static func pass(_ rows: inout Rows, shift: Int32) {
        let (in0, in1, in2, in3) = (rows.0, rows.1, rows.2, rows.3)
        let (in4, in5, in6, in7) = (rows.4, rows.5, rows.6, rows.7)
        // Even part.
        let even2 = JPEGLanes.product(in2, 4_433) &+ JPEGLanes.product(in6, 4_433 - 15_137)
        let even3 = JPEGLanes.product(in2, 4_433 + 6_270) &+ JPEGLanes.product(in6, 4_433)
        let even0 = JPEGLanes.product(in0, 8_192) &+ JPEGLanes.product(in4, 8_192)
        let even1 = JPEGLanes.product(in0, 8_192) &- JPEGLanes.product(in4, 8_192)
        let (sum0, sum3) = (even0 &+ even3, even0 &- even3)
        let (sum1, sum2) = (even1 &+ even2, even1 &- even2)
        // Odd part.
        let (cross3, cross4) = (in7 &+ in3, in5 &+ in1)
        let z3 = JPEGLanes.product(cross3, 9_633 - 16_069) &+ JPEGLanes.product(cross4, 9_633)
        let z4 = JPEGLanes.product(cross3, 9_633) &+ JPEGLanes.product(cross4, 9_633 - 3_196)
        let odd0 = JPEGLanes.product(in7, 2_446 - 7_373) &+ JPEGLanes.product(in1, -7_373) &+ z3
        let odd1 = JPEGLanes.product(in5, 16_819 - 20_995) &+ JPEGLanes.product(in3, -20_995) &+ z4
        let odd2 = JPEGLanes.product(in5, -20_995) &+ JPEGLanes.product(in3, 25_172 - 20_995) &+ z3
        let odd3 = JPEGLanes.product(in7, -7_373) &+ JPEGLanes.product(in1, 12_299 - 7_373) &+ z4
        rows.0 = descale(sum0 &+ odd3, shift)
        rows.7 = descale(sum0 &- odd3, shift)
        rows.1 = descale(sum1 &+ odd2, shift)
        rows.6 = descale(sum1 &- odd2, shift)
        rows.2 = descale(sum2 &+ odd1, shift)
        rows.5 = descale(sum2 &- odd1, shift)
        rows.3 = descale(sum3 &+ odd0, shift)
        rows.4 = descale(sum3 &- odd0, shift)
    }

    @inline(__always)
    private static func low(_ a: Row, _ b: Row) -> Row { Row(a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]) }

    @inline(__always)
    private static func high(_ a: Row, _ b: Row) -> Row { Row(a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]) }

    @inline(__always)
    private static func transpose(_ rows: inout Rows) {
        let (a0, a1) = (low(rows.0, rows.4), high(rows.0, rows.4))
        let (a2, a3) = (low(rows.1, rows.5), high(rows.1, rows.5))
        let (a4, a5) = (low(rows.2, rows.6), high(rows.2, rows.6))
        let (a6, a7) = (low(rows.3, rows.7), high(rows.3, rows.7))
        let (b0, b1, b2, b3) = (low(a0, a4), high(a0, a4), low(a1, a5), high(a1, a5))
        let (b4, b5, b6, b7) = (low(a2, a6), high(a2, a6), low(a3, a7), high(a3, a7))
        rows = (
            low(b0, b4), high(b0, b4), low(b1, b5), high(b1, b5), low(b2, b6), high(b2, b6), low(b3, b7), high(b3, b7)
        )
    }

    @inline(__always)
    private static func store(_ row: Row, _ target: UnsafeMutableRawPointer, _ offset: Int) {
        unsafe target.storeBytes(
            of: JPEGLanes.bytes(JPEGLanes.clamped(row &+ Row(repeating: 128))),
            toByteOffset: offset,
            as: SIMD8<UInt8>.self
        )
    }
}
