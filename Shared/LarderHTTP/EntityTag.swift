import LarderCoding

/// An entity tag (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    /// Whether the tag is weak: equal for equivalent representations.
    package let isWeak: Bool
    /// The text between the quotes.
    package let opaque: String

    /// Makes a tag from the text between its quotes; nil if a character is invalid.
    package init?(opaque: String, isWeak: Bool = false) {
        guard opaque.utf8.allSatisfy({ $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }) else { return nil }
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// Parses one tag: `"…"` or `W/"…"`.
    package init?(parsing text: String) {
        var rest = Substring(text)
        let isWeak = rest.hasPrefix("W/")
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.utf8.count >= 2, rest.hasPrefix("\""), rest.hasSuffix("\"") else { return nil }
        self.init(opaque: String(rest.dropFirst().dropLast()), isWeak: isWeak)
    }

    /// Makes a strong tag from a 128-bit hash of the bytes.
    package static func strong(contentOf bytes: Span<UInt8>) -> EntityTag {
        let (high, low) = ContentHash.hash128(bytes)
        let bytes = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) } }
        return EntityTag(trusted: Base64.encodeURL(bytes))
    }

    private init(trusted opaque: String, isWeak: Bool = false) {
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// The tag of the same representation in a content coding, whose bytes are others (RFC 9110 §8.8.3.3).
    package func coded(by coding: ContentCoding) -> EntityTag {
        EntityTag(trusted: opaque + "-" + coding.rawValue, isWeak: isWeak)
    }

    /// The tag as in a field.
    package var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// The strong comparison: whether both identify the same bytes (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// The weak comparison: whether both identify equivalent representations (RFC 9110 §8.8.3.2).
    package func weaklyMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

/// The value of `If-Match` or `If-None-Match`: everything, or a list of tags (RFC 9110 §13.1.1).
package enum EntityTagCondition: Sendable, Hashable {
    /// `*`: any current representation.
    case any
    case tags([EntityTag])

    /// Parses a field's value; nil for invalid syntax.
    package init?(parsing text: String) {
        let members = FieldList.members(of: text)
        if members == ["*"] {
            self = .any
            return
        }
        let tags = members.compactMap { EntityTag(parsing: $0) }
        guard !tags.isEmpty, tags.count == members.count else { return nil }
        self = .tags(tags)
    }
}
