/// Decodes the blocks of a scan (ITU T.81 §F.2.2, §G.1.2).
@unsafe struct JPEGBlockReader {
    private let isProgressive: Bool
    private let band: ClosedRange<Int>
    private let previousBit: Int?
    private let bit: Int
    /// `JPEGZigzag.order`.
    private let order: UnsafePointer<UInt8>
    /// The blocks that have no more coefficients in the band.
    private var endedBlocks = 0

    init(_ scan: JPEGScan, isProgressive: Bool, _ order: UnsafePointer<UInt8>) {
        unsafe self.isProgressive = isProgressive
        unsafe band = scan.band
        unsafe previousBit = scan.previousBit
        unsafe bit = scan.bit
        unsafe self.order = order
    }

    /// Forgets what a restart marker ends.
    mutating func restart() { unsafe endedBlocks = 0 }

    /// - Parameters:
    ///   - dc: the table for the first coefficient, `ac` that for the others.
    ///   - block: 64 coefficients in natural order. A sequential scan replaces them.
    ///   - predictor: the first coefficient of the component's last block.
    /// - Returns: false if there is an invalid code.
    @inline(__always)
    mutating func read(
        _ bits: inout JPEGBits,
        _ dc: UnsafePointer<UInt32>,
        _ ac: UnsafePointer<UInt32>,
        into block: UnsafeMutablePointer<Int16>,
        predictor: inout Int
    ) -> Bool {
        if unsafe band.lowerBound > 0 {
            return unsafe previousBit == nil
                ? readBand(&bits, ac, block, from: band.lowerBound) : refineBand(&bits, ac, block)
        }
        guard unsafe previousBit == nil else {
            unsafe bits.fill()
            if unsafe bits.take(1) == 1 { unsafe block[0] |= 1 &<< Int16(bit) }
            return true
        }
        if unsafe !isProgressive { unsafe block.update(repeating: 0, count: 64) }
        let entry = unsafe bits.symbol(dc)
        let size = Int(truncatingIfNeeded: (entry &>> 12) & 15)
        if entry == 0 { return false }
        predictor &+= unsafe size > 0 ? bits.takeValue(size) : Int(Int32(bitPattern: entry) &>> 16)
        unsafe block[0] = Int16(truncatingIfNeeded: predictor &<< bit)
        return unsafe isProgressive || readBand(&bits, ac, block, from: 1)
    }

    @inline(__always)
    private mutating func readBand(
        _ source: inout JPEGBits,
        _ ac: UnsafePointer<UInt32>,
        _ block: UnsafeMutablePointer<Int16>,
        from first: Int
    ) -> Bool {
        if unsafe endedBlocks > 0 {
            unsafe endedBlocks -= 1
            return true
        }
        var bits = unsafe source
        defer { unsafe source = unsafe bits }
        let (last, bit, order) = unsafe (band.upperBound, bit, order)
        var index = first
        while index <= last {
            let entry = unsafe bits.symbol(ac)
            let run = Int(truncatingIfNeeded: (entry &>> 8) & 15)
            var value = Int(Int32(bitPattern: entry) &>> 16)
            if value == 0 {
                let size = Int(truncatingIfNeeded: (entry &>> 12) & 15)
                if size == 0 {
                    if entry == 0 { return false }
                    if run < 15 {
                        // The end of the band, in a progressive scan of further blocks too; otherwise sixteen zeros.
                        if unsafe isProgressive { unsafe endedBlocks = unsafe Self.blocks(&bits, run) - 1 }
                        return true
                    }
                    index &+= 16
                    continue
                }
                value = unsafe bits.takeValue(size)
            }
            // At most 63 + 15, for which the order has entries.
            index &+= run
            unsafe block[Int(order[index])] = Int16(truncatingIfNeeded: value &<< bit)
            index &+= 1
        }
        return index <= last &+ 1
    }

    /// The number of blocks that end, this one included.
    private static func blocks(_ bits: inout JPEGBits, _ size: Int) -> Int {
        size == 0 ? 1 : unsafe 1 << size + bits.take(size)
    }

    private mutating func refineBand(
        _ source: inout JPEGBits,
        _ ac: UnsafePointer<UInt32>,
        _ block: UnsafeMutablePointer<Int16>
    ) -> Bool {
        var bits = unsafe source
        defer { unsafe source = unsafe bits }
        let (last, order) = unsafe (band.upperBound, order)
        let one = unsafe 1 &<< Int16(bit)
        var index = unsafe band.lowerBound
        if unsafe endedBlocks == 0 {
            while index <= last {
                let entry = unsafe bits.symbol(ac)
                var run = Int(truncatingIfNeeded: (entry &>> 8) & 15)
                var value = Int(Int32(bitPattern: entry) &>> 16)
                let size = Int(truncatingIfNeeded: (entry &>> 12) & 15)
                if value == 0, size == 0 {
                    if entry == 0 { return false }
                    if run < 15 {
                        unsafe endedBlocks = unsafe Self.blocks(&bits, run)
                        break
                    }
                } else if value == 0 {
                    value = unsafe bits.takeValue(size)
                }
                // A new coefficient has one bit.
                guard (-1...1).contains(value) else { return false }
                // Passes over so many zeros, and refines what it meets.
                while index <= last {
                    let place = unsafe block + Int(order[index])
                    if unsafe place.pointee != 0 {
                        unsafe Self.refine(&bits, place, one)
                    } else {
                        if run == 0 { break }
                        run &-= 1
                    }
                    index &+= 1
                }
                if value != 0 {
                    guard index <= last else { return false }
                    unsafe block[Int(order[index])] = value > 0 ? one : 0 &- one
                }
                index &+= 1
            }
        }
        guard unsafe endedBlocks > 0 else { return true }
        unsafe endedBlocks -= 1
        while index <= last {
            let place = unsafe block + Int(order[index])
            if unsafe place.pointee != 0 { unsafe Self.refine(&bits, place, one) }
            index &+= 1
        }
        return true
    }

    /// Adds the next bit to a coefficient, away from zero.
    @inline(__always)
    private static func refine(_ bits: inout JPEGBits, _ place: UnsafeMutablePointer<Int16>, _ one: Int16) {
        unsafe bits.fill()
        guard unsafe bits.take(1) == 1, unsafe place.pointee & one == 0 else { return }
        unsafe place.pointee &+= unsafe place.pointee > 0 ? one : 0 &- one
    }
}
