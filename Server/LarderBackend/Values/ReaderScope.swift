/// The entities that one reader may see, also in the change feed: public ones, the team's, their own, and those of their conversations.
struct ReaderScope: Sendable, Hashable {
    /// The reader's row; 0 for an anonymous reader.
    let viewer: Int64
    let conversations: Set<Int64>
    let accounts: Set<Int64>

    static let anonymous = ReaderScope(viewer: 0, conversations: [], accounts: [])

    /// - Parameter list: that of the entity (`EntityRow.list`).
    func includes(_ entity: EntityID, in list: Int64) -> Bool {
        switch entity.kind {
        case .profile, .post, .document: true
        case .task: viewer != 0
        case .account: accounts.contains(entity.row)
        case .transaction: accounts.contains(list)
        case .conversation: conversations.contains(entity.row)
        case .message: conversations.contains(list)
        case .transfer: false
        }
    }
}
