/// The segments of a JPEG (ITU T.81 Annex B), located and verified before decoding.
struct JPEGFile: Sendable {
    /// The scans that are decoded at most. Encoders write about 10; each may visit every coefficient, so many take long.
    static let scansMaximum = 100

    let frame: JPEGFrame
    /// The scans with their ends in the file.
    private(set) var scans: [JPEGScan] = []
    /// For each component its quantisation factors in natural order; nil if none were defined before its first scan.
    private(set) var quantization: [[UInt16]?]
    let orientation: ExifOrientation
    let colors: JPEGColors

    /// - Parameter isPart: whether the end may be missing, during a download. An incomplete last scan is ignored.
    init(_ bytes: [UInt8], limits: DecodedImage.Limits, isPart: Bool = false) throws(ImageError) {
        guard bytes.starts(with: [0xFF, 0xD8]) else {
            throw ImageError(bytes.count < 2 ? .truncated : .damaged, "This does not begin as a JPEG does.")
        }
        var frame: JPEGFrame?
        var scans: [JPEGScan] = []
        var tables = JPEGTables()
        var used: [[UInt16]?] = []
        var orientation = ExifOrientation.up
        var application = JPEGApplicationMarkers()
        var isWhole = false
        var markers = JPEGMarkers(bytes, from: 2)
        while !isWhole, let marker = markers.next() {
            // Markers without content: TEM, restarts, end.
            if marker == 0xD9 { isWhole = true }
            if marker == 0x01 || (0xD0...0xD9).contains(marker) {
                if marker == 0xD8 { throw ImageError(.damaged, "The JPEG has a second beginning.") }
                continue
            }
            guard let segment = try markers.segment() else { break }
            switch marker {
            case 0xC4: try tables.defineCodes(segment)
            case 0xDB: try tables.defineQuantization(segment)
            case 0xDD: try tables.defineRestarts(segment)
            case 0xC0...0xCF:
                guard frame == nil else { throw ImageError(.damaged, "The JPEG has two frame headers.") }
                let new = try JPEGFrame(marker: marker, segment, limits: limits)
                used = Array(repeating: nil, count: new.components.count)
                frame = new
            case 0xDA:
                guard let frame else { throw ImageError(.damaged, "The JPEG has a scan before its header.") }
                guard scans.count < Self.scansMaximum else {
                    throw ImageError(
                        .tooLarge,
                        "The JPEG has more than \(Self.scansMaximum) scans, which is beyond the limits."
                    )
                }
                var scan = try JPEGScan(segment, frame, codes: tables.codes, restartInterval: tables.restartInterval)
                let hasEnd = markers.skipData()
                scan.data = segment.endIndex..<markers.position
                for part in scan.parts where used[part.component] == nil {
                    used[part.component] = tables.quantization[frame.components[part.component].quantization]
                }
                if hasEnd || !isPart { scans.append(scan) }
            case 0xE0, 0xE1, 0xEE:
                application.add(marker, segment)
                if marker == 0xE1, orientation == .up { orientation = ExifOrientation(exif: segment) ?? .up }
            default: break
            }
        }
        guard let frame else {
            throw ImageError(isWhole ? .damaged : .truncated, "The JPEG ends before its header.")
        }
        guard isWhole || isPart else {
            throw ImageError(.truncated, "The JPEG ends after \(bytes.count) bytes without its last marker.")
        }
        self.frame = frame
        self.scans = scans
        quantization = used
        self.orientation = orientation
        colors = application.colors(of: frame)
        if isPart { return }
        guard hasAllComponents else { throw ImageError(.damaged, "The JPEG has components without a scan.") }
        if let index = used.firstIndex(of: nil) {
            throw ImageError(
                .damaged,
                "The JPEG lacks the quantisation table \(frame.components[index].quantization)."
            )
        }
    }

    /// Width and height as the picture is shown.
    var shownSize: (width: Int, height: Int) {
        orientation.isTransposed ? (frame.height, frame.width) : (frame.width, frame.height)
    }

    /// Whether there are scans with the first coefficients of all components.
    var hasAllComponents: Bool {
        frame.components.indices.allSatisfy { index in
            scans.contains { $0.band.lowerBound == 0 && $0.parts.contains { $0.component == index } }
        }
    }

    /// The quantisation factors of each component, 64 one behind the other.
    var factors: [Int16] {
        quantization.flatMap { table in
            (table ?? [UInt16](repeating: 0, count: 64)).map { Int16(bitPattern: $0) }
        }
    }

    /// Whether the scans can be decoded only one after the other for the whole picture.
    var needsCoefficients: Bool { frame.isProgressive || scans[0].parts.count < frame.components.count }
}
