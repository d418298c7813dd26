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

/// A change of the change feed. An entity of an unknown type, or one that cannot be decoded, is `.unknown`.
struct ChangeDocument: Decodable, Sendable {
    enum Entity: Sendable {
        case profile(Profile)
        case post(Post)
        case account(Account)
        case transaction(Transaction)
        case conversation(Conversation)
        case message(Message)
        case task(WorkItem)
        case unknown
    }

    var type: String
    var id: String
    var version: Int64?
    var isDeletion: Bool
    var entity: Entity

    private enum Key: String, CodingKey {
        case type, id, version, op, entity
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        type = try container.decode(String.self, forKey: .type)
        id = try container.decode(String.self, forKey: .id)
        version = try container.decodeIfPresent(Int64.self, forKey: .version)
        isDeletion = try container.decode(String.self, forKey: .op) == "delete"
        guard !isDeletion else {
            entity = .unknown
            return
        }
        func decode<Value: Decodable>(_ wrap: (Value) -> Entity) -> Entity {
            // An entity that cannot be decoded is invalidated, and fetched at the next read.
            do { return wrap(try container.decode(Value.self, forKey: .entity)) } catch { return .unknown }
        }
        switch type {
        case Profile.entityType: entity = decode(Entity.profile)
        case Post.entityType: entity = decode(Entity.post)
        case Account.entityType: entity = decode(Entity.account)
        case Transaction.entityType: entity = decode(Entity.transaction)
        case Conversation.entityType: entity = decode(Entity.conversation)
        case Message.entityType: entity = decode(Entity.message)
        case WorkItem.entityType: entity = decode(Entity.task)
        default: entity = .unknown
        }
    }

    /// The change to the cache. New posts and messages are inserted into the lists that show them.
    var remote: ChangeFeed.Change {
        let key = EntityKey(type: type, id: id)
        let (version, isDeletion, entity) = (version, isDeletion, entity)
        return ChangeFeed.Change(key) { update in
            if isDeletion {
                update.remove(key, deletedInVersion: version)
                return
            }
            switch entity {
            case .profile(let profile): update.put(profile)
            case .post(let post):
                // The feed has only the last change of a post: a new post that was liked since has a later version.
                update.insert(post, in: Feed.key, isNew: post.version == 1) { CacheUpdate.isOlder($1, $0) }
            case .account(let account): update.put(account)
            case .transaction(let transaction):
                update.put(transaction)
                update.insert(transaction.entityKey, atFrontOf: Bank.transactionsKey(transaction.accountID))
            case .conversation(let conversation):
                update.put(conversation)
                update.insert(conversation.entityKey, atFrontOf: Chat.conversationsKey)
            case .message(let message):
                let isNew = message.version == 1
                update.insert(message, in: Chat.messagesKey(message.conversationID), isNew: isNew) {
                    CacheUpdate.isOlder($1, $0)
                }
            // The lists of tasks have declared conditions and orders.
            case .task(let task): update.put(task)
            case .unknown: update.invalidate(key)
            }
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
