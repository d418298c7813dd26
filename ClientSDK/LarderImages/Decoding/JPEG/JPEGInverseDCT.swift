/// The inverse cosine transform of a block of 8 × 8 coefficients (ITU T.81 §A.3.3), with the rounding of libjpeg's accurate integer
/// method: after Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications" (ICASSP 1989), with
/// constants of 13 bits. Sums wrap around where no encoder's coefficients lead.
enum JPEGInverseDCT {
    /// Reads 64 coefficients and 64 factors in natural order, and writes 8 rows of 8 samples.
    ///
    /// - Parameter isFlat: whether all coefficients but the first are zero.
    static func transform(
        _ block: UnsafePointer<Int16>,
        _ factors: UnsafePointer<Int16>,
        isFlat: Bool,
        into target: UnsafeMutablePointer<UInt8>,
        stride: Int
    ) {
        if isFlat {
            let value = unsafe sample((Int32(block[0] &* factors[0]) &+ 4) &>> 3)
            for row in 0..<8 { unsafe (target + row &* stride).update(repeating: value, count: 8) }
            return
        }
        // The columns, with 2 bits more than the samples have.
        var columns = InlineArray<64, Int32>(repeating: 0)
        for column in 0..<8 {
            pass(shift: 11) {
                unsafe Int32(block[$0 &* 8 &+ column] &* factors[$0 &* 8 &+ column])
            } _: {
                columns[$0 &* 8 &+ column] = $1
            }
        }
        for row in 0..<8 {
            let place = unsafe target + row &* stride
            pass(shift: 18) {
                columns[row &* 8 &+ $0]
            } _: {
                unsafe place[$0] = sample($1)
            }
        }
    }

    /// A sample from its distance to the middle.
    @inline(__always)
    private static func sample(_ distance: Int32) -> UInt8 {
        UInt8(truncatingIfNeeded: max(0, min(255, distance &+ 128)))
    }

    /// One direction.
    @inline(__always)
    private static func pass(shift: Int32, _ input: (Int) -> Int32, _ output: (Int, Int32) -> Void) {
        let (in1, in2, in3, in5, in6, in7) = (input(1), input(2), input(3), input(5), input(6), input(7))
        // Even part.
        let cross = (in2 &+ in6) &* 4_433
        let (even2, even3) = (cross &- in6 &* 15_137, cross &+ in2 &* 6_270)
        let (even0, even1) = ((input(0) &+ input(4)) &<< 13, (input(0) &- input(4)) &<< 13)
        let (sum0, sum1) = (even0 &+ even3, even1 &+ even2)
        let (sum3, sum2) = (even0 &- even3, even1 &- even2)
        // Odd part.
        let z5 = (in7 &+ in3 &+ in5 &+ in1) &* 9_633
        let (z1, z2) = ((in7 &+ in1) &* -7_373, (in5 &+ in3) &* -20_995)
        let (z3, z4) = (z5 &- (in7 &+ in3) &* 16_069, z5 &- (in5 &+ in1) &* 3_196)
        let (odd0, odd1) = (in7 &* 2_446 &+ z1 &+ z3, in5 &* 16_819 &+ z2 &+ z4)
        let (odd2, odd3) = (in3 &* 25_172 &+ z2 &+ z3, in1 &* 12_299 &+ z1 &+ z4)
        let half = 1 &<< (shift &- 1)
        output(0, (sum0 &+ odd3 &+ half) &>> shift)
        output(1, (sum1 &+ odd2 &+ half) &>> shift)
        output(2, (sum2 &+ odd1 &+ half) &>> shift)
        output(3, (sum3 &+ odd0 &+ half) &>> shift)
        output(4, (sum3 &- odd0 &+ half) &>> shift)
        output(5, (sum2 &- odd1 &+ half) &>> shift)
        output(6, (sum1 &- odd2 &+ half) &>> shift)
        output(7, (sum0 &- odd3 &+ half) &>> shift)
    }
}
