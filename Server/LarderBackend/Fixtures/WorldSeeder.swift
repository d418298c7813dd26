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
            for person in contents.people { try add(person, contents.images, to: store) }
            for post in contents.posts { try add(post, contents.images, to: store) }
            try addBank(contents, to: store)
            for conversation in contents.conversations { try add(conversation, to: store) }
            try addMessages(contents.messages, to: store)
            for task in contents.tasks { try add(task, to: store) }
            for collection in contents.collections { try add(collection, at: contents.instant, to: store) }
        }
    }

    private static func add(_ person: WorldContents.Person, _ images: ImageCatalogue, to store: Store) throws {
        let members = ProfileTable.members(
            row: person.row,
            handle: person.handle,
            displayName: person.displayName,
            bio: person.bio,
            location: person.location,
            avatar: person.avatar.flatMap { images[$0] },
            cover: person.cover.flatMap { images[$0] },
            joined: person.joined.rfc3339()
        )
        try store.profiles.add(person.row, handle: person.handle, members: members, at: person.joined)
        try store.changes.append(.profile, person.row, audience: .everyone, at: person.joined)
        // A token for each fixture user that needs no sign-in, used by the README and the examples.
        try store.sessions.add(
            user: person.row,
            NewGrant(
                access: DeveloperToken.text(for: person.handle),
                accessExpires: nil,
                refresh: nil,
                refreshExpires: nil
            ),
            at: person.joined
        )
    }

    private static func add(_ post: WorldContents.Post, _ images: ImageCatalogue, to store: Store) throws {
        let members = PostTable.members(
            row: post.row,
            author: post.author,
            text: post.text,
            image: post.image.flatMap { images[$0]?.json },
            created: post.created,
            edited: post.edited
        )
        let updated = post.edited ?? post.created
        let version: Int64 = post.likedBy.isEmpty ? 1 : 2
        try store.posts.add(
            post.row,
            author: post.author,
            head: EntityHead.encode(members),
            likes: Int64(post.likedBy.count),
            version: version,
            at: updated
        )
        for user in post.likedBy {
            _ = try store.likes.set(user: user, post: post.row, at: updated)
        }
        try store.changes.append(.post, post.row, audience: .everyone, at: updated, version: version)
    }

    private static func addBank(_ contents: WorldContents, to store: Store) throws {
        var accounts: [Int64: AccountRow] = [:]
        for account in contents.accounts {
            let row = AccountRow(
                row: account.row,
                owner: account.owner,
                name: account.name,
                kind: account.kind,
                currency: account.currency,
                isOpen: account.isOpen,
                opened: account.opened,
                balance: 0,
                version: 1,
                updated: account.opened
            )
            try store.accounts.add(row)
            accounts[account.row] = row
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
        var members = JSONObject()
        members["id"] = .string(EntityID(.conversation, conversation.row).text)
        members["title"] = conversation.title.map { .string($0) } ?? .null
        members["memberIds"] = .array(conversation.members.map { .string(EntityID(.profile, $0).text) })
        members["createdAt"] = .string(conversation.created.rfc3339())
        try store.conversations.add(
            conversation.row,
            members: members,
            users: conversation.members,
            at: conversation.created
        )
    }

    private static func addMessages(_ messages: [WorldContents.Message], to store: Store) throws {
        var newest: [Int64: (row: Int64, at: WallTime)] = [:]
        for message in messages {
            let members = MessageTable.members(
                row: message.row,
                conversation: message.conversation,
                author: message.author,
                clientID: nil,
                text: message.text,
                sent: message.sent,
                edited: message.edited
            )
            let updated = message.deleted ?? message.edited ?? message.sent
            try store.messages.add(
                message.row,
                conversation: message.conversation,
                author: message.author,
                clientID: nil,
                head: EntityHead.encode(members),
                isDeleted: message.deleted != nil,
                at: updated
            )
            try store.changes.append(
                .message,
                message.row,
                deleted: message.deleted != nil,
                audience: .conversation(message.conversation),
                at: updated
            )
            if message.deleted == nil { newest[message.conversation] = (message.row, updated) }
        }
        for (conversation, last) in newest.sorted(by: { $0.key < $1.key }) {
            let version = try store.conversations.touch(conversation, lastMessage: last.row, at: last.at)
            let audience = Audience.conversation(conversation)
            try store.changes.append(.conversation, conversation, audience: audience, at: last.at, version: version)
        }
    }

    private static func add(_ task: WorldContents.Task, to store: Store) throws {
        let members = TaskTable.members(
            row: task.row,
            creator: task.creator,
            clientID: nil,
            title: task.title,
            created: task.created
        )
        let row = TaskRow(
            row: task.row,
            creator: task.creator,
            members: members,
            status: task.status,
            assignee: task.assignee,
            due: task.due,
            version: task.updated == task.created ? 1 : 2,
            updated: task.updated
        )
        try store.tasks.add(row, clientID: nil)
        try store.changes.append(.task, row.row, audience: .signedIn, at: row.updated, version: row.version)
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
