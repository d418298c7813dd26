/// A scan of a JPEG (ITU T.81 §B.2.3): its header, its tables and the place of its data.
struct JPEGScan: Sendable {
    struct Part: Sendable {
        /// The index in the frame.
        let component: Int
        /// The Huffman codes; nil for those that the scan does not use.
        let dc: JPEGHuffmanCode?
        let ac: JPEGHuffmanCode?
    }

    let parts: [Part]
    /// The coefficients of the scan, in zigzag order.
    let band: ClosedRange<Int>
    /// The bit of the coefficients that the scan refines up to; nil if it is their first.
    let previousBit: Int?
    /// The lowest bit in the scan.
    let bit: Int
    /// The units between two restart markers; 0 without them.
    let restartInterval: Int
    /// The coded data with its restart markers.
    var data: Range<Int>

    /// - Parameters:
    ///   - segment: the content of its header, `end` being where its data begins.
    ///   - codes: the Huffman codes as they were defined so far: four for DC, four for AC.
    init(
        _ segment: ArraySlice<UInt8>,
        _ frame: JPEGFrame,
        codes: [JPEGHuffmanCode?],
        restartInterval: Int
    ) throws(ImageError) {
        self.restartInterval = restartInterval
        data = segment.endIndex..<segment.endIndex
        guard let count = segment.first.map(Int.init), (1...4).contains(count), segment.count >= 4 + 2 * count else {
            throw Self.damaged("header")
        }
        let rest = Array(segment.dropFirst(1 + 2 * count))
        let (first, last) = (Int(rest[0]), Int(rest[1]))
        let (high, low) = (Int(rest[2] >> 4), Int(rest[2] & 15))
        if frame.isProgressive {
            // §G.1.1.1: the DC coefficients have scans of their own, and each scan of others is of one component.
            guard first <= last, last < 64, first > 0 || last == 0, first == 0 || count == 1, low <= 13,
                high == 0 || high == low + 1
            else { throw Self.damaged("band \(first) to \(last) with bits \(high) to \(low)") }
            band = first...last
            previousBit = high == 0 ? nil : high
            bit = low
        } else {
            // Baseline has one band; encoders that state another one mean the same.
            band = 0...63
            previousBit = nil
            bit = 0
        }
        var parts: [Part] = []
        for index in 0..<count {
            let id = segment[segment.startIndex + 1 + 2 * index]
            let tables = segment[segment.startIndex + 2 + 2 * index]
            guard let component = frame.components.firstIndex(where: { $0.id == id }),
                !parts.contains(where: { $0.component == component }), tables >> 4 < 4, tables & 15 < 4
            else { throw Self.damaged("component \(id)") }
            let dc = codes[Int(tables >> 4)]
            let ac = codes[4 + Int(tables & 15)]
            guard dc != nil || band.lowerBound > 0 || previousBit != nil, ac != nil || band.upperBound == 0 else {
                throw Self.damaged("Huffman table, which is missing")
            }
            parts.append(Part(component: component, dc: dc, ac: ac))
        }
        self.parts = parts
    }

    /// What is looked up for each part: the table for DC, then that for AC; zeros where the scan has none.
    var tables: [UInt32] {
        var tables = [UInt32](repeating: 0, count: JPEGHuffmanCode.tableLength * 2 * parts.count)
        for (index, part) in parts.enumerated() {
            part.dc?.build(into: &tables, at: JPEGHuffmanCode.tableLength * 2 * index)
            part.ac?.build(into: &tables, at: JPEGHuffmanCode.tableLength * (2 * index + 1))
        }
        return tables
    }

    private static func damaged(_ what: String) -> ImageError {
        ImageError(.damaged, "The JPEG has a scan with an invalid \(what).")
    }
}
