/// Decodes one scan into the coefficients of the picture.
@unsafe struct JPEGCoefficientDecoder {
    private let frame: JPEGFrame
    private let scan: JPEGScan
    private let planes: [JPEGCoefficients.Plane]
    private let codes: UnsafePointer<UInt32>
    private let order: UnsafePointer<UInt8>
    private let values: UnsafeMutablePointer<Int16>
    private var bits: JPEGBits
    private var progressive: JPEGProgressiveReader
    private var predictors = InlineArray<4, Int>(repeating: 0)
    private var unit = 0

    /// Decodes a scan, unless none of its coefficients are needed.
    static func decode(
        _ bytes: [UInt8],
        _ file: JPEGFile,
        _ scan: JPEGScan,
        into coefficients: inout JPEGCoefficients
    ) throws(ImageError) {
        let planes = coefficients.planes
        if scan.band.lowerBound > 0, scan.parts.allSatisfy({ planes[$0.component].depth == 1 }) { return }
        let tables = JPEGScanTables(file, scan)
        try unsafe bytes.withUnsafeBufferPointer { bytes throws(ImageError) in
            try unsafe tables.codes.withUnsafeBufferPointer { codes throws(ImageError) in
                try unsafe JPEGZigzag.order.withUnsafeBufferPointer { order throws(ImageError) in
                    try unsafe coefficients.values.withUnsafeMutableBufferPointer { values throws(ImageError) in
                        // The data of the scan lies in the bytes, and the planes have a place for every block of the frame.
                        let order = unsafe order.baseAddress.unsafelyUnwrapped
                        var decoder = unsafe JPEGCoefficientDecoder(
                            frame: file.frame,
                            scan: scan,
                            planes: planes,
                            codes: codes.baseAddress.unsafelyUnwrapped,
                            order: order,
                            values: values.baseAddress.unsafelyUnwrapped,
                            bits: JPEGBits(bytes.baseAddress.unsafelyUnwrapped, scan.data),
                            progressive: JPEGProgressiveReader(scan, order)
                        )
                        try unsafe decoder.run()
                    }
                }
            }
        }
    }

    private mutating func run() throws(ImageError) {
        if unsafe scan.parts.count == 1 {
            // The blocks of one component, without those that only fill its last units (§A.2.2).
            let component = unsafe frame.components[scan.parts[0].component]
            for row in 0..<component.blocksHigh {
                try JPEGDecoder.checkCancellation()
                for column in 0..<component.blocksWide {
                    try unsafe beginUnit()
                    try unsafe check(readBlock(0, row, column))
                }
            }
        } else {
            for row in unsafe 0..<frame.unitsHigh {
                try JPEGDecoder.checkCancellation()
                for column in unsafe 0..<frame.unitsWide {
                    try unsafe beginUnit()
                    try unsafe check(readUnit(row, column))
                }
            }
        }
        try unsafe JPEGDecoder.checkUnread(bits.unreadCount)
    }

    private mutating func readUnit(_ row: Int, _ column: Int) -> Bool {
        for index in unsafe scan.parts.indices {
            let component = unsafe frame.components[scan.parts[index].component]
            for vertical in 0..<component.vertical {
                for horizontal in 0..<component.horizontal {
                    let isRead = unsafe readBlock(
                        index,
                        row * component.vertical + vertical,
                        column * component.horizontal + horizontal
                    )
                    guard isRead else { return false }
                }
            }
        }
        return true
    }

    private mutating func beginUnit() throws(ImageError) {
        defer { unsafe unit += 1 }
        let interval = unsafe scan.restartInterval
        guard interval > 0, unsafe unit > 0, unsafe unit % interval == 0 else { return }
        guard let number = unsafe bits.restart(), unsafe number == (unit / interval - 1) & 7 else {
            throw unsafe ImageError(.damaged, "The JPEG lacks a restart marker before block \(unit).")
        }
        unsafe predictors = InlineArray(repeating: 0)
        unsafe progressive.restart()
    }

    private func check(_ isRead: Bool) throws(ImageError) {
        guard unsafe isRead && !bits.isExhausted else {
            throw unsafe ImageError(.damaged, "The JPEG is damaged at block \(unit) of a scan.")
        }
    }

    @inline(__always)
    private mutating func readBlock(_ part: Int, _ row: Int, _ column: Int) -> Bool {
        let component = unsafe scan.parts[part].component
        let plane = unsafe planes[component]
        let block = unsafe values + plane.offset + (row * plane.blocksWide + column) * plane.depth
        let dc = unsafe codes + JPEGScanTables.dc(part)
        let ac = unsafe codes + JPEGScanTables.ac(part)
        if unsafe frame.isProgressive {
            return unsafe progressive.read(&bits, dc, ac, into: block, predictor: &predictors[component])
        }
        if plane.depth == 1 {
            guard let first = unsafe JPEGBlockReader.readFirst(&bits, dc, ac, predictor: &predictors[component]) else {
                return false
            }
            unsafe block[0] = first
            return true
        }
        return unsafe JPEGBlockReader.read(&bits, dc, ac, order, into: block, predictor: &predictors[component]) != nil
    }
}
