import LarderCoding

/// An entity tag (RFC 9110 §8.8.3).
public struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    /// Whether it stands for equivalent representations instead of identical ones.
    public let isWeak: Bool
    /// What stands between the quotes.
    public let opaque: String

    /// A tag from what stands between its quotes; nil where a character cannot stand there.
    public init?(opaque: String, isWeak: Bool = false) {
        guard opaque.utf8.allSatisfy({ $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }) else { return nil }
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// Reads one tag: `"…"` or `W/"…"`.
    public init?(parsing text: String) {
        var rest = Substring(text)
        let isWeak = rest.hasPrefix("W/")
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.utf8.count >= 2, rest.hasPrefix("\""), rest.hasSuffix("\"") else { return nil }
        self.init(opaque: String(rest.dropFirst().dropLast()), isWeak: isWeak)
    }

    /// A strong tag that changes exactly when the bytes do: 128 bits of their hash.
    package static func strong(contentOf bytes: Span<UInt8>) -> EntityTag {
        let (high, low) = ContentHash.hash128(bytes)
        let opaque = unsafe withUnsafeBytes(of: (high.littleEndian, low.littleEndian)) { raw in
            Base64.encodeURL(unsafe raw.bindMemory(to: UInt8.self).span)
        }
        return EntityTag(trusted: opaque)
    }

    private init(trusted opaque: String) {
        self.opaque = opaque
        isWeak = false
    }

    /// The tag as fields have it.
    public var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// Whether both stand for the same representation to the byte (RFC 9110 §8.8.3.2).
    public func stronglyMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// Whether both stand for equivalent representations (RFC 9110 §8.8.3.2).
    public func weaklyMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

/// What `If-Match` and `If-None-Match` name: everything, or a list of tags (RFC 9110 §13.1.1).
public enum EntityTagCondition: Sendable, Hashable {
    /// `*`: whatever there is.
    case any
    /// One of these.
    case tags([EntityTag])

    /// Reads a field's value; nil for one that breaks the grammar.
    public init?(parsing text: String) {
        let bytes = Array(text.utf8)
        var index = 0
        var tags: [EntityTag] = []
        func skip(_ set: [UInt8]) { while index < bytes.count, set.contains(bytes[index]) { index += 1 } }
        skip([0x20, 0x09])
        if index < bytes.count, bytes[index] == UInt8(ascii: "*") {
            index += 1
            skip([0x20, 0x09])
            guard index == bytes.count else { return nil }
            self = .any
            return
        }
        while true {
            // Empty elements of a list are passed over (RFC 9110 §5.6.1.2).
            skip([0x20, 0x09, UInt8(ascii: ",")])
            guard index < bytes.count else { break }
            let start = index
            if bytes[index] == UInt8(ascii: "W") { index += 2 }
            guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return nil }
            index += 1
            while index < bytes.count, bytes[index] != UInt8(ascii: "\"") { index += 1 }
            guard index < bytes.count else { return nil }
            index += 1
            guard let tag = EntityTag(parsing: String(decoding: bytes[start..<index], as: UTF8.self)) else {
                return nil
            }
            tags.append(tag)
            skip([0x20, 0x09])
            guard index == bytes.count || bytes[index] == UInt8(ascii: ",") else { return nil }
        }
        guard !tags.isEmpty else { return nil }
        self = .tags(tags)
    }
}
