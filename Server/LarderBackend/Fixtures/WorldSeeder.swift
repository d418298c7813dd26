import LarderCoding
import LarderHTTP
package import LarderSQLite
import LarderTime

/// Writes the contents of a new world into its empty database.
package enum WorldSeeder {
    /// Fills a database that has the schema, in one transaction.
    ///
    /// The history of its contents begins later.
    package static func fill(_ database: Database, with contents: WorldContents) throws {
        let store = try Store(database)
        try store.database.transaction {
            try store.meta.set(.origin, contents.origin)
            for profile in contents.people {
                try store.entities.save(profile)
                // A token for each fixture user that needs no sign-in, used by the README and the examples.
                let token = DeveloperToken.text(for: profile.name ?? "")
                let grant = NewGrant(access: token, accessExpires: nil, refresh: nil, refreshExpires: nil)
                try store.sessions.add(user: profile.id.row, grant, at: profile.updated)
            }
            for (post, likedBy) in contents.posts {
                try store.entities.save(post)
                for user in likedBy { _ = try store.likes.set(true, user: user, post: post.id.row, at: post.updated) }
            }
            try addBank(contents, to: store)
            try addChat(contents, to: store)
            for task in contents.tasks { try store.entities.save(task) }
            for collection in contents.collections { try add(collection, at: contents.instant, to: store) }
        }
    }

    private static func addBank(_ contents: WorldContents, to store: Store) throws {
        var accounts: [Int64: EntityRow] = [:]
        for account in contents.accounts { accounts[account.id.row] = account }
        for transfer in contents.transfers {
            guard var source = accounts[transfer.from], var target = accounts[transfer.to], source.id != target.id,
                source.currency == target.currency, transfer.minorUnits > 0
            else { throw FileError("Transfer \(transfer.row) is not between two accounts of one currency.") }
            guard source.mayOverdraw || source.balance >= transfer.minorUnits else {
                throw FileError("Transfer \(transfer.row) takes more from account \(transfer.from) than it holds.")
            }
            let (row, amount, at) = (transfer.row, transfer.minorUnits, transfer.at)
            let posted = try store.ledger.post(row, from: &source, to: &target, amount, transfer.note, at)
            for transaction in posted.transactions { try store.entities.save(transaction) }
            for account in [source, target] {
                accounts[account.id.row] = account
                accounts[account.id.row]?.version += 1
                accounts[account.id.row]?.updated = at
            }
        }
        for account in accounts.values.sorted(by: { $0.id.row < $1.id.row }) { try store.entities.save(account) }
    }

    private static func addChat(_ contents: WorldContents, to store: Store) throws {
        var newest: [Int64: EntityRow] = [:]
        for message in contents.messages {
            try store.entities.save(message)
            if !message.isDeleted { newest[message.list] = message }
        }
        for (conversation, members) in contents.conversations {
            var conversation = conversation
            try store.conversations.add(members, to: conversation.id.row)
            if let last = newest[conversation.id.row] {
                conversation.members["lastMessageId"] = last.id.json
                conversation.version += 1
                conversation.updated = last.updated
            }
            try store.entities.save(conversation)
        }
    }

    private static func add(_ collection: WorldContents.Collection, at: WallTime, to store: Store) throws {
        try store.collections.add(
            collection.name,
            isNumbered: collection.isNumbered,
            isSingular: collection.isSingular
        )
        guard let row = try store.collections.find(collection.name) else { return }
        for (id, members) in collection.documents {
            try store.entities.save(try store.collections.newDocument(id, members, in: row, at: at))
        }
    }
}

/// The tokens of fixture users that need no sign-in.
package enum DeveloperToken {
    package static func text(for handle: String) -> String { "dev-\(handle)" }
}
