/// The loop that decodes nearly all bytes.
extension Inflater {
    /// Decodes while at least 16 bytes of the input are left, with its state in registers.
    mutating func runFast(_ input: Span<UInt8>, _ limit: Int) -> Stop {
        var (position, bits, bitCount, written) = (position, bits, bitCount, written)
        let last = end - 16
        let (literalBits, distanceBits) = (literals.primaryBits, distances.primaryBits)
        let literalMask = UInt64(1) << UInt64(literalBits) &- 1
        let distanceMask = UInt64(1) << UInt64(distanceBits) &- 1
        defer {
            self.position = position
            // Bits beyond the count belong to bytes that will be read again.
            self.bits = bits & (UInt64(1) << UInt64(bitCount) &- 1)
            self.bitCount = bitCount
            self.written = written
        }
        return unsafe input.withUnsafeBytes { input in
            unsafe literals.entries.withUnsafeBufferPointer { literals in
                unsafe distances.entries.withUnsafeBufferPointer { distances in
                    unsafe window.withUnsafeMutableBytes { window -> Stop in
                        // The accesses below are in bounds: input up to `last` + 8, tables by masks and their own offsets, the
                        // window up to `limit` + slack, and backwards as far as `written` says.
                        let input = unsafe input.baseAddress.unsafelyUnwrapped
                        let literals = unsafe literals.baseAddress.unsafelyUnwrapped
                        let distances = unsafe distances.baseAddress.unsafelyUnwrapped
                        let window = unsafe window.baseAddress.unsafelyUnwrapped
                        while position <= last, written < limit {
                            // Fill to at least 56 bits: a length and a distance need at most 48.
                            var word = unsafe input.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                            bits |= word.littleEndian &<< UInt64(truncatingIfNeeded: bitCount)
                            position &+= (63 &- bitCount) &>> 3
                            bitCount |= 56
                            var entry = unsafe literals[Int(truncatingIfNeeded: bits & literalMask)]
                            // Literals of the first table are short: two of them, and there is enough for a third symbol's
                            // look-up.
                            if entry & HuffmanTable.literal != 0 {
                                bits &>>= UInt64(entry & 63)
                                bitCount &-= Int(entry & 255)
                                unsafe window.storeBytes(
                                    of: UInt8(truncatingIfNeeded: entry &>> 16),
                                    toByteOffset: written,
                                    as: UInt8.self
                                )
                                written &+= 1
                                entry = unsafe literals[Int(truncatingIfNeeded: bits & literalMask)]
                                if entry & HuffmanTable.literal != 0 {
                                    bits &>>= UInt64(entry & 63)
                                    bitCount &-= Int(entry & 255)
                                    unsafe window.storeBytes(
                                        of: UInt8(truncatingIfNeeded: entry &>> 16),
                                        toByteOffset: written,
                                        as: UInt8.self
                                    )
                                    written &+= 1
                                    entry = unsafe literals[Int(truncatingIfNeeded: bits & literalMask)]
                                    if entry & HuffmanTable.literal != 0 {
                                        bits &>>= UInt64(entry & 63)
                                        bitCount &-= Int(entry & 255)
                                        unsafe window.storeBytes(
                                            of: UInt8(truncatingIfNeeded: entry &>> 16),
                                            toByteOffset: written,
                                            as: UInt8.self
                                        )
                                        written &+= 1
                                        continue
                                    }
                                }
                                word = unsafe input.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                                bits |= word.littleEndian &<< UInt64(truncatingIfNeeded: bitCount)
                                position &+= (63 &- bitCount) &>> 3
                                bitCount |= 56
                            }
                            if entry & HuffmanTable.subtable != 0 {
                                bits &>>= UInt64(literalBits)
                                bitCount &-= literalBits
                                let mask = UInt64(1) &<< UInt64((entry &>> 8) & 31) &- 1
                                entry = unsafe literals[Int(entry &>> 16) &+ Int(truncatingIfNeeded: bits & mask)]
                            }
                            bits &>>= UInt64(entry & 63)
                            bitCount &-= Int(entry & 255)
                            if entry & HuffmanTable.literal != 0 {
                                unsafe window.storeBytes(
                                    of: UInt8(truncatingIfNeeded: entry &>> 16),
                                    toByteOffset: written,
                                    as: UInt8.self
                                )
                                written &+= 1
                                continue
                            }
                            if entry & HuffmanTable.endOfBlock != 0 { return .endOfBlock }
                            var extra = UInt64((entry &>> 8) & 31)
                            let length =
                                Int(entry &>> 16) &+ Int(truncatingIfNeeded: bits & (UInt64(1) &<< extra &- 1))
                            bits &>>= extra
                            bitCount &-= Int(truncatingIfNeeded: extra)

                            entry = unsafe distances[Int(truncatingIfNeeded: bits & distanceMask)]
                            if entry & HuffmanTable.subtable != 0 {
                                bits &>>= UInt64(distanceBits)
                                bitCount &-= distanceBits
                                let mask = UInt64(1) &<< UInt64((entry &>> 8) & 31) &- 1
                                entry = unsafe distances[Int(entry &>> 16) &+ Int(truncatingIfNeeded: bits & mask)]
                            }
                            bits &>>= UInt64(entry & 63)
                            bitCount &-= Int(entry & 255)
                            extra = UInt64((entry &>> 8) & 31)
                            let distance =
                                Int(entry &>> 16) &+ Int(truncatingIfNeeded: bits & (UInt64(1) &<< extra &- 1))
                            bits &>>= extra
                            bitCount &-= Int(truncatingIfNeeded: extra)
                            // Base 0 is an invalid code; a distance before the beginning is invalid too.
                            guard length >= 3, distance > 0, distance <= written else { return .damaged }
                            unsafe Self.copyMatch(window.advanced(by: written), distance, length)
                            written &+= length
                        }
                        return .full
                    }
                }
            }
        }
    }

    /// Copies the bytes at `distance` before `target`. May write up to 23 bytes more.
    @inline(__always)
    private static func copyMatch(_ target: UnsafeMutableRawPointer, _ distance: Int, _ length: Int) {
        let source = unsafe target.advanced(by: -distance)
        var done = 0
        if distance >= 16 {
            repeat {
                let word = unsafe source.loadUnaligned(fromByteOffset: done, as: SIMD16<UInt8>.self)
                unsafe target.storeBytes(of: word, toByteOffset: done, as: SIMD16<UInt8>.self)
                done &+= 16
            } while done < length
        } else if distance >= 8 {
            repeat {
                let word = unsafe source.loadUnaligned(fromByteOffset: done, as: UInt64.self)
                unsafe target.storeBytes(of: word, toByteOffset: done, as: UInt64.self)
                done &+= 8
            } while done < length
        } else if distance == 1 {
            let word = unsafe UInt64(source.load(as: UInt8.self)) &* 0x0101_0101_0101_0101
            repeat {
                unsafe target.storeBytes(of: word, toByteOffset: done, as: UInt64.self)
                done &+= 8
            } while done < length
        } else {
            // Each store is correct in its first `distance` bytes; the next one begins there.
            repeat {
                let word = unsafe source.loadUnaligned(fromByteOffset: done, as: UInt64.self)
                unsafe target.storeBytes(of: word, toByteOffset: done, as: UInt64.self)
                done &+= distance
            } while done < length
        }
    }
}
