/// Decodes the scan of a sequential JPEG with all components, strip by strip, without its coefficients in memory.
///
/// After damage, decoding goes on at the next restart marker (ITU T.81 §B.1.1.3), and the blocks in between are gray.
@unsafe struct JPEGSequentialDecoder {
    private let layout: JPEGLayout
    private let scan: JPEGScan
    private let unitsWide: Int
    private let unitCount: Int
    private let codes: UnsafePointer<UInt32>
    private let factors: UnsafePointer<Int16>
    private let order: UnsafePointer<UInt8>
    private var bits: JPEGBits
    private var predictors = InlineArray<4, Int>(repeating: 0)
    /// The units decoded or passed over.
    private var unit = 0
    /// The first unit that is not missing.
    private var resumed = 0
    /// The unit before which the next restart marker is expected.
    private var nextRestart: Int
    private var missingCount = 0

    /// Decodes all strips.
    ///
    /// - Returns: whether parts are missing, but less than half.
    static func decode(
        _ bytes: [UInt8],
        _ file: JPEGFile,
        into strips: inout JPEGStrips
    ) throws(ImageError) -> Bool {
        let scan = file.scans[0]
        let tables = JPEGScanTables(file, scan)
        return try unsafe bytes.withUnsafeBufferPointer { bytes throws(ImageError) in
            try unsafe tables.codes.withUnsafeBufferPointer { codes throws(ImageError) in
                try unsafe tables.factors.withUnsafeBufferPointer { factors throws(ImageError) in
                    try unsafe JPEGZigzag.order.withUnsafeBufferPointer { order throws(ImageError) in
                        // The data of the scan lies in the bytes, and the tables are as long as their parts say.
                        var decoder = unsafe JPEGSequentialDecoder(
                            file,
                            scan,
                            strips.layout,
                            bytes.baseAddress.unsafelyUnwrapped,
                            codes.baseAddress.unsafelyUnwrapped,
                            factors.baseAddress.unsafelyUnwrapped,
                            order.baseAddress.unsafelyUnwrapped
                        )
                        return try unsafe decoder.run(&strips)
                    }
                }
            }
        }
    }

    private init(
        _ file: JPEGFile,
        _ scan: JPEGScan,
        _ layout: JPEGLayout,
        _ bytes: UnsafePointer<UInt8>,
        _ codes: UnsafePointer<UInt32>,
        _ factors: UnsafePointer<Int16>,
        _ order: UnsafePointer<UInt8>
    ) {
        unsafe self.layout = layout
        unsafe self.scan = scan
        unsafe self.codes = codes
        unsafe self.factors = factors
        unsafe self.order = order
        unsafe unitsWide = file.frame.unitsWide
        unsafe unitCount = file.frame.unitsWide * file.frame.unitsHigh
        unsafe bits = unsafe JPEGBits(bytes, scan.data)
        unsafe nextRestart = scan.restartInterval > 0 ? scan.restartInterval : .max
    }

    private mutating func run(_ strips: inout JPEGStrips) throws(ImageError) -> Bool {
        for strip in unsafe 0..<layout.strips {
            try JPEGDecoder.checkCancellation()
            let isUsed = strips.uses(strip)
            try unsafe strips.samples.withUnsafeMutableBufferPointer { samples throws(ImageError) in
                let samples = unsafe samples.baseAddress.unsafelyUnwrapped
                for column in unsafe 0..<unitsWide { try unsafe readUnit(strip, column, samples, isUsed) }
            }
            strips.finish(strip)
        }
        guard unsafe missingCount * 2 < unitCount else {
            throw unsafe ImageError(
                .damaged,
                "The JPEG is damaged: \(missingCount) of its \(unitCount) blocks cannot be decoded."
            )
        }
        try unsafe JPEGDecoder.checkUnread(bits.unreadCount)
        return unsafe missingCount > 0
    }

    private mutating func readUnit(
        _ strip: Int,
        _ column: Int,
        _ samples: UnsafeMutablePointer<UInt8>,
        _ isUsed: Bool
    ) throws(ImageError) {
        if unsafe unit == nextRestart { unsafe restart() }
        defer { unsafe unit += 1 }
        if unsafe unit >= resumed {
            if unsafe decodeUnit(strip, column, samples, isUsed), unsafe !bits.isExhausted { return }
            guard unsafe scan.restartInterval > 0 else {
                throw unsafe ImageError(
                    .damaged,
                    "The JPEG is damaged at block \(unit) of \(unitCount), and it has no restart markers to go on from."
                )
            }
            unsafe resumed = unsafe nextRestart
        }
        unsafe missingCount += 1
        for part in unsafe scan.parts {
            let plane = unsafe layout.planes[part.component]
            let left = column * plane.unitWidth.samples
            for row in 0..<plane.stripRows {
                let place = plane.place(ofRow: strip * plane.stripRows + row) + left
                unsafe (samples + place).update(repeating: 128, count: plane.unitWidth.samples)
            }
        }
    }

    /// Goes on behind the next restart marker; those that are missing leave their units missing.
    private mutating func restart() {
        unsafe predictors = InlineArray(repeating: 0)
        let interval = unsafe scan.restartInterval
        let expected = unsafe unit / interval - 1
        while let number = unsafe bits.restart() {
            let lost = (number - expected) & 7
            // A marker of the past is passed over.
            if lost > 4 { continue }
            unsafe resumed = unsafe unit + lost * interval
            unsafe nextRestart = unsafe resumed + interval
            return
        }
        unsafe (resumed, nextRestart) = (.max, .max)
    }

    /// - Returns: whether it could be decoded.
    @inline(__always)
    private mutating func decodeUnit(
        _ strip: Int,
        _ column: Int,
        _ samples: UnsafeMutablePointer<UInt8>,
        _ isUsed: Bool
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: Int16.self, capacity: 64) { block in
            let block = unsafe block.baseAddress.unsafelyUnwrapped
            for index in unsafe scan.parts.indices {
                let component = unsafe scan.parts[index].component
                let plane = unsafe layout.planes[component]
                let dc = unsafe codes + JPEGScanTables.dc(index)
                let ac = unsafe codes + JPEGScanTables.ac(index)
                let factors = unsafe factors + 64 * component
                for vertical in 0..<plane.blocksHigh {
                    let row = plane.place(ofRow: strip * plane.stripRows + vertical * plane.side)
                    for horizontal in 0..<plane.blocksWide {
                        let place = row + (column * plane.blocksWide + horizontal) * plane.side
                        if plane.side == 1 {
                            guard
                                let first = unsafe JPEGBlockReader.readFirst(
                                    &bits,
                                    dc,
                                    ac,
                                    predictor: &predictors[component]
                                )
                            else { return false }
                            unsafe samples[place] = JPEGInverseDCT.mean(first, factors[0])
                            continue
                        }
                        guard
                            let last = unsafe JPEGBlockReader.read(
                                &bits,
                                dc,
                                ac,
                                order,
                                into: block,
                                predictor: &predictors[component]
                            )
                        else { return false }
                        guard isUsed else { continue }
                        unsafe JPEGInverseDCT.transform(
                            block,
                            factors,
                            side: plane.side,
                            last: last,
                            into: samples + place,
                            stride: plane.stride
                        )
                    }
                }
            }
            return true
        }
    }
}
