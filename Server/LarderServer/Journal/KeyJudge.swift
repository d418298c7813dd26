import LarderEngine
import LarderHTTP
import LarderTime

/// Judges the idempotency keys of POSTs: one that is repeated after its reply was lost may be carried out twice, unless both have one key
/// (Idempotency-Key). A transfer needs one at once.
///
/// Without a key only what is created again counts: other repeats may set what was set; a new session is no harm. Requests without a body
/// are not told apart.
struct KeyJudge {
    /// A POST with a key, or one that has failed.
    private struct Write {
        let number: Int
        let key: String?
        let hasFailed: Bool
        /// Whether it may have been carried out although it has failed.
        let isLost: Bool
        let ended: MonotonicTime
        /// The later entry that is taken for its retry under another key.
        var suspect: Int?
    }

    private let capacity: Int
    /// By client, target and body.
    private var writes: RecentTable<[Write]>
    private static let equalWritesMaximum = 64

    init(capacity: Int) {
        self.capacity = capacity
        writes = RecentTable(capacity: capacity)
    }

    var memoryCount: Int { writes.count }

    /// Judges a POST.
    ///
    /// - Parameter request: names its client, its person and its target.
    mutating func judge(_ entry: JournalEntry, _ request: String, _ judgement: inout ExchangeJudge.Judgement) {
        let path = entry.request.path
        guard !path.starts(with: "/v1/sessions".utf8), let hash = entry.bodyHash else { return }
        let isTransfer = path.elementsEqual("/v1/transfers".utf8)
        let key = entry.request.fields.combined(.idempotencyKey)
        let place = "\(request) \(hash)"
        var known = (writes[place] ?? []).filter { $0.number > entry.number - capacity }
        let isRetry = key != nil && known.contains { $0.key == key }
        // What was sent before a write had failed is another operation, and a write is retried under one other key only.
        let candidate = known.lastIndex { write in
            write.hasFailed && write.suspect == nil && write.ended <= entry.started
                && (key != nil || write.isLost && entry.status == 201)
        }
        let name = isTransfer ? "transfer" : "write"
        if key == nil, isTransfer {
            judgement.add(entry.number, "a transfer without an Idempotency-Key", rule: .keyMissing)
        } else if isRetry {
            // So the entry that was taken for its retry is another operation.
            judgement.withdrawn += known.filter { $0.key == key }.compactMap(\.suspect)
        } else if let candidate {
            let other = known[candidate].number
            let how = key == nil ? "without an Idempotency-Key, and created something again" : "with another key"
            let text = "the same \(name) was sent again \(how)"
            judgement.add(entry.number, text, other, rule: key == nil ? .keyMissing : .keyChanged)
            known[candidate].suspect = entry.number
        }
        note(entry, key, in: &known)
        writes.set(known.isEmpty ? nil : known.suffix(Self.equalWritesMaximum), for: place, by: entry.number)
    }

    private func note(_ entry: JournalEntry, _ key: String?, in known: inout [Write]) {
        let isLost = entry.status == 0 || !entry.isComplete || [500, 502, 504].contains(entry.status)
        let hasFailed = isLost || entry.status >= 500
        // An attempt that ends late does not undo the success of another one.
        if hasFailed, key != nil, known.contains(where: { $0.key == key && !$0.hasFailed }) { return }
        known.removeAll { $0.key == key && (key != nil || $0.ended <= entry.started) }
        guard hasFailed || key != nil else { return }
        known.append(
            Write(number: entry.number, key: key, hasFailed: hasFailed, isLost: isLost, ended: entry.ended)
        )
    }
}
