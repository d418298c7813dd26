/// The inverse cosine transform of a block into fewer samples: each is the mean of 2 × 2 or 4 × 4 of the 64, computed without them,
/// with the rounding of libjpeg.
///
/// The mean of adjacent outputs of the 8-point transform is a 4-point transform, of coefficients with the high ones folded into the
/// low ones; therefore the fifth coefficient of 8 is not used.
enum JPEGReducedDCT {
    private typealias Row = JPEGLanes.Row
    private typealias Wide = JPEGLanes.Wide

    @inline(never)
    static func transform4(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        _ target: UnsafeMutablePointer<UInt8>,
        _ stride: Int
    ) {
        // All columns, then the four rows, one lane each.
        let (row0, row1, row2, row3) = unsafe pass4(
            JPEGInverseDCT.row(block, factors, 0),
            JPEGInverseDCT.row(block, factors, 1),
            JPEGInverseDCT.row(block, factors, 2),
            JPEGInverseDCT.row(block, factors, 3),
            JPEGInverseDCT.row(block, factors, 5),
            JPEGInverseDCT.row(block, factors, 6),
            JPEGInverseDCT.row(block, factors, 7),
            shift: 12
        )
        @inline(__always)
        func column(_ index: Int) -> Row {
            Row(row0[index], row1[index], row2[index], row3[index], 0, 0, 0, 0)
        }
        let (out0, out1, out2, out3) = pass4(
            column(0),
            column(1),
            column(2),
            column(3),
            column(5),
            column(6),
            column(7),
            shift: 19
        )
        for y in 0..<4 {
            let samples = SIMD4(Int32(out0[y]), Int32(out1[y]), Int32(out2[y]), Int32(out3[y])) &+ 128
            let clamped = samples.clamped(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
            unsafe UnsafeMutableRawPointer(target).storeBytes(
                of: SIMD4<UInt8>(truncatingIfNeeded: clamped),
                toByteOffset: y &* stride,
                as: SIMD4<UInt8>.self
            )
        }
    }

    @inline(__always)
    private static func pass4(
        _ in0: Row,
        _ in1: Row,
        _ in2: Row,
        _ in3: Row,
        _ in5: Row,
        _ in6: Row,
        _ in7: Row,
        shift: Int32
    ) -> (Row, Row, Row, Row) {
        let even0 = JPEGLanes.product(in0, 16_384)
        let even2 = JPEGLanes.product(in2, 15_137) &- JPEGLanes.product(in6, 6_270)
        let (sum0, sum2) = (even0 &+ even2, even0 &- even2)
        let odd0 =
            JPEGLanes.product(in7, -1_730) &+ JPEGLanes.product(in5, 11_893) &- JPEGLanes.product(in3, 17_799)
            &+ JPEGLanes.product(in1, 8_697)
        let odd2 =
            JPEGLanes.product(in7, -4_176) &- JPEGLanes.product(in5, 4_926) &+ JPEGLanes.product(in3, 7_373)
            &+ JPEGLanes.product(in1, 20_995)
        return (
            JPEGInverseDCT.descale(sum0 &+ odd2, shift),
            JPEGInverseDCT.descale(sum2 &+ odd0, shift),
            JPEGInverseDCT.descale(sum2 &- odd0, shift),
            JPEGInverseDCT.descale(sum0 &- odd2, shift)
        )
    }

    @inline(never)
    static func transform2(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        _ target: UnsafeMutablePointer<UInt8>,
        _ stride: Int
    ) {
        let odd =
            unsafe JPEGLanes.product(JPEGInverseDCT.row(block, factors, 7), -5_906)
            &+ JPEGLanes.product(JPEGInverseDCT.row(block, factors, 5), 6_967)
            &- JPEGLanes.product(JPEGInverseDCT.row(block, factors, 3), 10_426)
            &+ JPEGLanes.product(JPEGInverseDCT.row(block, factors, 1), 29_692)
        let even = unsafe JPEGLanes.wide(JPEGInverseDCT.row(block, factors, 0)) &<< 15
        let top = JPEGInverseDCT.descale(even &+ odd, 13)
        let bottom = JPEGInverseDCT.descale(even &- odd, 13)
        unsafe pair(top, target)
        unsafe pair(bottom, target + stride)
    }

    /// The two samples of a row.
    @inline(__always)
    private static func pair(_ row: Row, _ target: UnsafeMutablePointer<UInt8>) {
        let odd =
            Int(row[7]) &* -5_906 &+ Int(row[5]) &* 6_967 &- Int(row[3]) &* 10_426 &+ Int(row[1]) &* 29_692
        let even = Int(row[0]) &<< 15
        unsafe target[0] = JPEGInverseDCT.sample((even &+ odd &+ 1 &<< 19) &>> 20)
        unsafe target[1] = JPEGInverseDCT.sample((even &- odd &+ 1 &<< 19) &>> 20)
    }
}
