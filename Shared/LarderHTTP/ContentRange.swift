/// The `Content-Range` of one range of bytes (RFC 9110 §14.4).
package struct ContentRange: Sendable, Hashable {
    /// The positions of the bytes; not empty.
    package let bytes: Range<Int>
    /// The size of the whole content, in bytes; nil if it is unknown (`*`).
    package let total: Int?

    /// Parses `bytes 100-199/200`; nil for anything else.
    package init?(parsing text: String) {
        guard text.lowercased().hasPrefix("bytes ") else { return nil }
        let sides = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        let ends = (sides.first ?? "").split(separator: "-", omittingEmptySubsequences: false)
        guard sides.count == 2, ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
            first <= last, last < Int.max
        else { return nil }
        bytes = first..<(last + 1)
        guard sides[1] != "*" else {
            total = nil
            return
        }
        guard let total = Self.number(sides[1]), last < total else { return nil }
        self.total = total
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { $0 &- UInt8(ascii: "0") < 10 } ? Int(text) : nil
    }
}
