/// A path pattern: literal text, `*` for one segment, `**` at the end for the rest.
struct PathPattern: Sendable, Hashable {
    /// The description of a valid pattern, for error messages.
    static let rule = "must begin with /; * stands for a whole segment, ** only at the end"

    /// Without `**`.
    private let segments: [[UInt8]]
    private let hasRest: Bool

    init?(_ text: String) {
        guard text.hasPrefix("/") else { return nil }
        let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        hasRest = parts.last == "**"
        segments = (hasRest ? parts.dropLast() : parts[...]).map { Array($0.utf8) }
        let star = UInt8(ascii: "*")
        guard segments.allSatisfy({ $0 == [star] || !$0.contains(star) }) else { return nil }
    }

    func matches(_ path: ArraySlice<UInt8>) -> Bool {
        guard path.first == UInt8(ascii: "/") else { return false }
        let parts = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard hasRest ? parts.count > segments.count : parts.count == segments.count else { return false }
        return zip(segments, parts).allSatisfy { $0 == [UInt8(ascii: "*")] || $1.elementsEqual($0) }
    }
}
