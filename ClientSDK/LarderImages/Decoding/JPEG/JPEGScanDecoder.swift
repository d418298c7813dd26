/// Decodes a scan into coefficients, row by row.
@unsafe struct JPEGScanDecoder {
    /// A block of each unit: its tables, and the places of its coefficients.
    private struct Block {
        let component: Int
        let dc: Int
        let ac: Int
        let first: Int
        let rowStride: Int
        let columnStride: Int
    }

    /// The rows and columns of units: of a scan of one component its blocks, without those that only fill the last units of the picture
    /// (§A.2.2).
    let rows: Int
    private let columns: Int
    private let blocks: [Block]
    private let restartInterval: Int
    private let codes: UnsafePointer<UInt32>
    private var bits: JPEGBits
    private var reader: JPEGBlockReader
    private var predictors = InlineArray<4, Int>(repeating: 0)
    /// The number of units decoded.
    private var unit = 0

    /// Calls `body` with a decoder, which is valid during the call, and verifies that the data is used up.
    static func with(
        _ bytes: [UInt8],
        _ file: JPEGFile,
        _ scan: JPEGScan,
        _ planes: [JPEGCoefficients.Plane],
        _ body: (inout JPEGScanDecoder) throws(ImageError) -> Void
    ) throws(ImageError) {
        let tables = scan.tables
        try unsafe bytes.withUnsafeBufferPointer { bytes throws(ImageError) in
            try unsafe tables.withUnsafeBufferPointer { codes throws(ImageError) in
                try unsafe JPEGZigzag.order.withUnsafeBufferPointer { order throws(ImageError) in
                    // The data of the scan lies in the bytes, and the tables are as long as their parts say.
                    var decoder = unsafe JPEGScanDecoder(
                        file.frame,
                        scan,
                        planes,
                        bytes.baseAddress.unsafelyUnwrapped,
                        codes.baseAddress.unsafelyUnwrapped,
                        order.baseAddress.unsafelyUnwrapped
                    )
                    try unsafe body(&decoder)
                    try unsafe decoder.finish()
                }
            }
        }
    }

    private init(
        _ frame: JPEGFrame,
        _ scan: JPEGScan,
        _ planes: [JPEGCoefficients.Plane],
        _ bytes: UnsafePointer<UInt8>,
        _ codes: UnsafePointer<UInt32>,
        _ order: UnsafePointer<UInt8>
    ) {
        let only = scan.parts.count == 1 ? frame.components[scan.parts[0].component] : nil
        unsafe rows = only?.blocksHigh ?? frame.unitsHigh
        unsafe columns = only?.blocksWide ?? frame.unitsWide
        unsafe blocks = scan.parts.indices.flatMap { part in
            let number = scan.parts[part].component
            let (component, plane) = (frame.components[number], planes[number])
            let (high, wide) = only == nil ? (component.vertical, component.horizontal) : (1, 1)
            return (0..<high * wide).map { index in
                Block(
                    component: number,
                    dc: JPEGHuffmanCode.tableLength * 2 * part,
                    ac: JPEGHuffmanCode.tableLength * (2 * part + 1),
                    first: plane.offset + (index / wide * plane.blocksWide + index % wide) * 64,
                    rowStride: high * plane.blocksWide * 64,
                    columnStride: wide * 64
                )
            }
        }
        unsafe restartInterval = scan.restartInterval
        unsafe self.codes = codes
        unsafe bits = unsafe JPEGBits(bytes, scan.data)
        unsafe reader = unsafe JPEGBlockReader(scan, isProgressive: frame.isProgressive, order)
    }

    /// Decodes the next row of units.
    ///
    /// - Parameters:
    ///   - values: the coefficients.
    ///   - row: the row of the values.
    mutating func readRow(into values: inout [Int16], at row: Int) throws(ImageError) {
        try ImageError.checkCancellation()
        try unsafe values.withUnsafeMutableBufferPointer { values throws(ImageError) in
            // The planes have a place for every block of the frame, or of a row of its units.
            let values = unsafe values.baseAddress.unsafelyUnwrapped
            for column in unsafe 0..<columns {
                if unsafe restartInterval > 0, unsafe unit > 0, unsafe unit % restartInterval == 0 {
                    try unsafe restart()
                }
                guard unsafe readUnit(row, column, values), unsafe !bits.isExhausted else {
                    throw unsafe ImageError(.damaged, "The JPEG is damaged at block \(unit) of a scan.")
                }
                unsafe unit += 1
            }
        }
    }

    /// - Returns: whether it could be decoded.
    @inline(__always)
    private mutating func readUnit(_ row: Int, _ column: Int, _ values: UnsafeMutablePointer<Int16>) -> Bool {
        for index in unsafe blocks.indices {
            let block = unsafe blocks[index]
            let place = unsafe values + block.first + row * block.rowStride + column * block.columnStride
            let (dc, ac) = unsafe (codes + block.dc, codes + block.ac)
            guard unsafe reader.read(&bits, dc, ac, into: place, predictor: &predictors[block.component]) else {
                return false
            }
        }
        return true
    }

    /// Goes on behind the next restart marker (ITU T.81 §F.2.2.4).
    private mutating func restart() throws(ImageError) {
        unsafe predictors = InlineArray(repeating: 0)
        unsafe reader.restart()
        let expected = unsafe unit / restartInterval - 1
        guard unsafe bits.restart() == expected & 7 else {
            throw unsafe ImageError(.damaged, "The JPEG lacks a restart marker before block \(unit).")
        }
    }

    private func finish() throws(ImageError) {
        // Some encoders write a few bytes too many, and other decoders ignore them.
        let unread = unsafe bits.unreadCount
        guard unread <= 256 else {
            throw ImageError(.damaged, "The JPEG is damaged: \(unread) bytes are left after its last block.")
        }
    }
}
