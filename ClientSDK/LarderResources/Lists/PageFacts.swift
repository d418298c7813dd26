import LarderStorage
import LarderTime

/// When the items of a loaded page were fetched and confirmed.
struct PageTimes: Sendable, Hashable {
    var fetchedAt: WallTime
    var validatedAt: WallTime
    var expiresAt: WallTime
    var terms: DiskEntity.Terms = []
    /// When the request that has confirmed it began; of what was joined, the earliest.
    var asked = Stamp.never

    /// The times of items that count as never confirmed.
    static let never = PageTimes(
        fetchedAt: Freshness.Times.never,
        validatedAt: Freshness.Times.never,
        expiresAt: Freshness.Times.never
    )

    init(
        fetchedAt: WallTime,
        validatedAt: WallTime,
        expiresAt: WallTime,
        terms: DiskEntity.Terms = [],
        asked: Stamp = .never
    ) {
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt
        self.expiresAt = expiresAt
        self.terms = terms
        self.asked = asked
    }

    /// What the source has said about the freshness; nil if it has said nothing.
    var stated: StatedFreshness? { StatedFreshness(terms, lifetime: expiresAt - validatedAt) }

    /// The times of items of which some have these times and some have others: those of the oldest.
    func mixed(with other: PageTimes) -> PageTimes {
        guard self != other else { return self }
        var times = validatedAt <= other.validatedAt ? self : other
        times.fetchedAt = min(fetchedAt, other.fetchedAt)
        times.expiresAt = min(expiresAt, other.expiresAt)
        times.asked = min(asked, other.asked)
        times.terms = terms.union(other.terms)
        return times
    }
}

extension Freshness.Times {
    /// The times of a page of a list whose clock is in this state.
    init(_ times: PageTimes, isUncertain: Bool = false, epoch: UInt64) {
        self.init(
            fetchedAt: times.fetchedAt,
            validatedAt: times.validatedAt,
            expiresAt: times.expiresAt,
            terms: times.terms,
            isUncertain: isUncertain,
            epoch: epoch
        )
    }
}

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

    var times: PageTimes
    /// When the request that it came with began; of what was joined, the latest: earlier replies do not change it.
    var asked: Stamp
    /// Nil if the page has no validator or is no longer what a reply contained.
    var confirmation: Confirmation?
    /// Whether the server no longer knows the cursor of the page.
    var isCursorGone = false
    /// For a page behind a gap: the cursor of the page of newer items; nil if the server has stated none.
    var newerCursor: String?

    init(_ times: PageTimes, asked: Stamp? = nil, confirmation: Confirmation? = nil) {
        self.times = times
        self.asked = asked ?? times.asked
        self.confirmation = confirmation
    }

    /// A digest of items in order (FNV-1a, 64 bits).
    static func digest(_ keys: some Sequence<EntityKey>) -> UInt64 {
        var digest: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ byte: UInt8) { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 }
        for key in keys {
            for byte in key.type.utf8 { add(byte) }
            add(0)
            for byte in key.id.utf8 { add(byte) }
            add(0)
        }
        return digest
    }
}

/// The stored form: numbers in one line, and behind it the validator and the cursor of newer items.
extension PageFacts {
    var encoded: String {
        let numbers: [Int64] = [
            times.fetchedAt.nanosecondsSinceEpoch, times.validatedAt.nanosecondsSinceEpoch,
            times.expiresAt.nanosecondsSinceEpoch, times.terms.rawValue, isCursorGone ? 1 : 0,
            Int64(confirmation?.limit ?? 0), Int64(bitPattern: confirmation?.digest ?? 0),
            Int64(confirmation?.validator.utf8.count ?? -1), newerCursor == nil ? 0 : 1, times.asked.rawValue,
            asked.rawValue,
        ]
        let line = numbers.map { "\($0)" }.joined(separator: " ")
        return line + "\n" + (confirmation?.validator ?? "") + (newerCursor ?? "")
    }

    /// Decodes the stored form; nil for other text.
    init?(decoding text: String) {
        let bytes = Array(text.utf8)
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let numbers = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ").compactMap { Int64($0) }
        let rest = bytes[(end + 1)...]
        guard numbers.count == 11, numbers[7] <= rest.count else { return nil }
        self.init(
            PageTimes(
                fetchedAt: WallTime(nanosecondsSinceEpoch: numbers[0]),
                validatedAt: WallTime(nanosecondsSinceEpoch: numbers[1]),
                expiresAt: WallTime(nanosecondsSinceEpoch: numbers[2]),
                terms: DiskEntity.Terms(rawValue: numbers[3]),
                asked: Stamp(rawValue: numbers[9])
            ),
            asked: Stamp(rawValue: numbers[10])
        )
        isCursorGone = numbers[4] != 0
        let validator = rest.prefix(max(0, Int(numbers[7])))
        if numbers[7] >= 0, let limit = Int(exactly: numbers[5]) {
            confirmation = Confirmation(
                validator: String(decoding: validator, as: UTF8.self),
                limit: limit,
                digest: UInt64(bitPattern: numbers[6])
            )
        }
        if numbers[8] != 0 { newerCursor = String(decoding: rest.dropFirst(validator.count), as: UTF8.self) }
    }
}

extension DiskQuery {
    /// The times of the newest page, unless they are not meaningful.
    var headTimes: PageTimes {
        if isInvalidated || isClockUncertain { return .never }
        return PageTimes(
            fetchedAt: fetchedAt,
            validatedAt: validatedAt,
            expiresAt: expiresAt,
            terms: terms,
            asked: asked
        )
    }
}
