/// The generator xoshiro256** seeded by SplitMix64 (Blackman and Vigna). Equal seeds give equal numbers on every
/// platform.
///
/// For reproducible simulations and tests. Not for secrets.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: (UInt64, UInt64, UInt64, UInt64)

    package init(seed: UInt64) {
        var mixer = seed
        func mix() -> UInt64 {
            mixer &+= 0x9E37_79B9_7F4A_7C15
            var z = mixer
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
        state = (mix(), mix(), mix(), mix())
    }

    /// Returns the next 64 bits.
    package mutating func next() -> UInt64 {
        let result = rotate(state.1 &* 5, 7) &* 9
        let shifted = state.1 << 17
        state.2 ^= state.0
        state.3 ^= state.1
        state.1 ^= state.2
        state.0 ^= state.3
        state.2 ^= shifted
        state.3 = rotate(state.3, 45)
        return result
    }

    /// Returns a uniformly distributed number in the range.
    package mutating func uniform(in range: Range<Int>) -> Int {
        precondition(!range.isEmpty, "The range must not be empty.")
        // Lemire's method: a multiplication instead of a division, and rejection of biased values.
        let bound = UInt64(range.upperBound - range.lowerBound)
        var (high, low) = next().multipliedFullWidth(by: bound)
        if low < bound {
            let threshold = (0 &- bound) % bound
            while low < threshold { (high, low) = next().multipliedFullWidth(by: bound) }
        }
        return range.lowerBound + Int(high)
    }

    /// Returns a number in 0..<1, in steps of 2⁻⁵³.
    package mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    private func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 { (value << count) | (value >> (64 - count)) }
}
