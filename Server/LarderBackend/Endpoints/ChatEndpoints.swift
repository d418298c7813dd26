import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Chat: conversations and messages, visible to members only.
enum ChatEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/conversations", .required, conversations),
        Route(.get, "/v1/conversations/{id}", .required, conversation),
        Route(.get, "/v1/conversations/{id}/messages", .required, messages),
        Route(.post, "/v1/conversations/{id}/messages", .required, send),
        Route(.get, "/v1/messages/{id}", .required, message),
        Route(.patch, "/v1/messages/{id}", .required, edit),
        Route(.delete, "/v1/messages/{id}", .required, delete),
    ]

    static let textLength = 1...4_000

    // MARK: Reading

    private static func conversations(_ call: Call) throws(Problem) -> Reply? {
        let limit = try call.limit(default: 50)
        var after: Int64 = 0
        if let text = call.query.first("after") {
            after = try call.cursor(text, "after", .conversations, call.viewer).row
        }
        let first = after
        return try call.reply { store in
            let found = try store.conversations.page(of: call.viewer, after: first, limit: limit + 1)
            let page = found.prefix(limit)
            let next =
                found.count > limit
                ? page.last.map { Cursor(.conversations, owner: call.viewer, row: $0.row) } : nil
            return ListPage.representation(page.map(\.json), (next, nil))
        }
    }

    private static func conversation(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.conversation)
        return try call.reply { store in
            try requireMember(call.viewer, of: row, in: store)
            return try call.representation(of: .conversation, row, in: store)
        }
    }

    private static func messages(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.conversation)
        let start = try call.pageStart(.messages, owner: row)
        let anchor = try anchor(call, start)
        let limit = try call.limit(default: 50)
        return try call.reply { store in
            try requireMember(call.viewer, of: row, in: store)
            if let anchor { try requireMessage(anchor, in: row, store) }
            let items =
                try anchor.map { try store.messages.page(around: $0, conversation: row, limit: limit) }
                ?? store.messages.page(start, conversation: row, limit: limit)
            let cursors = ListPage.cursors(
                start,
                items.map(\.row),
                extent: try store.messages.extent(conversation: row),
                list: .messages,
                owner: row
            )
            return ListPage.representation(items.map(\.json), cursors)
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

    private static func requireMessage(_ row: Int64, in conversation: Int64, _ store: Store) throws {
        guard let message = try store.messages.find(row), !message.isDeleted, message.conversation == conversation
        else {
            throw ProblemType.notFound("There is no message msg_\(row) in the conversation conv_\(conversation).")
        }
    }

    private static func message(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.message)
        return try call.reply { store in
            _ = try visible(row, to: call.viewer, in: store)
            return try call.representation(of: .message, row, in: store)
        }
    }

    private static func requireMember(_ viewer: Int64, of conversation: Int64, in store: Store) throws {
        guard try store.conversations.isMember(viewer, of: conversation) else {
            throw ProblemType.notFound("You are not a member of a conversation conv_\(conversation).")
        }
    }

    /// A message that is not deleted, in a conversation of the caller.
    private static func visible(_ row: Int64, to viewer: Int64, in store: Store) throws -> MessageRow {
        guard let message = try store.messages.find(row), !message.isDeleted,
            try store.conversations.isMember(viewer, of: message.conversation)
        else { throw ProblemType.notFound("There is no message msg_\(row) in your conversations.") }
        return message
    }

    // MARK: Writing

    private static func send(_ call: Call) throws(Problem) -> Reply? {
        let conversation = try call.row(.conversation)
        // Before validation of the body: a non-member must learn nothing about the conversation from errors.
        try call.read { try requireMember(call.viewer, of: conversation, in: $0) }
        var reader = BodyReader(try call.jsonObject())
        reader.require("text", "clientId")
        let text = reader.string("text", length: textLength)
        let clientID = reader.string("clientId", length: 1...64)
        let image = try ImageEndpoints.reference(&reader, call)
        try reader.check()
        guard let text, let clientID else {
            preconditionFailure("check() throws when a required member is missing.")
        }
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            if let row = try store.messages.row(conversation: conversation, author: call.viewer, clientID: clientID) {
                // The client's ID identifies the message: a retry finds the message of the first attempt.
                return .existing(try sent(row, clientID: clientID, text: text, in: store))
            }
            let row = try add(
                text: text,
                image: image,
                clientID: clientID,
                to: conversation,
                by: call.viewer,
                in: store,
                &commit
            )
            return .created(at: "/v1/messages/msg_\(row)", try store.json(.message, row))
        }
    }

    private static func sent(_ row: Int64, clientID: String, text: String, in store: Store) throws -> [UInt8] {
        guard let message = try store.messages.find(row), !message.isDeleted else {
            throw ProblemType.notFound("The message with clientId \(clientID) was deleted.")
        }
        guard message.members["text"] == .string(text) || message.members["editedAt"] != .null else {
            throw ProblemType.validationFailed(
                "Another message was sent with this clientId.",
                errors: [Problem.FieldError(pointer: "/clientId", detail: "identifies another message")]
            )
        }
        return try store.json(.message, row)
    }

    /// Adds a message in the running transaction and returns its row.
    static func add(
        text: String,
        image: JSONValue? = nil,
        clientID: String,
        to conversation: Int64,
        by author: Int64,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Int64 {
        let row = try store.messages.nextRow()
        let message = MessageRow(
            row,
            conversation: conversation,
            author: author,
            clientID: clientID,
            text: text,
            image: image,
            sent: commit.now
        )
        try store.messages.add(message, clientID: clientID)
        let audience = Audience.conversation(conversation)
        try commit.record(.message, row, audience: audience, version: 1, in: store)
        let version = try store.conversations.touch(conversation, lastMessage: row, at: commit.now)
        try commit.record(.conversation, conversation, audience: audience, version: version, in: store)
        return row
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.message)
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        let representation = try call.write { store, commit in
            var message = try own(row, of: call, in: store)
            var reader = BodyReader(patch)
            reader.require("text")
            let text = reader.string("text", length: textLength)
            try reader.check()
            guard let text else { preconditionFailure("check() throws when a required member is missing.") }
            message.members["text"] = .string(text)
            message.members["editedAt"] = .string(commit.now.rfc3339())
            message.version += 1
            message.updated = commit.now
            try store.messages.replace(message)
            try commit.record(
                .message,
                row,
                audience: .conversation(message.conversation),
                version: message.version,
                in: store
            )
            return try call.representation(of: .message, row, in: store)
        }
        return representation.full
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.message)
        try call.write { store, commit in
            var message = try own(row, of: call, in: store)
            message.members["text"] = .string("")
            message.isDeleted = true
            message.version += 1
            message.updated = commit.now
            try store.messages.replace(message)
            let audience = Audience.conversation(message.conversation)
            try commit.record(
                .message,
                row,
                deleted: true,
                audience: audience,
                version: message.version,
                in: store
            )
            let last = try store.messages.extent(conversation: message.conversation)?.upperBound
            let version = try store.conversations.touch(message.conversation, lastMessage: last, at: commit.now)
            try commit.record(.conversation, message.conversation, audience: audience, version: version, in: store)
        }
        return .noContent
    }

    private static func own(_ row: Int64, of call: Call, in store: Store) throws -> MessageRow {
        let message = try visible(row, to: call.viewer, in: store)
        guard message.author == call.viewer else {
            throw ProblemType.forbidden("Message msg_\(row) belongs to another user.")
        }
        try call.checkConditions(
            on: try call.representation(of: .message, row, in: store),
            version: message.version,
            isRequired: false
        )
        return message
    }
}
