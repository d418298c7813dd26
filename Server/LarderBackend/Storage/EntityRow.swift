import LarderCoding
import LarderTime

/// An entity of the API: its JSON, and what lists and readers find it by.
struct EntityRow: Sendable {
    let id: EntityID
    /// The author of a post, the owner of an account (0 for shops, employers and opening balances), the account of a transaction, the
    /// conversation of a message, the creator of a task, the collection of a document; 0 for other kinds.
    var list: Int64 = 0
    /// What identifies it in its list: a handle, the ID that a client gave it, the identifier of a document. An account has its name.
    var name: String?
    /// The JSON without version, time of modification, and what depends on the reader.
    var members: JSONObject
    var isDeleted = false
    var version: Int64 = 1
    var updated: WallTime

    /// The only person who may change it; nil if everyone may who sees it.
    var author: Int64? {
        switch id.kind {
        case .profile: id.row
        case .post: list
        case .message: members["authorId"]?.string.flatMap { EntityID(.profile, parsing: $0)?.row }
        default: nil
        }
    }
}

extension EntityRow {
    static func profile(
        _ row: Int64,
        handle: String,
        displayName: String,
        bio: String,
        location: String,
        avatar: ImageCatalogue.Image?,
        cover: ImageCatalogue.Image?,
        joined: WallTime
    ) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "handle": .string(handle), "displayName": .string(displayName), "bio": .string(bio),
            "location": .string(location), "avatar": avatar?.reference ?? .null, "cover": cover?.reference ?? .null,
            "joinedAt": joined.json,
        ]
        return EntityRow(EntityID(.profile, row), name: handle, members, joined)
    }

    static func post(
        _ row: Int64,
        author: Int64,
        text: String,
        image: JSONValue?,
        created: WallTime,
        edited: WallTime? = nil,
        likes: Int = 0
    ) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "authorId": EntityID(.profile, author).json, "text": .string(text), "image": image ?? .null,
            "createdAt": created.json, "editedAt": edited?.json ?? .null, "likeCount": .integer(Int64(likes)),
        ]
        var post = EntityRow(EntityID(.post, row), in: author, members, edited ?? created)
        if likes > 0 { post.version = 2 }
        return post
    }

    static func conversation(_ row: Int64, title: String?, members: [Int64], created: WallTime) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "title": title.map { .string($0) } ?? .null,
            "memberIds": .array(members.map { EntityID(.profile, $0).json }), "createdAt": created.json,
            "lastMessageId": .null,
        ]
        return EntityRow(EntityID(.conversation, row), members, created)
    }

    static func message(
        _ row: Int64,
        conversation: Int64,
        author: Int64,
        clientID: String? = nil,
        text: String,
        image: JSONValue? = nil,
        sent: WallTime,
        edited: WallTime? = nil,
        deleted: WallTime? = nil
    ) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "conversationId": EntityID(.conversation, conversation).json, "authorId": EntityID(.profile, author).json,
            "clientId": clientID.map { .string($0) } ?? .null, "text": .string(text), "image": image,
            "sentAt": sent.json, "editedAt": edited?.json ?? .null,
        ]
        let name = clientID.map { Self.messageName($0, by: author) }
        var message = EntityRow(
            EntityID(.message, row),
            in: conversation,
            name: name,
            members,
            deleted ?? edited ?? sent
        )
        message.isDeleted = deleted != nil
        return message
    }

    /// The name of a message, whose author's client has given it the ID.
    static func messageName(_ clientID: String, by author: Int64) -> String { "\(author) \(clientID)" }

    static func task(
        _ row: Int64,
        creator: Int64,
        clientID: String? = nil,
        title: String,
        status: TaskStatus = .open,
        assignee: Int64? = nil,
        due: TaskDate? = nil,
        created: WallTime,
        updated: WallTime
    ) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "creatorId": EntityID(.profile, creator).json, "clientId": clientID.map { .string($0) } ?? .null,
            "title": .string(title), "createdAt": created.json, "status": .string(status.name),
            "assigneeId": assignee.map { EntityID(.profile, $0).json } ?? .null,
            "due": due.map { .string($0.text) } ?? .null,
        ]
        var task = EntityRow(EntityID(.task, row), in: creator, name: clientID, members, updated)
        if updated != created { task.version = 2 }
        return task
    }

    private init(
        _ id: EntityID,
        in list: Int64 = 0,
        name: String? = nil,
        _ members: KeyValuePairs<String, JSONValue?>,
        _ updated: WallTime
    ) {
        let id_ = JSONObject.Member(name: "id", value: id.json)
        self.init(
            id: id,
            list: list,
            name: name,
            members: JSONObject([id_] + JSONObject(members).members),
            updated: updated
        )
    }
}

/// Accounts. Amounts are integers in the currency's minor unit.
extension EntityRow {
    /// - Parameter owner: nil for an external account, such as a shop, an employer or opening balances.
    static func account(
        _ row: Int64,
        owner: Int64?,
        _ name: String,
        kind: String,
        _ currency: String,
        isOpen: Bool = true,
        opened: WallTime
    ) -> EntityRow {
        let members: KeyValuePairs<String, JSONValue?> = [
            "name": .string(name), "kind": .string(kind), "status": .string(isOpen ? "open" : "closed"),
            "balance": .money(0, currency), "openedAt": opened.json,
        ]
        return EntityRow(EntityID(.account, row), in: owner ?? 0, name: name, members, opened)
    }

    var isOpen: Bool { members["status"] == .string("open") }
    var currency: String { members["balance"]?["currency"]?.string ?? "" }

    var balance: Int64 {
        get { members["balance"]?["minorUnits"]?.integer ?? 0 }
        set { members["balance"] = .money(newValue, currency) }
    }

    /// Only external accounts may be overdrawn.
    var mayOverdraw: Bool { list == 0 }
}
