/// Decodes the blocks of sequential scans (ITU T.81 §F.2.2).
enum JPEGBlockReader {
    /// Decodes a block.
    ///
    /// - Parameters:
    ///   - dc: the table for the first coefficient, `ac` that for the others.
    ///   - order: `JPEGZigzag.order`.
    ///   - block: gets 64 coefficients in natural order.
    ///   - predictor: the first coefficient of the component's last block.
    /// - Returns: false if there is an invalid code.
    @inline(__always)
    static func read(
        _ source: inout JPEGBits,
        _ dc: UnsafePointer<UInt32>,
        _ ac: UnsafePointer<UInt32>,
        _ order: UnsafePointer<UInt8>,
        into block: UnsafeMutablePointer<Int16>,
        predictor: inout Int
    ) -> Bool {
        var bits = unsafe source
        defer { unsafe source = unsafe bits }
        unsafe block.update(repeating: 0, count: 64)
        guard let difference = unsafe difference(&bits, dc) else { return false }
        predictor &+= difference
        unsafe block[0] = Int16(truncatingIfNeeded: predictor)
        var index = 1
        while index < 64 {
            let entry = unsafe bits.symbol(ac)
            var value = Int(Int32(bitPattern: entry) &>> 16)
            if value == 0 {
                let size = Int(truncatingIfNeeded: (entry &>> 12) & 15)
                if size == 0 {
                    if entry == 0 { return false }
                    // The end of the block, or sixteen zeros.
                    if (entry &>> 8) & 15 != 15 { break }
                    index &+= 16
                    continue
                }
                value = unsafe bits.takeValue(size)
            }
            // At most 63 + 15, for which the order has entries.
            index &+= Int(truncatingIfNeeded: (entry &>> 8) & 15)
            unsafe block[Int(order[index])] = Int16(truncatingIfNeeded: value)
            index &+= 1
        }
        return index <= 64
    }

    /// Decodes the difference of a block's first coefficient to the predictor.
    @inline(__always)
    static func difference(_ bits: inout JPEGBits, _ dc: UnsafePointer<UInt32>) -> Int? {
        let entry = unsafe bits.symbol(dc)
        let size = Int(truncatingIfNeeded: (entry &>> 12) & 15)
        if size > 0 { return unsafe bits.takeValue(size) }
        return entry == 0 ? nil : Int(Int32(bitPattern: entry) &>> 16)
    }
}
