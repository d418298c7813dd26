import Foundation
import Larder
import LarderModels

/// A page of the change feed.
struct ChangePageDocument: Decodable, Sendable {
    var items: [ChangeDocument]
    var nextToken: String
    var hasMore: Bool
}

/// A message of a live channel.
struct LiveDocument: Decodable, Sendable {
    var token: String?
    var previousToken: String?
    var change: ChangeDocument?
}

/// A change of the change feed. New posts and messages are inserted into the lists that show them.
struct ChangeDocument: Decodable, Sendable {
    let remote: ChangeFeed.Change

    private enum Key: String, CodingKey {
        case type, id, version, op, entity
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let type = try container.decode(String.self, forKey: .type)
        let key = EntityKey(type: type, id: try container.decode(String.self, forKey: .id))
        let version = try container.decodeIfPresent(Int64.self, forKey: .version)
        guard try container.decode(String.self, forKey: .op) != "delete" else {
            remote = ChangeFeed.Change(key) { $0.remove(key, deletedInVersion: version) }
            return
        }
        func change<Entity: CacheEntity>(
            _ insert: @escaping @Sendable (Entity, inout CacheUpdate) -> Void
        ) -> ChangeFeed.Change {
            // An entity that cannot be decoded is invalidated, and fetched at the next read.
            do {
                let entity = try container.decode(Entity.self, forKey: .entity)
                return ChangeFeed.Change(key) { insert(entity, &$0) }
            } catch { return ChangeFeed.Change(key) { $0.invalidate(key) } }
        }
        remote =
            switch type {
            case Profile.entityType: change { (profile: Profile, update) in update.put(profile) }
            case Post.entityType:
                // The feed has only the last change of a post: a new post that was liked since has a later version.
                change { (post: Post, update) in
                    update.insert(post, in: Feed.key, isNew: post.version == 1) { CacheUpdate.isOlder($1, $0) }
                }
            case Account.entityType: change { (account: Account, update) in update.put(account) }
            case Transaction.entityType:
                change { (transaction: Transaction, update) in
                    update.put(transaction)
                    update.insert(transaction.entityKey, atFrontOf: Bank.transactionsKey(transaction.accountID))
                }
            case Conversation.entityType:
                change { (conversation: Conversation, update) in
                    update.put(conversation)
                    update.insert(conversation.entityKey, atFrontOf: Chat.conversationsKey)
                }
            case Message.entityType:
                change { (message: Message, update) in
                    let list = Chat.messagesKey(message.conversationID)
                    update.insert(message, in: list, isNew: message.version == 1) { CacheUpdate.isOlder($1, $0) }
                }
            // The lists of tasks have declared conditions and orders.
            case WorkItem.entityType: change { (task: WorkItem, update) in update.put(task) }
            default: ChangeFeed.Change(key) { $0.invalidate(key) }
            }
    }
}

extension CacheUpdate {
    /// Inserts an entity into a stored list, newest first, unless the list contains it or all items of the list are
    /// newer.
    ///
    /// A list that has grown to `maximum` items is invalidated instead, so that the next read fetches a page.
    mutating func insert(_ key: EntityKey, atFrontOf list: QueryKey, keeping maximum: Int = 200) {
        edit(list, atMost: maximum) { ids in
            guard !ids.contains(key) else { return }
            // IDs increase: an older entity than the last one belongs to a later page.
            let last = ids.last { $0.type == key.type && !$0.id.hasPrefix(LocalID.prefix) }
            if let last, Self.isOlder(key.id, last.id) { return }
            let index = ids.firstIndex { $0.type == key.type && Self.isOlder($0.id, key.id) }
            ids.insert(key, at: index ?? (last == nil ? 0 : ids.count))
        }
    }

    /// Whether a server ID such as `post_1042` was assigned before another.
    static func isOlder(_ left: String, _ right: String) -> Bool {
        left.utf8.count != right.utf8.count ? left.utf8.count < right.utf8.count : left < right
    }
}
