/// The CRC of gzip and of PNG's chunks (ISO 3309, RFC 1952 §8), eight bytes at a time.
package struct CRC32: Sendable {
    /// Eight tables of 256: the n-th for a byte that is followed by n more.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var value = UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
            tables[byte] = value
        }
        for table in 1..<8 {
            for byte in 0..<256 {
                let before = tables[(table - 1) * 256 + byte]
                tables[table * 256 + byte] = tables[Int(before & 255)] ^ (before >> 8)
            }
        }
        return tables
    }()

    private var register: UInt32 = 0xFFFF_FFFF

    package init() {}

    package var value: UInt32 { ~register }

    package static func checksum(_ bytes: [UInt8], _ range: Range<Int>) -> UInt32 {
        var crc = CRC32()
        crc.add(bytes, range)
        return crc.value
    }

    package mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count, "The bytes are there.")
        register = unsafe bytes.withUnsafeBytes { bytes in
            unsafe Self.tables.withUnsafeBufferPointer { tables in
                var crc = register
                var index = range.lowerBound
                let end = range.upperBound
                while end - index >= 8 {
                    let word = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                    let low = UInt32(truncatingIfNeeded: word) ^ crc
                    let high = UInt32(truncatingIfNeeded: word >> 32)
                    let first = unsafe tables[7 * 256 + Int(low & 255)] ^ tables[6 * 256 + Int((low >> 8) & 255)]
                    let second = unsafe tables[5 * 256 + Int((low >> 16) & 255)] ^ tables[4 * 256 + Int(low >> 24)]
                    let third = unsafe tables[3 * 256 + Int(high & 255)] ^ tables[2 * 256 + Int((high >> 8) & 255)]
                    let fourth = unsafe tables[256 + Int((high >> 16) & 255)] ^ tables[Int(high >> 24)]
                    crc = first ^ second ^ third ^ fourth
                    index += 8
                }
                while index < end {
                    crc = unsafe tables[Int((crc ^ UInt32(bytes[index])) & 255)] ^ (crc >> 8)
                    index += 1
                }
                return crc
            }
        }
    }
}
