/// Chunks of the feed that were read before, kept as they are stored: a page that many read costs no statement.
///
/// It is never older than the table, because it is told of every change before the table is: what was rolled back is then only
/// read once more. It must not be looked at or filled inside a transaction, where the table shows what may yet be undone.
/// Bounded; a chunk gives way to another that was read twice and whose number falls on its place.
struct FeedShelf {
    struct Chunk {
        let id: Int64
        let bytes: [UInt8]
        let layout: FeedChunkLayout
    }

    /// By the number below which they were looked for, modulo their count.
    private var places: [(below: Int64, chunk: Chunk)?] = []
    /// Numbers below which was looked once, by themselves modulo their count.
    private var seen: [Int64] = []

    private static let count = 16
    private static let seenCount = 64
    /// A longer chunk is not kept.
    private static let bytesMaximum = 32_768

    /// The highest chunk whose number is that or lower, if it is here as it is now.
    func chunk(below id: Int64) -> Chunk? {
        guard !places.isEmpty, let place = places[Self.place(id, Self.count)], place.below == id else { return nil }
        return place.chunk
    }

    /// Whether what is found below that number is to be put here: not when it is read for the first time, so that who reads
    /// through the whole feed neither drives out what many read nor pays for keeping what nobody will read again.
    mutating func wants(_ id: Int64) -> Bool {
        if seen.isEmpty { seen = Array(repeating: -1, count: Self.seenCount) }
        let index = Self.place(id, Self.seenCount)
        defer { seen[index] = id }
        return seen[index] == id
    }

    mutating func put(_ chunk: Chunk, below id: Int64) {
        guard chunk.bytes.count <= Self.bytesMaximum else { return }
        if places.isEmpty { places = Array(repeating: nil, count: Self.count) }
        places[Self.place(id, Self.count)] = (id, chunk)
    }

    /// A chunk is about to change.
    mutating func forget(_ id: Int64) {
        for index in places.indices where places[index]?.chunk.id == id { places[index] = nil }
    }

    /// A chunk is about to come or to go, and with it the order of its neighbours.
    mutating func forgetAll() { places.removeAll() }

    private static func place(_ id: Int64, _ count: Int) -> Int { Int(truncatingIfNeeded: id) & (count - 1) }
}
