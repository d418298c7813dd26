/// Undoes the filters of PNG's rows (PNG §9).
///
/// Rows are stored in arrays with `padding` zero bytes before them, which stand for the pixel before the first.
enum PNGUnfilter {
    static let padding = 16

    /// - Parameters:
    ///   - filter: the first byte of the row in the file.
    ///   - count: the bytes of the row.
    ///   - step: the bytes of a pixel, from 1 to 8.
    static func apply(
        _ filter: UInt8,
        _ row: inout [UInt8],
        _ previous: [UInt8],
        count: Int,
        step: Int
    ) throws(ImageError) {
        precondition(row.count >= count + 2 * padding && previous.count >= count + 2 * padding, "Rows have room.")
        guard filter <= 4 else { throw ImageError(.damaged, "The PNG has a row with filter \(filter).") }
        unsafe row.withUnsafeMutableBufferPointer { row in
            unsafe previous.withUnsafeBufferPointer { previous in
                let row = unsafe row.baseAddress.unsafelyUnwrapped + padding
                let above = unsafe previous.baseAddress.unsafelyUnwrapped + padding
                switch filter {
                case 1: for index in 0..<count { unsafe row[index] &+= row[index &- step] }
                case 2: for index in 0..<count { unsafe row[index] &+= above[index] }
                case 3:
                    for index in 0..<count {
                        let sum = unsafe Int(row[index &- step]) &+ Int(above[index])
                        unsafe row[index] &+= UInt8(truncatingIfNeeded: sum &>> 1)
                    }
                case 4:
                    for index in 0..<count {
                        unsafe row[index] &+= paeth(row[index &- step], above[index], above[index &- step])
                    }
                default: break
                }
            }
        }
    }

    @inline(__always)
    private static func paeth(_ left: UInt8, _ up: UInt8, _ corner: UInt8) -> UInt8 {
        let (p, q) = (Int(up) &- Int(corner), Int(left) &- Int(corner))
        let (toLeft, toUp, toCorner) = (abs(p), abs(q), abs(p &+ q))
        return toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner
    }
}
