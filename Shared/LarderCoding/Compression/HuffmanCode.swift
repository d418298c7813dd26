/// A Huffman code for writing: the length and the reversed bits of each symbol (RFC 1951 §3.2.2).
struct HuffmanCode: Sendable {
    /// The length of each symbol's code in bits; 0 for symbols that do not occur.
    private(set) var lengths: [UInt8]
    /// The code of each symbol, the first bit lowest.
    private(set) var codes: [UInt16]

    /// The canonical code of these lengths.
    init(lengths: [UInt8]) {
        self.lengths = lengths
        codes = [UInt16](repeating: 0, count: lengths.count)
        var counts = InlineArray<16, UInt16>(repeating: 0)
        for length in lengths { counts[Int(length)] += 1 }
        counts[0] = 0
        var next = InlineArray<16, UInt16>(repeating: 0)
        var code: UInt16 = 0
        for length in 1...15 {
            code = (code &+ counts[length - 1]) << 1
            next[length] = code
        }
        for (symbol, length) in lengths.enumerated() where length > 0 {
            codes[symbol] = Self.reversed(next[Int(length)], Int(length))
            next[Int(length)] &+= 1
        }
    }

    /// The shortest code for these frequencies with at most `limit` bits for a symbol, or nearly the shortest if the limit applies.
    ///
    /// At least two symbols get a code, because decoders reject other codes.
    init(frequencies: some Collection<UInt32>, limit: Int) {
        // Each element is a frequency above a symbol, so that sorting orders by frequency.
        var sorted: [UInt64] = []
        for (symbol, frequency) in frequencies.enumerated() where frequency > 0 {
            sorted.append(UInt64(frequency) << 16 | UInt64(symbol))
        }
        var unused = 0
        while sorted.count < 2 {
            if !sorted.contains(where: { $0 & 0xFFFF == UInt64(unused) }) { sorted.append(1 << 16 | UInt64(unused)) }
            unused += 1
        }
        sorted.sort()
        var counts = Self.lengthCounts(Self.depths(sorted.map { $0 >> 16 }), limit: limit)
        var lengths = [UInt8](repeating: 0, count: frequencies.count)
        // The rarest symbols get the longest codes.
        var length = limit
        for element in sorted {
            while counts[length] == 0 { length -= 1 }
            counts[length] -= 1
            lengths[Int(element & 0xFFFF)] = UInt8(length)
        }
        self.init(lengths: lengths)
    }

    /// The depth of each leaf of the Huffman tree, computed in place from ascending weights (Moffat and Katajainen 1995).
    private static func depths(_ weights: [UInt64]) -> [UInt64] {
        var a = weights
        let count = a.count
        // First pass, left to right: parents.
        a[0] += a[1]
        var (root, leaf) = (0, 2)
        for next in stride(from: 1, to: count - 1, by: 1) {
            if leaf >= count || a[root] < a[leaf] {
                a[next] = a[root]
                a[root] = UInt64(next)
                root += 1
            } else {
                a[next] = a[leaf]
                leaf += 1
            }
            if leaf >= count || (root < next && a[root] < a[leaf]) {
                a[next] += a[root]
                a[root] = UInt64(next)
                root += 1
            } else {
                a[next] += a[leaf]
                leaf += 1
            }
        }
        // Second pass, right to left: depths of inner nodes.
        a[count - 2] = 0
        for next in stride(from: count - 3, through: 0, by: -1) { a[next] = a[Int(a[next])] + 1 }
        // Third pass, right to left: depths of leaves.
        var (available, used, depth) = (1, 0, UInt64(0))
        var (inner, next) = (count - 2, count - 1)
        while available > 0 {
            while inner >= 0, a[inner] == depth {
                used += 1
                inner -= 1
            }
            while available > used {
                a[next] = depth
                next -= 1
                available -= 1
            }
            available = 2 * used
            depth += 1
            used = 0
        }
        return a
    }

    /// The number of codes of each length, with those beyond the limit shortened.
    private static func lengthCounts(_ depths: [UInt64], limit: Int) -> [Int] {
        var counts = [Int](repeating: 0, count: limit + 1)
        for depth in depths { counts[min(Int(depth), limit)] += 1 }
        // Kraft's sum in units of the longest code; shortening has made it too large.
        var sum = 0
        for length in 1...limit { sum += counts[length] << (limit - length) }
        while sum > 1 << limit {
            counts[limit] -= 1
            var length = limit - 1
            while counts[length] == 0 { length -= 1 }
            // Two codes of one bit more take the place of a code and of the one removed.
            counts[length] -= 1
            counts[length + 1] += 2
            sum -= 1
        }
        return counts
    }

    private static func reversed(_ code: UInt16, _ length: Int) -> UInt16 {
        var (code, result) = (code, UInt16(0))
        for _ in 0..<length {
            result = result << 1 | code & 1
            code >>= 1
        }
        return result
    }
}
