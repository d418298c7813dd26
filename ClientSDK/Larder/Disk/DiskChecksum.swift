import LarderCoding

/// The checksum of a row: that its bytes are those that were stored, under this key and by this payload transform.
///
/// SQLite notices damage to a page's structure and not to its contents. The part that depends on times is combined by
/// exclusive or, so that times can be renewed without reading the payload. It resists accidents, not attackers.
struct DiskChecksum: Sendable {
    private let seed: UInt64

    init(transform: String?) { seed = Self.add(transform ?? "", to: transform == nil ? 0 : 1) }

    /// The part that does not depend on times.
    func content(_ kind: DiskKind, _ space: String, _ key: String, _ entityTag: String?, _ stored: [UInt8]) -> UInt64 {
        var sum = ContentHash.hash64(stored.span, seed: seed &+ UInt64(kind.rawValue))
        sum = Self.add(space, to: sum)
        sum = Self.add(key, to: sum)
        return entityTag.map { Self.add($0, to: sum) } ?? sum
    }

    /// The content of a tombstone, which no entity has.
    func tombstone(_ type: String, _ id: String) -> UInt64 { ~content(.entity, type, id, nil, []) }

    /// The part of a list that its identifiers make.
    static func members(_ ids: [EntityKey]) -> UInt64 {
        ids.reduce(UInt64(ids.count)) { add($1.id, to: add($1.type, to: $0)) }
    }

    /// The part that does depend on times.
    static func times(version: Int64?, fetched: Int64, validated: Int64, expires: Int64) -> UInt64 {
        var sum: UInt64 = version == nil ? 1 : 2
        for part in [version ?? 0, fetched, validated, expires] {
            let product = (sum ^ 0xA076_1D64_78BD_642F).multipliedFullWidth(
                by: UInt64(bitPattern: part) ^ 0xE703_7ED1_A0B4_28DB
            )
            sum = (product.high ^ product.low) &+ sum
        }
        return sum
    }

    /// Of a row that is not an item: a token, a metadata value, an operation of the outbox.
    static func plain(_ texts: [String?], _ numbers: [Int64], _ bytes: [UInt8]) -> Int64 {
        var sum = ContentHash.hash64(bytes.span)
        for text in texts { sum = text.map { add($0, to: sum) } ?? (sum &+ 1) }
        for number in numbers {
            sum ^= times(version: number, fetched: Int64(bitPattern: sum), validated: 0, expires: 0)
        }
        return Int64(bitPattern: sum)
    }

    private static func add(_ text: String, to sum: UInt64) -> UInt64 {
        var text = text
        return text.withUTF8 { utf8 in unsafe ContentHash.hash64(Span(_unsafeElements: utf8), seed: sum) }
    }
}
