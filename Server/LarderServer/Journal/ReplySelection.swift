import LarderEngine
import LarderHTTP

/// The requests that a reply may answer: those of the same account, with the same values of the fields that its `Vary` names.
struct ReplySelection {
    private let account: String
    private let names: [FieldName]
    private let values: [String?]

    /// Nil for a reply that answers no other request (`Vary: *`).
    init?(_ entry: JournalEntry) {
        let vary = entry.record.head.combined("vary").map { Vary([.vary: $0]) } ?? .fields([])
        guard case .fields(let names) = vary else { return nil }
        // A renewed token is of the same account.
        let others = names.filter { $0 != .authorization }
        account = entry.account
        self.names = others
        values = Self.values(of: others, in: entry)
    }

    func includes(_ entry: JournalEntry) -> Bool {
        account == entry.account && values == Self.values(of: names, in: entry)
    }

    private static func values(of names: [FieldName], in entry: JournalEntry) -> [String?] {
        let fields = entry.requestFields(names)
        return names.map { Vary.normalized($0, in: fields) }
    }
}
