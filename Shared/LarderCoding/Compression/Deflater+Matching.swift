extension Deflater {
    /// A match that waits for a longer one at the next byte.
    struct Pending: Sendable {
        /// Whether the byte before the position has not been added yet.
        var hasByte = false
        /// 0: no match.
        var length = 0
        var distance = 0
    }

    /// How far the search goes (the values of zlib's levels 1 and 6 were the starting point).
    struct Effort {
        /// The most candidates.
        let chain: Int
        /// A match of this length ends the search.
        let nice: Int
        /// After a match of this length a quarter of the candidates is enough.
        let good: Int
        /// After a match of this length the next byte is not searched.
        let lazy: Int
        /// A match of at most this length has all its bytes entered into the tables.
        let insert: Int

        static let fast = Effort(chain: 6, nice: 32, good: 0, lazy: 0, insert: 16)
        static let good = Effort(chain: 96, nice: 128, good: 8, lazy: 16, insert: 258)
    }

    /// A match of three bytes this far away takes more bits than three literals.
    private static let shortDistanceMaximum = 4_096

    /// Turns bytes into symbols up to the limit, or until the block is full.
    mutating func findMatches(upTo limit: Int) {
        let isFinal = limit == count
        precondition(isFinal || limit <= count - Self.lookahead, "A decision sees all bytes that it depends on.")
        unsafe buffer.withUnsafeBytes { buffer in
            unsafe tables.withUnsafeMutableBufferPointer { tables in
                unsafe symbols.symbols.withUnsafeMutableBufferPointer { all in
                    unsafe symbols.frequencies.withUnsafeMutableBufferPointer { frequencies in
                        var search = unsafe Search(
                            bytes: buffer.baseAddress.unsafelyUnwrapped,
                            tables: tables.baseAddress.unsafelyUnwrapped,
                            symbols: all.baseAddress.unsafelyUnwrapped,
                            frequencies: frequencies.baseAddress.unsafelyUnwrapped,
                            windowLength: windowLength,
                            hashShift: UInt32(32 - hashBits),
                            base: base,
                            end: count,
                            symbolCount: symbols.count
                        )
                        switch level {
                        case .fast: unsafe search.greedy(&position, limit, .fast)
                        case .good: unsafe search.lazy(&position, limit, &pending, .good)
                        }
                        symbols.count = unsafe search.symbolCount
                        symbols.extraBits += unsafe search.extraBits
                    }
                }
            }
        }
    }

    /// The search with everything that it reads and writes at hand.
    ///
    /// All accesses are in bounds: bytes up to `end` + 4 (the buffer has slack), back by less than `windowLength` and only to positions
    /// that were entered; tables by hashes and masks; symbols while `symbolCount` is below the maximum less one.
    @unsafe private struct Search {
        let bytes: UnsafeRawPointer
        let tables: UnsafeMutablePointer<UInt32>
        let symbols: UnsafeMutablePointer<UInt32>
        let frequencies: UnsafeMutablePointer<UInt32>
        let windowLength: Int
        let hashShift: UInt32
        let base: UInt32
        let end: Int
        var symbolCount: Int
        var extraBits = 0

        private var isFull: Bool { unsafe symbolCount >= DeflateSymbols.countMaximum - 1 }

        /// Takes the first match that is found.
        mutating func greedy(_ place: inout Int, _ limit: Int, _ effort: Effort) {
            var position = place
            while position < limit, unsafe !isFull {
                let (length, distance) = unsafe longest(position, 0, effort.chain, effort.nice, short: false)
                if length == 0 {
                    unsafe add(literalAt: position)
                    position &+= 1
                } else {
                    unsafe add(length, distance)
                    if length <= effort.insert {
                        unsafe insert((position &+ 1)..<(position &+ length), short: false)
                    }
                    position &+= length
                }
            }
            place = position
        }

        /// A match waits for the next byte's, and gives way to a longer one.
        mutating func lazy(_ place: inout Int, _ limit: Int, _ pending: inout Pending, _ effort: Effort) {
            var position = place
            var waiting = pending
            while position < limit, unsafe !isFull {
                var (length, distance) = (0, 0)
                if waiting.length < effort.lazy {
                    let chain = waiting.length >= effort.good ? effort.chain / 4 : effort.chain
                    (length, distance) = unsafe longest(position, waiting.length, chain, effort.nice, short: true)
                } else {
                    unsafe insert(position..<(position &+ 1), short: true)
                }
                if waiting.length > 0, length <= waiting.length {
                    unsafe add(waiting.length, waiting.distance)
                    let next = position &+ waiting.length &- 1
                    unsafe insert((position &+ 1)..<next, short: true)
                    position = next
                    waiting = Pending()
                } else {
                    if waiting.hasByte { unsafe add(literalAt: position &- 1) }
                    waiting = Pending(hasByte: true, length: length, distance: distance)
                    position &+= 1
                }
            }
            place = position
            pending = waiting
        }

        /// The longest match at a position that is longer than `known`, or (0, 0). Enters the position into the tables.
        ///
        /// - Parameter short: whether matches of three bytes count, which have a table of their own.
        @inline(__always)
        private func longest(
            _ position: Int,
            _ known: Int,
            _ chain: Int,
            _ nice: Int,
            short: Bool
        ) -> (length: Int, distance: Int) {
            let lengthMaximum = unsafe min(258, end &- position)
            guard lengthMaximum >= 4 else { return (0, 0) }
            let here = unsafe base &+ UInt32(truncatingIfNeeded: position)
            let mask = unsafe UInt32(truncatingIfNeeded: windowLength &- 1)
            let word = unsafe load(position)
            let slot = unsafe hash(word)
            var candidate = unsafe tables[slot]
            unsafe tables[slot] = here
            let previous = unsafe tables.advanced(by: 2 &* windowLength)
            unsafe previous[Int(here & mask)] = candidate
            var (best, bestDistance) = (max(known, 3), 0)
            if short {
                let slot = unsafe windowLength &+ hash(word &<< 8)
                let distance = unsafe Int(here &- tables[slot])
                unsafe tables[slot] = here
                if known < 3, distance <= Deflater.shortDistanceMaximum, unsafe distance < windowLength, distance > 0,
                    unsafe load(position &- distance) &<< 8 == word &<< 8
                {
                    bestDistance = distance
                }
            }
            var (left, nearest) = (chain, 0)
            while left > 0 {
                let distance = Int(here &- candidate)
                // Distances grow along a chain; where they do not, the entry belongs to a position that has left the window.
                guard distance > nearest, unsafe distance < windowLength, best < lengthMaximum else { break }
                let start = position &- distance
                if unsafe load(start &+ best &- 3) == load(position &+ best &- 3), unsafe load(start) == word {
                    let length = unsafe matchLength(start, position, lengthMaximum)
                    if length > best {
                        (best, bestDistance) = (length, distance)
                        if length >= nice { break }
                    }
                }
                left &-= 1
                nearest = distance
                candidate = unsafe previous[Int(candidate & mask)]
            }
            return bestDistance == 0 ? (0, 0) : (best, bestDistance)
        }

        /// Enters positions into the tables, as far as they have four bytes.
        @inline(__always)
        private func insert(_ range: Range<Int>, short: Bool) {
            let mask = unsafe UInt32(truncatingIfNeeded: windowLength &- 1)
            let previous = unsafe tables.advanced(by: 2 &* windowLength)
            var position = range.lowerBound
            let last = unsafe min(range.upperBound, end &- 3)
            while position < last {
                let here = unsafe base &+ UInt32(truncatingIfNeeded: position)
                let word = unsafe load(position)
                let slot = unsafe hash(word)
                unsafe previous[Int(here & mask)] = tables[slot]
                unsafe tables[slot] = here
                if short { unsafe tables[windowLength &+ hash(word &<< 8)] = here }
                position &+= 1
            }
        }

        @inline(__always)
        private func load(_ position: Int) -> UInt32 {
            unsafe bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self).littleEndian
        }

        @inline(__always)
        private func hash(_ word: UInt32) -> Int { unsafe Int((word &* 0x9E37_79B1) &>> hashShift) }

        /// The number of equal bytes, of which the first four are known to be.
        @inline(__always)
        private func matchLength(_ first: Int, _ second: Int, _ maximum: Int) -> Int {
            var length = 4
            while length &+ 8 <= maximum {
                let one = unsafe bytes.loadUnaligned(fromByteOffset: first &+ length, as: UInt64.self).littleEndian
                let two = unsafe bytes.loadUnaligned(fromByteOffset: second &+ length, as: UInt64.self).littleEndian
                let difference = one ^ two
                if difference != 0 { return length &+ difference.trailingZeroBitCount &>> 3 }
                length &+= 8
            }
            while length < maximum,
                unsafe bytes.load(fromByteOffset: first &+ length, as: UInt8.self)
                    == bytes.load(fromByteOffset: second &+ length, as: UInt8.self)
            {
                length &+= 1
            }
            return length
        }

        @inline(__always)
        private mutating func add(literalAt position: Int) {
            let byte = unsafe bytes.load(fromByteOffset: position, as: UInt8.self)
            unsafe symbols[symbolCount] = UInt32(byte) &<< 16
            unsafe symbolCount &+= 1
            unsafe frequencies[Int(byte)] &+= 1
        }

        @inline(__always)
        private mutating func add(_ length: Int, _ distance: Int) {
            unsafe symbols[symbolCount] = UInt32(truncatingIfNeeded: length &<< 16 | distance)
            unsafe symbolCount &+= 1
            let (lengthCode, lengthExtra) = DeflateSymbols.lengthCode(length)
            let (distanceCode, distanceExtra) = DeflateSymbols.distanceCode(distance)
            unsafe frequencies[lengthCode] &+= 1
            unsafe frequencies[DeflateSymbols.literalCount &+ distanceCode] &+= 1
            unsafe extraBits &+= lengthExtra &+ distanceExtra
        }
    }
}
