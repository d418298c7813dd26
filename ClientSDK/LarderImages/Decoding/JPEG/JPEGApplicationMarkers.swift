/// The colours of a JPEG's components.
enum JPEGColors: Sendable, Hashable {
    case gray
    case yCbCr
    case rgb
}

/// What JFIF's and Adobe's markers say of the colours (ITU T.871, ITU T.872 §6.5.3).
struct JPEGApplicationMarkers {
    private var isJFIF = false
    private var adobe: UInt8?

    mutating func add(_ marker: UInt8, _ segment: ArraySlice<UInt8>) {
        if marker == 0xE0, segment.starts(with: Array("JFIF\0".utf8)) { isJFIF = true }
        if marker == 0xEE, segment.count >= 12, segment.starts(with: Array("Adobe".utf8)) {
            adobe = segment[segment.startIndex + 11]
        }
    }

    /// Where the markers say nothing, the names of the components decide, as in other decoders.
    func colors(of frame: JPEGFrame) -> JPEGColors {
        if frame.components.count == 1 { return .gray }
        if isJFIF { return .yCbCr }
        if let adobe { return adobe == 0 ? .rgb : .yCbCr }
        return frame.components.map(\.id) == Array("RGB".utf8) ? .rgb : .yCbCr
    }
}
