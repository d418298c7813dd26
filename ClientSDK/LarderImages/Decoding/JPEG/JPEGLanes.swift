/// Conversions between vectors, lane by lane, which the compiler turns into single instructions. The generic ones of the standard
/// library are calls, which made the inverse transform three times as slow.
enum JPEGLanes {
    typealias Row = SIMD8<Int16>
    typealias Wide = SIMD8<Int32>

    @inline(__always)
    static func wide(_ row: Row) -> Wide {
        Wide(
            Int32(row[0]),
            Int32(row[1]),
            Int32(row[2]),
            Int32(row[3]),
            Int32(row[4]),
            Int32(row[5]),
            Int32(row[6]),
            Int32(row[7])
        )
    }

    /// Each lane's product with a constant.
    @inline(__always)
    static func product(_ row: Row, _ constant: Int16) -> Wide {
        wide(row) &* Wide(repeating: Int32(constant))
    }

    /// The low 16 bits of each lane.
    @inline(__always)
    static func narrow(_ wide: Wide) -> Row {
        Row(
            Int16(truncatingIfNeeded: wide[0]),
            Int16(truncatingIfNeeded: wide[1]),
            Int16(truncatingIfNeeded: wide[2]),
            Int16(truncatingIfNeeded: wide[3]),
            Int16(truncatingIfNeeded: wide[4]),
            Int16(truncatingIfNeeded: wide[5]),
            Int16(truncatingIfNeeded: wide[6]),
            Int16(truncatingIfNeeded: wide[7])
        )
    }

    /// Eight bytes as lanes.
    @inline(__always)
    static func load(_ source: UnsafePointer<UInt8>, _ index: Int) -> Row {
        let bytes = unsafe UnsafeRawPointer(source).loadUnaligned(fromByteOffset: index, as: SIMD8<UInt8>.self)
        return Row(
            Int16(bytes[0]),
            Int16(bytes[1]),
            Int16(bytes[2]),
            Int16(bytes[3]),
            Int16(bytes[4]),
            Int16(bytes[5]),
            Int16(bytes[6]),
            Int16(bytes[7])
        )
    }

    /// Each lane within 0 to 255.
    @inline(__always)
    static func clamped(_ row: Row) -> Row {
        let (zero, most) = (Row(repeating: 0), Row(repeating: 255))
        let positive = row.replacing(with: zero, where: row .< zero)
        return positive.replacing(with: most, where: positive .> most)
    }

    /// The lanes, which are from 0 to 255, as bytes.
    @inline(__always)
    static func bytes(_ row: Row) -> SIMD8<UInt8> {
        SIMD8(
            UInt8(truncatingIfNeeded: row[0]),
            UInt8(truncatingIfNeeded: row[1]),
            UInt8(truncatingIfNeeded: row[2]),
            UInt8(truncatingIfNeeded: row[3]),
            UInt8(truncatingIfNeeded: row[4]),
            UInt8(truncatingIfNeeded: row[5]),
            UInt8(truncatingIfNeeded: row[6]),
            UInt8(truncatingIfNeeded: row[7])
        )
    }
}
