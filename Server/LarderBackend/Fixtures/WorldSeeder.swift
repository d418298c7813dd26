import LarderCoding
import LarderHTTP
package import LarderSQLite
import LarderTime

/// Writes the contents of a new world into its empty database.
package enum WorldSeeder {
    /// Fills a database that has the schema, in one transaction.
    ///
    /// - Parameters:
    ///   - contents: nil for no people and no data.
    ///   - instance: the identity of the database's history.
    package static func fill(_ database: Database, with contents: WorldContents?, instance: UInt64) throws {
        let store = try Store(database, instance: instance)
        if let contents { try seed(contents, into: store) }
    }

    private static func seed(_ contents: WorldContents, into store: Store) throws {
        try store.database.transaction {
            try store.meta.set(.origin, contents.origin)
            for (profile, handle) in contents.people { try add(profile, handle, to: store) }
            for (post, likedBy) in contents.posts {
                try store.posts.add(post, likes: likedBy.count)
                for user in likedBy { _ = try store.likes.set(user: user, post: post.row, at: post.updated) }
                let version = post.version
                try store.changes.append(.post, post.row, audience: .everyone, at: post.updated, version: version)
            }
            try addBank(contents, to: store)
            for conversation in contents.conversations { try add(conversation, to: store) }
            try add(contents.messages, to: store)
            for task in contents.tasks {
                try store.tasks.add(task, clientID: nil)
                let version = task.version
                try store.changes.append(.task, task.row, audience: .signedIn, at: task.updated, version: version)
            }
            for collection in contents.collections { try add(collection, at: contents.instant, to: store) }
        }
    }

    private static func add(_ profile: ProfileRow, _ handle: String, to store: Store) throws {
        let joined = profile.updated
        try store.profiles.add(profile, handle: handle)
        try store.changes.append(.profile, profile.row, audience: .everyone, at: joined)
        // A token for each fixture user that needs no sign-in, used by the README and the examples.
        let token = DeveloperToken.text(for: handle)
        let grant = NewGrant(access: token, accessExpires: nil, refresh: nil, refreshExpires: nil)
        try store.sessions.add(user: profile.row, grant, at: joined)
    }

    private static func addBank(_ contents: WorldContents, to store: Store) throws {
        var accounts: [Int64: AccountRow] = [:]
        for account in contents.accounts {
            try store.accounts.add(account)
            accounts[account.row] = account
        }
        for transfer in contents.transfers {
            guard var source = accounts[transfer.from], var target = accounts[transfer.to], source.row != target.row,
                source.currency == target.currency, transfer.minorUnits > 0
            else { throw FileError("Transfer \(transfer.row) is not between two accounts of one currency.") }
            guard source.mayOverdraw || source.balance >= transfer.minorUnits else {
                throw FileError("Transfer \(transfer.row) takes more from account \(source.row) than it holds.")
            }
            source.apply(-transfer.minorUnits, at: transfer.at)
            target.apply(transfer.minorUnits, at: transfer.at)
            accounts[source.row] = source
            accounts[target.row] = target
            let rows = try store.ledger.post(
                transfer.row,
                from: source,
                to: target,
                amount: transfer.minorUnits,
                note: transfer.note,
                at: transfer.at
            )
            for (account, entry) in [(source, rows.debit), (target, rows.credit)] {
                guard let owner = account.owner else { continue }
                try store.changes.append(.transaction, entry, audience: .user(owner), at: transfer.at)
            }
        }
        for account in accounts.values.sorted(by: { $0.row < $1.row }) {
            try store.accounts.saveBalance(of: account)
            guard let owner = account.owner else { continue }
            try store.changes.append(
                .account,
                account.row,
                audience: .user(owner),
                at: account.updated,
                version: account.version
            )
        }
    }

    private static func add(_ conversation: WorldContents.Conversation, to store: Store) throws {
        let members = JSONObject([
            "id": EntityID(.conversation, conversation.row).json,
            "title": conversation.title.map { .string($0) } ?? .null,
            "memberIds": .array(conversation.members.map { EntityID(.profile, $0).json }),
            "createdAt": conversation.created.json,
        ])
        try store.conversations.add(
            conversation.row,
            members: members,
            users: conversation.members,
            at: conversation.created
        )
    }

    private static func add(_ messages: [MessageRow], to store: Store) throws {
        var newest: [Int64: (row: Int64, at: WallTime)] = [:]
        for message in messages {
            try store.messages.add(message, clientID: nil)
            try store.changes.append(
                .message,
                message.row,
                deleted: message.isDeleted,
                audience: .conversation(message.conversation),
                at: message.updated
            )
            if !message.isDeleted { newest[message.conversation] = (message.row, message.updated) }
        }
        for (conversation, last) in newest.sorted(by: { $0.key < $1.key }) {
            let version = try store.conversations.touch(conversation, lastMessage: last.row, at: last.at)
            let audience = Audience.conversation(conversation)
            try store.changes.append(.conversation, conversation, audience: audience, at: last.at, version: version)
        }
    }

    private static func add(_ collection: WorldContents.Collection, at: WallTime, to store: Store) throws {
        try store.documents.addCollection(
            collection.name,
            isNumbered: collection.isNumbered,
            isSingular: collection.isSingular
        )
        for (id, json) in collection.documents {
            let row = try store.documents.add(id, json, to: collection.name, at: at)
            try store.changes.append(.document, row.number, audience: .everyone, at: at, version: row.version)
        }
    }
}

/// The tokens of fixture users that need no sign-in.
package enum DeveloperToken {
    package static func text(for handle: String) -> String { "dev-\(handle)" }
}
