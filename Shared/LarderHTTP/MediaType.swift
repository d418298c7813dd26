/// A media type with its parameters (RFC 9110 §8.3.1).
package struct MediaType: Sendable, Hashable {
    /// Type and subtype in lower case, such as `application/json`.
    package let essence: String
    private let parameters: [String: String]

    /// Parses a media type; nil for invalid syntax.
    package init?(parsing text: String) {
        let parts = FieldList.split(text, at: UInt8(ascii: ";"))
        let essence = (parts.first ?? "").lowercased()
        let halves = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, halves.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isTokenByte) }) else {
            return nil
        }
        var parameters: [String: String] = [:]
        for part in parts.dropFirst() where !part.isEmpty {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, !pair[0].isEmpty, pair[0].utf8.allSatisfy(isTokenByte) else { return nil }
            parameters[pair[0].lowercased()] = FieldList.unquoted(pair[1])
        }
        self.essence = essence
        self.parameters = parameters
    }

    /// The value of a parameter, such as `charset`.
    package func parameter(_ name: String) -> String? { parameters[name] }
}

/// The media types that a client accepts (RFC 9110 §12.5.1).
package struct Accept: Sendable, Hashable {
    /// The weights of the ranges, which are without their parameters, in thousandths.
    private var weights: [String: Int] = [:]

    /// Parses an `Accept` field; invalid members are ignored.
    package init(parsing text: String) {
        for member in FieldList.members(of: text) where MediaType(parsing: member) != nil {
            let choice = Negotiation.Choice(member)
            let range = String(choice.range.prefix { $0 != ";" })
            // An invalid weight is the least: some clients send `q=.2`.
            weights[range] = max(weights[range] ?? 0, choice.weight ?? 1)
        }
    }

    /// Returns the weight of a media type by the most specific range, in thousandths; 0 is not acceptable.
    package func quality(of mediaType: String) -> Int {
        guard !weights.isEmpty else { return 1_000 }
        let family = mediaType.prefix { $0 != "/" } + "/*"
        return weights[mediaType] ?? weights[String(family)] ?? weights["*/*"] ?? 0
    }

    package func accepts(_ mediaType: String) -> Bool { quality(of: mediaType) > 0 }
}
