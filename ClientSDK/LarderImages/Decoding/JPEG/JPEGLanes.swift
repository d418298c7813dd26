/// Conversions between vectors of eight lanes.
enum JPEGLanes {
    typealias Row = SIMD8<Int16>
    typealias Wide = SIMD8<Int32>

    @inline(__always)
    static func wide(_ row: Row) -> Wide {
        Wide(truncatingIfNeeded: row)
    }

    /// Each lane's product with a constant.
    @inline(__always)
    static func product(_ row: Row, _ constant: Int16) -> Wide {
        wide(row) &* Wide(repeating: Int32(constant))
    }

    /// The low 16 bits of each lane.
    @inline(__always)
    static func narrow(_ wide: Wide) -> Row {
        Row(truncatingIfNeeded: wide)
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
        SIMD8<UInt8>(truncatingIfNeeded: row)
    }
}
