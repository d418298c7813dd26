/// What is looked up while a scan is decoded, in arrays whose bounds hold for every index that the loops compute.
struct JPEGScanTables {
    /// For each part of the scan the table for DC, then that for AC; zeros where the scan has none.
    let codes: [UInt32]
    /// For each component its 64 quantisation factors.
    let factors: [Int16]

    init(_ file: JPEGFile, _ scan: JPEGScan) {
        var codes = [UInt32](repeating: 0, count: JPEGHuffmanCode.tableLength * 2 * scan.parts.count)
        for (index, part) in scan.parts.enumerated() {
            part.dc?.build(into: &codes, at: Self.dc(index))
            part.ac?.build(into: &codes, at: Self.ac(index))
        }
        self.codes = codes
        factors = Self.factors(file)
    }

    static func dc(_ part: Int) -> Int { JPEGHuffmanCode.tableLength * 2 * part }
    static func ac(_ part: Int) -> Int { JPEGHuffmanCode.tableLength * (2 * part + 1) }

    static func factors(_ file: JPEGFile) -> [Int16] {
        file.quantization.flatMap { table in
            (table ?? [UInt16](repeating: 0, count: 64)).map { Int16(bitPattern: $0) }
        }
    }
}
