/// The filtered and sorted lists of documents that were asked for last, each as the positions of its documents in order.
///
/// Confined like its database. Bounded: of more than `entriesMaximum` entries or `listsMaximum` lists, the least recently used
/// list is dropped.
final class DocumentLists {
    /// What determines a list of documents and its order.
    struct Key: Sendable, Hashable {
        let collection: String
        /// Names and values of the parameters that select and sort, in the order of the request.
        let parameters: [String]
    }

    struct Entry: Sendable {
        let number: Int64
        let place: Int64
    }

    struct List: Sendable {
        /// The newest position of the change feed that the list covers.
        var position: Int64
        var entries: [Entry]
    }

    /// 16 bytes each.
    static let entriesMaximum = 500_000
    static let listsMaximum = 64

    private var lists: [Key: (list: List, lastUse: Int)] = [:]
    private var entryCount = 0
    private var useCount = 0
    /// How many documents were decoded to make lists and to find positions in them.
    var decodedCount = 0

    /// Takes a list out; the caller returns it, or the updated list, with `keep`.
    func take(_ key: Key) -> List? {
        guard let known = lists.removeValue(forKey: key) else { return nil }
        entryCount -= known.list.entries.count
        return known.list
    }

    /// Keeps a list. One that is too long is not kept: it is made again for each request.
    func keep(_ list: List, for key: Key) {
        _ = take(key)
        guard list.entries.count <= Self.entriesMaximum else { return }
        useCount += 1
        lists[key] = (list, useCount)
        entryCount += list.entries.count
        while entryCount > Self.entriesMaximum || lists.count > Self.listsMaximum {
            guard let oldest = lists.min(by: { $0.value.lastUse < $1.value.lastUse })?.key else { return }
            _ = take(oldest)
        }
    }
}
