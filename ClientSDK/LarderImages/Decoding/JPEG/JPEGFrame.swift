/// The frame header of a JPEG (ITU T.81 §B.2.2), verified.
struct JPEGFrame: Sendable, Hashable {
    struct Component: Sendable, Hashable {
        let id: UInt8
        /// The samples of a unit of the picture in each direction, from 1 to 4; of the only component always 1.
        let horizontal: Int
        let vertical: Int
        /// The index of its quantisation table.
        let quantization: Int
        /// The size in samples.
        let width: Int
        let height: Int

        /// The blocks of 8 × 8 samples in a scan of this component alone.
        var blocksWide: Int { (width + 7) / 8 }
        var blocksHigh: Int { (height + 7) / 8 }
    }

    let width: Int
    let height: Int
    let isProgressive: Bool
    let components: [Component]
    /// The largest sampling factors.
    let horizontal: Int
    let vertical: Int

    /// The units of the picture (MCUs of a scan of all components), each of `8 * horizontal` by `8 * vertical` pixels.
    var unitsWide: Int { (width + 8 * horizontal - 1) / (8 * horizontal) }
    var unitsHigh: Int { (height + 8 * vertical - 1) / (8 * vertical) }

    /// - Parameters:
    ///   - marker: the second byte of the segment's marker, from C0 to CF.
    ///   - segment: its content.
    init(marker: UInt8, _ segment: ArraySlice<UInt8>, limits: DecodedImage.Limits) throws(ImageError) {
        if let reason = Self.unsupported(marker) {
            throw ImageError(
                .unsupportedFormat,
                "The JPEG is \(reason), which is not supported. Ask the server for a baseline or progressive JPEG."
            )
        }
        isProgressive = marker == 0xC2
        let start = segment.startIndex
        guard segment.count >= 6 else { throw Self.damaged("ends within its header") }
        let depth = segment[start]
        guard depth == 8 else {
            guard depth == 12 else { throw Self.damaged("has \(depth) bits a sample") }
            throw ImageError(
                .unsupportedFormat,
                "The JPEG has 12 bits a sample, which is not supported. Ask the server for one of 8 bits."
            )
        }
        height = Int(segment[start + 1]) << 8 | Int(segment[start + 2])
        width = Int(segment[start + 3]) << 8 | Int(segment[start + 4])
        let count = Int(segment[start + 5])
        guard width > 0 else { throw Self.damaged("has no columns") }
        guard height > 0 else {
            throw ImageError(
                .unsupportedFormat,
                "The JPEG states its height behind its data, which is not supported. Ask the server for another file."
            )
        }
        guard width * height <= limits.sourcePixelsMaximum else {
            throw ImageError(.tooLarge, "The JPEG has \(width) × \(height) pixels, which is beyond the limits.")
        }
        guard count == 1 || count == 3 else {
            throw ImageError(
                .unsupportedFormat,
                "The JPEG has \(count) components; 1 and 3 are supported. Ask the server for gray or RGB."
            )
        }
        guard segment.count >= 6 + 3 * count else { throw Self.damaged("ends within its header") }
        let entries = (0..<count).map { segment[(start + 6 + 3 * $0)..<(start + 9 + 3 * $0)] }
        // The factors of a single component have no effect (§A.2.2).
        let factors = entries.map { entry -> (Int, Int) in
            count == 1 ? (1, 1) : (Int(entry[entry.startIndex + 1] >> 4), Int(entry[entry.startIndex + 1] & 15))
        }
        for (index, entry) in entries.enumerated() {
            let (id, table) = (entry[entry.startIndex], entry[entry.startIndex + 2])
            guard (1...4).contains(factors[index].0), (1...4).contains(factors[index].1), table < 4,
                !entries[..<index].contains(where: { $0.first == id })
            else { throw Self.damaged("has an invalid component \(id)") }
        }
        let (horizontal, vertical) = (factors.map(\.0).max() ?? 1, factors.map(\.1).max() ?? 1)
        let (width, height) = (width, height)
        (self.horizontal, self.vertical) = (horizontal, vertical)
        components = zip(entries, factors).map { entry, factor in
            Component(
                id: entry[entry.startIndex],
                horizontal: factor.0,
                vertical: factor.1,
                quantization: Int(entry[entry.startIndex + 2]),
                width: (width * factor.0 + horizontal - 1) / horizontal,
                height: (height * factor.1 + vertical - 1) / vertical
            )
        }
    }

    private static func unsupported(_ marker: UInt8) -> String? {
        switch marker {
        case 0xC0, 0xC1, 0xC2: nil
        case 0xC3: "lossless"
        case 0xC5...0xC7: "hierarchical"
        case 0xC9...0xCB, 0xCD...0xCF: "coded arithmetically"
        default: "of an unknown kind"
        }
    }

    private static func damaged(_ what: String) -> ImageError {
        ImageError(.damaged, "The JPEG \(what).")
    }
}
