/// Reads the bits of a scan (ITU T.81 §F.2.2.5), the next one highest.
///
/// Behind a marker or the end of the data come zeros, which `isExhausted` tells.
///
/// - Precondition: `bytes` is valid up to the end of the data as long as the value is used.
@unsafe struct JPEGBits {
    private let bytes: UnsafePointer<UInt8>
    private let end: Int
    /// The next byte to read; at a marker, its first byte.
    private var position: Int
    /// The unused bits, from the highest on.
    private var bits: UInt64 = 0
    private var count = 0
    /// The zeros among them that are not in the file.
    private var padding = 0

    init(_ bytes: UnsafePointer<UInt8>, _ data: Range<Int>) {
        unsafe self.bytes = bytes
        unsafe position = data.lowerBound
        unsafe end = data.upperBound
    }

    /// Whether bits were consumed that are not in the file.
    var isExhausted: Bool { unsafe count < padding }

    /// Makes at least 32 bits available.
    @inline(__always)
    mutating func fill() {
        if unsafe count > 32 { return }
        if unsafe end &- position >= 4 {
            let word = unsafe UInt32(
                bigEndian: UnsafeRawPointer(bytes).loadUnaligned(fromByteOffset: position, as: UInt32.self)
            )
            // No byte is 0xFF: none of the inverse is zero.
            if (~word &- 0x0101_0101) & word & 0x8080_8080 == 0 {
                unsafe bits |= UInt64(word) &<< UInt64(truncatingIfNeeded: 32 &- count)
                unsafe position &+= 4
                unsafe count &+= 32
                return
            }
        }
        // By value, so that the bits of the caller can stay in registers.
        unsafe self = unsafe Self.filledByBytes(self)
    }

    @inline(never)
    private static func filledByBytes(_ old: JPEGBits) -> JPEGBits {
        var new = unsafe old
        while unsafe new.count <= 56 {
            var byte: UInt8 = 0
            if unsafe new.position < new.end { byte = unsafe new.bytes[new.position] }
            if unsafe new.position < new.end, byte != 0xFF {
                unsafe new.position += 1
            } else if unsafe new.position + 1 < new.end, unsafe new.bytes[new.position + 1] == 0 {
                unsafe new.position += 2
            } else {
                byte = 0
                unsafe new.padding += 8
            }
            unsafe new.bits |= UInt64(byte) << UInt64(56 - new.count)
            unsafe new.count += 8
        }
        return unsafe new
    }

    @inline(__always)
    private mutating func drop(_ number: Int) {
        unsafe bits &<<= UInt64(truncatingIfNeeded: number)
        unsafe count &-= number
    }

    /// The next bits as a number.
    ///
    /// - Parameter number: from 1 to 16; so many bits are there after `fill`.
    @inline(__always)
    mutating func take(_ number: Int) -> Int {
        let value = unsafe Int(truncatingIfNeeded: bits &>> UInt64(truncatingIfNeeded: 64 &- number))
        unsafe drop(number)
        return value
    }

    /// The next bits as a signed value (ITU T.81 §F.2.2.1).
    ///
    /// - Parameter size: from 1 to 15.
    @inline(__always)
    mutating func takeValue(_ size: Int) -> Int {
        let bits = unsafe take(size)
        return bits < 1 &<< (size &- 1) ? bits &- (1 &<< size) &+ 1 : bits
    }

    /// The entry of the next code, whose bits are dropped; 0 for an invalid code. 15 bits are left for a value.
    ///
    /// - Parameter table: of `JPEGHuffmanCode.tableLength` entries.
    @inline(__always)
    mutating func symbol(_ table: UnsafePointer<UInt32>) -> UInt32 {
        unsafe fill()
        var entry = unsafe table[Int(truncatingIfNeeded: bits &>> UInt64(64 - JPEGHuffmanCode.lookBits))]
        if entry == 0 { entry = unsafe Self.longSymbol(bits, table) }
        unsafe drop(Int(truncatingIfNeeded: entry & 255))
        return entry
    }

    @inline(never)
    private static func longSymbol(_ bits: UInt64, _ table: UnsafePointer<UInt32>) -> UInt32 {
        let next = UInt32(truncatingIfNeeded: bits &>> 48)
        for length in (JPEGHuffmanCode.lookBits + 1)...16 where unsafe next < table[JPEGHuffmanCode.limits + length] {
            let code = next &>> UInt32(16 - length)
            let index = unsafe code &+ table[JPEGHuffmanCode.offsets + length]
            guard index < 256 else { return 0 }
            let symbol = unsafe table[JPEGHuffmanCode.symbols + Int(index)]
            return (symbol & 15) << 12 | (symbol >> 4) << 8 | UInt32(length)
        }
        return 0
    }

    /// Drops the bits up to the next restart marker, and begins behind it.
    ///
    /// - Returns: the number of the marker, from 0 to 7; nil if there is none in the data.
    mutating func restart() -> Int? {
        unsafe (bits, count, padding) = (0, 0, 0)
        while unsafe position + 1 < end {
            let second = unsafe bytes[position + 1]
            if unsafe bytes[position] == 0xFF, (0xD0...0xD7).contains(second) {
                unsafe position += 2
                return Int(second & 7)
            }
            unsafe position += 1
        }
        unsafe position = end
        return nil
    }

    /// The bytes that are left, up to the end of the data.
    var unreadCount: Int { unsafe end - position + max(0, count - padding) / 8 }
}
