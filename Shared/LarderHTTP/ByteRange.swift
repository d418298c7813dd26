/// A requested range of bytes (RFC 9110 §14.1.2).
package enum ByteRange: Sendable, Hashable {
    /// `first-last`; without a last byte to the end.
    case from(Int, through: Int?)
    /// `-count`: the last bytes.
    case suffix(Int)

    /// Parses a `Range` field; nil for other units and invalid syntax, which must be ignored (§14.2).
    package static func parse(_ text: String) -> [ByteRange]? {
        guard text.lowercased().hasPrefix("bytes=") else { return nil }
        var ranges: [ByteRange] = []
        for part in text.dropFirst(6).split(separator: ",", omittingEmptySubsequences: true) {
            let ends = FieldList.trimmed(part).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            guard ends.count == 2 else { return nil }
            let last = ends[1]
            switch (ends[0].isEmpty, last.isEmpty) {
            case (true, false):
                guard let count = number(last) else { return nil }
                ranges.append(.suffix(count))
            case (false, true):
                guard let first = number(ends[0]) else { return nil }
                ranges.append(.from(first, through: nil))
            case (false, false):
                guard let first = number(ends[0]), let last = number(last), first <= last else { return nil }
                ranges.append(.from(first, through: last))
            case (true, true): return nil
            }
        }
        return ranges.isEmpty ? nil : ranges
    }

    /// Returns the range within content of a length; nil if it is not satisfiable (416).
    package func resolved(against length: Int) -> Range<Int>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<Swift.min(last.map { $0 < Int.max ? $0 + 1 : $0 } ?? length, length)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return Swift.max(0, length - count)..<length
        }
    }

    /// Parses digits; numbers beyond `Int.max` become `Int.max`.
    private static func number(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        return Int(text) ?? Int.max
    }
}
