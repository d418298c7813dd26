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
    private struct Range: Sendable, Hashable {
        let type: String
        let subtype: String
        let quality: Double

        /// The specificity of the range for a media type; nil if it does not match.
        func specificity(for halves: [Substring]) -> Int? {
            if type == "*", subtype == "*" { return 0 }
            guard type == halves[0] else { return nil }
            return subtype == "*" ? 1 : subtype == halves[1] ? 2 : nil
        }
    }

    private let ranges: [Range]

    /// Parses an `Accept` field; invalid members are ignored.
    package init(parsing text: String) {
        ranges = FieldList.split(text, at: UInt8(ascii: ",")).compactMap { member in
            guard let mediaType = MediaType(parsing: member) else { return nil }
            let halves = mediaType.essence.split(separator: "/")
            let quality = mediaType.parameter("q").map { Double($0) ?? 0 } ?? 1
            return Range(type: String(halves[0]), subtype: String(halves[1]), quality: quality)
        }
    }

    /// Returns the quality of a media type by the most specific range; 0 is not acceptable.
    package func quality(of mediaType: String) -> Double {
        guard !ranges.isEmpty else { return 1 }
        let halves = mediaType.split(separator: "/")
        guard halves.count == 2 else { return 0 }
        let best = ranges.compactMap { range in range.specificity(for: halves).map { ($0, range.quality) } }
            .max { $0.0 < $1.0 }
        return best?.1 ?? 0
    }

    package func accepts(_ mediaType: String) -> Bool { quality(of: mediaType) > 0 }
}
