/// One range of bytes that a request asks for (RFC 9110 §14.1.2).
public enum ByteRange: Sendable, Hashable {
    /// `first-last`, or to the end where there is no last.
    case from(Int, through: Int?)
    /// `-count`: the last bytes.
    case suffix(Int)

    /// Reads a `Range` field; nil for other units and for what breaks the grammar, which are passed over (§14.2).
    public static func parse(_ text: String) -> [ByteRange]? {
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

    /// The bytes meant in content of that length, or nil if there are none (416).
    public func resolved(against length: Int) -> Range<Int>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<Swift.min(last.map { $0 < Int.max ? $0 + 1 : $0 } ?? length, length)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return Swift.max(0, length - count)..<length
        }
    }

    /// Digits only; what is too large for an Int is as good as the largest.
    private static func number(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        return Int(text) ?? Int.max
    }
}
