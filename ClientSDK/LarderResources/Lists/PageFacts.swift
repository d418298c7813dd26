import LarderCoding
import LarderStorage
import LarderTime

/// The facts about a loaded page of a timeline besides its items, stored as the note of the boundary or gap before it.
///
/// The facts of the newest page are those of the list itself.
struct PageFacts: Sendable, Hashable {
    /// What a "not modified" reply confirms.
    struct Confirmation: Sendable, Hashable {
        var validator: String
        /// The number of items that were asked for: a validator belongs to one request.
        var limit: Int
        /// The digest of the items that the reply contained.
        var digest: UInt64
    }

    var times: Freshness.Times
    /// When the request that it came with began; of what was joined, the latest: earlier replies do not change it.
    var asked: Stamp
    /// Nil if the page has no validator or is no longer what a reply contained.
    var confirmation: Confirmation?
    /// For a page behind a gap: the cursor of the page of newer items; nil if the server has stated none.
    var newerCursor: String?

    init(_ times: Freshness.Times, asked: Stamp? = nil, confirmation: Confirmation? = nil) {
        self.times = times
        self.asked = asked ?? times.asked
        self.confirmation = confirmation
    }

    /// A digest of items in order.
    static func digest(_ keys: some Sequence<EntityKey>) -> UInt64 {
        var bytes: [UInt8] = []
        for key in keys { bytes += Array(key.type.utf8) + [0] + Array(key.id.utf8) + [0] }
        return ContentHash.hash64(bytes.span)
    }
}

/// The stored form: a JSON array of the numbers, the validator and the cursor of newer items.
extension PageFacts {
    var encoded: String {
        var writer = JSONWriter()
        writer.value(
            .array(
                [
                    times.fetchedAt.nanosecondsSinceEpoch, times.validatedAt.nanosecondsSinceEpoch,
                    times.expiresAt.nanosecondsSinceEpoch, times.terms.rawValue, times.asked.rawValue, asked.rawValue,
                    Int64(confirmation?.limit ?? 0), Int64(bitPattern: confirmation?.digest ?? 0),
                ].map { .integer($0) } + [confirmation?.validator, newerCursor].map { $0.map { .string($0) } ?? .null }
            )
        )
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Decodes the stored form; nil for other text.
    init?(decoding text: String) {
        let values: [JSONValue]
        do { values = try JSONParser.parse(Array(text.utf8)).array ?? [] } catch { return nil }
        let numbers = values.compactMap(\.integer)
        guard values.count == 10, numbers.count == 8 else { return nil }
        let times = Freshness.Times(
            fetchedAt: WallTime(nanosecondsSinceEpoch: numbers[0]),
            validatedAt: WallTime(nanosecondsSinceEpoch: numbers[1]),
            expiresAt: WallTime(nanosecondsSinceEpoch: numbers[2]),
            terms: RowTimes.Terms(rawValue: numbers[3]),
            asked: Stamp(rawValue: numbers[4])
        )
        self.init(times, asked: Stamp(rawValue: numbers[5]))
        confirmation = values[8].string.map {
            Confirmation(validator: $0, limit: Int(numbers[6]), digest: UInt64(bitPattern: numbers[7]))
        }
        newerCursor = values[9].string
    }
}
