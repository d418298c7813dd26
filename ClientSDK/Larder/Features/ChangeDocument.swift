import Foundation
import LarderModels

/// A page of the server's change feed.
struct ChangePageDocument: Decodable, Sendable {
    var items: [ChangeDocument]
    var nextToken: String
    var hasMore: Bool
}

/// A message of the server's live channel.
struct LiveDocument: Decodable, Sendable {
    var token: String?
    var previousToken: String?
    var change: ChangeDocument?
}

/// A change as the server tells of it. What is not known to this version, or not as it should be, is kept as far as it can be.
struct ChangeDocument: Decodable, Sendable {
    enum Entity: Sendable {
        case profile(Profile)
        case post(Post)
        case account(Account)
        case transaction(Transaction)
        case conversation(Conversation)
        case message(Message)
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
            // An entity that does not decode is stale rather than a reason to stop: it is fetched when somebody looks.
            do { return wrap(try container.decode(Value.self, forKey: .entity)) } catch { return .unknown }
        }
        switch type {
        case Profile.entityType: entity = decode(Entity.profile)
        case Post.entityType: entity = decode(Entity.post)
        case Account.entityType: entity = decode(Entity.account)
        case Transaction.entityType: entity = decode(Entity.transaction)
        case Conversation.entityType: entity = decode(Entity.conversation)
        case Message.entityType: entity = decode(Entity.message)
        default: entity = .unknown
        }
    }

    /// What it does to the store. New posts and messages go to the front of the lists that show them.
    var remote: RemoteChange {
        let key = EntityKey(type: type, id: id)
        let (version, isDeletion, entity) = (version, isDeletion, entity)
        return RemoteChange(key) { update in
            if isDeletion {
                update.steps.append(.remove(key, version: version))
                return
            }
            switch entity {
            case .profile(let profile): update.put(profile)
            case .post(let post):
                update.put(post)
                update.insert(post.entityKey, atFrontOf: Feed.key)
                // An edited or liked post of long ago is none to be put in front.
                if post.version == 1 { update.insertNewest(post.entityKey, in: Feed.timelineKey) }
            case .account(let account): update.put(account)
            case .transaction(let transaction):
                update.put(transaction)
                update.insert(transaction.entityKey, atFrontOf: Bank.transactionsKey(transaction.accountId))
            case .conversation(let conversation):
                update.put(conversation)
                update.insert(conversation.entityKey, atFrontOf: Chat.conversationsKey)
            case .message(let message):
                update.put(message)
                update.insert(message.entityKey, atFrontOf: Chat.messagesKey(message.conversationId))
            case .unknown: update.steps.append(.invalidate(key))
            }
        }
    }
}

extension Update {
    /// Names an entity first in a list that is stored, unless it names it already, or the entity is older than those at its front.
    ///
    /// A list that has grown to `maximum` by this is declared stale instead: its reader asks for a page.
    mutating func insert(_ key: EntityKey, atFrontOf list: QueryKey, keeping maximum: Int = 200) {
        let step: @Sendable (inout DiskQuery) -> Void = { query in
            guard !query.ids.contains(key) else { return }
            // Identifiers grow: what is older than the oldest of them belongs to a page that was not read.
            let last = query.ids.last { $0.type == key.type && !$0.id.hasPrefix(Chat.localPrefix) }
            if let last, Self.isOlder(key.id, last.id) { return }
            guard query.ids.count < maximum else {
                query.isInvalidated = true
                query.entityTag = nil
                return
            }
            let index = query.ids.firstIndex { $0.type == key.type && Self.isOlder($0.id, key.id) }
            query.ids.insert(key, at: index ?? (last == nil ? 0 : query.ids.count))
        }
        steps.append(.editQuery(list, step))
    }

    /// Whether one of the server's identifiers (`post_1042`) was given before another.
    private static func isOlder(_ left: String, _ right: String) -> Bool {
        left.utf8.count != right.utf8.count ? left.utf8.count < right.utf8.count : left < right
    }
}
