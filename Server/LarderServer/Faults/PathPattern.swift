/// A path pattern: literal text, `*` for one segment, `**` at the end for the rest.
struct PathPattern: Sendable, Hashable {
    /// The description of a valid pattern, for error messages.
    static let rule = "must begin with /; * stands for a whole segment, ** only at the end"

    private enum Segment: Sendable, Hashable {
        case literal([UInt8])
        case any
        case rest
    }

    let text: String
    private let segments: [Segment]

    init?(_ text: String) {
        guard text.hasPrefix("/") else { return nil }
        var segments: [Segment] = []
        for part in text.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard segments.last != .rest else { return nil }
            switch part {
            case "*": segments.append(.any)
            case "**": segments.append(.rest)
            default:
                guard !part.contains("*") else { return nil }
                segments.append(.literal(Array(part.utf8)))
            }
        }
        self.text = text
        self.segments = segments
    }

    func matches(_ path: ArraySlice<UInt8>) -> Bool {
        guard path.first == UInt8(ascii: "/") else { return false }
        var position = path.startIndex + 1
        for (index, segment) in segments.enumerated() {
            if segment == .rest { return true }
            let end = path[position...].firstIndex(of: UInt8(ascii: "/")) ?? path.endIndex
            if case .literal(let bytes) = segment, !path[position..<end].elementsEqual(bytes) { return false }
            if index == segments.count - 1 { return end == path.endIndex }
            guard end < path.endIndex else { return false }
            position = end + 1
        }
        return false
    }
}
