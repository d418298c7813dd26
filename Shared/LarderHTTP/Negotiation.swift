/// The request fields of proactive negotiation (RFC 9110 §12.4, §12.5).
package enum Negotiation {
    /// A member of `Accept`, `Accept-Charset`, `Accept-Encoding` or `Accept-Language`.
    package struct Choice: Sendable, Hashable, CustomStringConvertible {
        /// The range in lower case with its parameters: `text/html;level=1`, `de-ch`, `gzip`.
        package let range: String
        /// The weight in thousandths, 0 to 1000 (§12.4.2); nil if it is invalid.
        package let weight: Int?
        /// What follows the weight, or an invalid weight.
        private let rest: String

        /// Parses a member of the list.
        package init(_ member: String) {
            var range: [String] = []
            var rest: [String] = []
            var weight: Int? = 1000
            var hasWeight = false
            for (index, part) in FieldList.split(member, at: UInt8(ascii: ";")).enumerated() {
                guard index > 0 else {
                    range.append(part.lowercased())
                    continue
                }
                // Values of parameters may be case-sensitive.
                let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                let parameter = ([(sides.first ?? "").lowercased()] + sides.dropFirst()).joined(separator: "=")
                if hasWeight {
                    rest.append(parameter)
                } else if parameter.hasPrefix("q="), sides.count == 2 {
                    hasWeight = true
                    weight = Self.thousandths(sides[1])
                    if weight == nil { rest.append(parameter) }
                } else {
                    range.append(parameter)
                }
            }
            self.range = range.joined(separator: ";")
            self.weight = weight
            self.rest = rest.joined(separator: ";")
        }

        /// The normalised member.
        package var description: String {
            let stated = weight == 1000 ? nil : weight.map { "q=\($0)" }
            return [range, stated, rest.isEmpty ? nil : rest].compactMap { $0 }.joined(separator: ";")
        }

        /// Parses a number from 0 to 1 with at most three decimals.
        private static func thousandths(_ text: String) -> Int? {
            let sides = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
            let decimals = sides.count == 2 ? sides[1] : ""
            guard sides[0] == "0" || sides[0] == "1", decimals.utf8.count <= 3,
                decimals.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
            else { return nil }
            let padding = String(repeating: "0", count: 3 - decimals.utf8.count)
            return Int(sides[0] + decimals + padding).flatMap { $0 <= 1000 ? $0 : nil }
        }
    }

    /// Whether a request prefers content in a language to content in any other: exactly one range of its
    /// `Accept-Language` has the highest weight, and it matches the only language of the content (RFC 9110 §12.5.4, RFC
    /// 4647 §3.3.1).
    package static func prefers(_ contentLanguage: String, in request: Fields) -> Bool {
        let choices = request.values(of: .acceptLanguage).flatMap(FieldList.members).map { Choice($0) }
        let languages = FieldList.members(of: contentLanguage.lowercased())
        guard let highest = choices.compactMap(\.weight).max(), highest > 0, languages.count == 1,
            choices.allSatisfy({ $0.weight != nil })
        else { return false }
        let first = choices.filter { $0.weight == highest }
        return first.count == 1 && (languages[0] == first[0].range || languages[0].hasPrefix(first[0].range + "-"))
    }
}
