import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Chat: conversations and messages, visible to members only.
enum ChatEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/conversations", .required, conversations),
        Route(.get, "/v1/conversations/{id}", .required) { call throws(Problem) in try call.read(.conversation) },
        Route(.get, "/v1/conversations/{id}/messages", .required, messages),
        Route(.post, "/v1/conversations/{id}/messages", .required, send),
        Route(.get, "/v1/messages/{id}", .required) { call throws(Problem) in try call.read(.message) },
        Route(.patch, "/v1/messages/{id}", .required, edit),
        Route(.delete, "/v1/messages/{id}", .required, delete),
    ]

    static let textLength = 1...4_000

    // MARK: Reading

    private static func conversations(_ call: Call) throws(Problem) -> Reply? {
        let limit = try call.limit(default: 50)
        let first = try call.after(.conversations, owner: call.viewer) ?? 0
        return try call.reply { store in
            let found = try store.entities.page(after: first, of: .conversations(of: call.viewer), limit: limit + 1)
            let page = found.prefix(limit)
            let next =
                found.count > limit
                ? page.last.map { Cursor(.conversations, owner: call.viewer, row: $0.row) } : nil
            return ListPage.representation(page.map(\.json), (next, nil))
        }
    }

    private static func messages(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.conversation)
        let start = try call.pageStart(.messages, owner: row)
        let anchor = try anchor(call, start)
        let limit = try call.limit(default: 50)
        return try call.reply { store in
            _ = try call.visible(EntityID(.conversation, row), in: store)
            let list = EntityList.of(.message, row)
            let items: [(row: Int64, list: Int64, json: [UInt8])]
            if let anchor {
                guard try store.entities.find(EntityID(.message, anchor))?.list == row else {
                    throw ProblemType.notFound("There is no message msg_\(anchor) in the conversation conv_\(row).")
                }
                // The nearest ones before and after it: half of the page is not older than it.
                let newer = try store.entities.page(.before(anchor - 1), of: list, limit: (limit + 1) / 2)
                items = newer + (try store.entities.page(.after(anchor), of: list, limit: limit - newer.count))
            } else {
                items = try store.entities.page(start, of: list, limit: limit)
            }
            let body = try ListPage.body(items, start, of: list, (.messages, row), in: store)
            return Representation(body: body, cacheControl: CachePolicy.revalidate)
        }
    }

    /// The message that the page is to be around; nil if the request names none.
    private static func anchor(_ call: Call, _ start: PageStart) throws(Problem) -> Int64? {
        guard let text = call.query.first("around") else { return nil }
        guard start == .newest else {
            throw call.invalid("around", "cannot be given together with `after` or `before`")
        }
        guard let id = EntityID(.message, parsing: text) else {
            throw call.invalid("around", "must be the identifier of a message")
        }
        return id.row
    }

    // MARK: Writing

    private static func send(_ call: Call) throws(Problem) -> Reply? {
        let conversation = try call.row(.conversation)
        // Before validation of the body: a non-member must learn nothing about the conversation from errors.
        try call.read { _ = try call.visible(EntityID(.conversation, conversation), in: $0) }
        let reader = BodyReader(try call.jsonObject())
        reader.require("text", "clientId")
        let text = reader.string("text", length: textLength) ?? ""
        let clientID = reader.string("clientId", length: 1...64) ?? ""
        let image = try ImageEndpoints.reference(reader, call)
        try reader.check()
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            let name = EntityRow.messageName(clientID, by: call.viewer)
            if let message = try store.entities.find(.message, named: name, in: conversation) {
                // The client's ID identifies the message: a retry finds the message of the first attempt.
                return .written(try sent(message, clientID: clientID, text: text, in: store))
            }
            let message = EntityRow.message(
                try store.entities.next(.message).row,
                conversation: conversation,
                author: call.viewer,
                clientID: clientID,
                text: text,
                image: image,
                sent: commit.now
            )
            try commit.add(message, to: store)
            try touch(conversation, in: store, &commit)
            return .written(try store.json(.message, message.id.row), createdAt: "/v1/messages/\(message.id.text)")
        }
    }

    private static func sent(_ message: EntityRow, clientID: String, text: String, in store: Store) throws -> [UInt8] {
        guard !message.isDeleted else {
            throw ProblemType.notFound("The message with clientId \(clientID) was deleted.")
        }
        guard message.members["text"] == .string(text) || message.members["editedAt"] != .null else {
            throw ProblemType.validationFailed(
                "Another message was sent with this clientId.",
                at: "/clientId",
                "identifies another message"
            )
        }
        return try store.json(.message, message.id.row)
    }

    /// Records activity in a conversation.
    private static func touch(_ row: Int64, in store: Store, _ commit: inout Commit) throws {
        guard var conversation = try store.entities.find(EntityID(.conversation, row)) else { return }
        let last = try store.entities.extent(.of(.message, row))?.upperBound
        conversation.members["lastMessageId"] = last.map { EntityID(.message, $0).json } ?? .null
        try commit.save(conversation, in: store)
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let id = EntityID(.message, try call.row(.message))
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        return try call.edit(id, isConditionRequired: false) { message, _, commit in
            let reader = BodyReader(patch)
            reader.require("text")
            let text = reader.string("text", length: textLength)
            try reader.check()
            message.members["text"] = text.map { .string($0) }
            message.members["editedAt"] = commit.now.json
        }
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        try call.delete(.message) { try touch($0.list, in: $1, &$2) }
    }
}
