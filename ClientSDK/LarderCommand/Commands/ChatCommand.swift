import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder chat`: lists conversations, shows messages and sends them.
struct ChatCommand {
    let context: CommandContext
    private var client: LarderClient { context.client }
    private var terminal: Terminal { context.terminal }

    private var limit: Int { context.arguments.limit ?? 15 }

    func run(_ conversation: String?, send text: String?, photo: String?) async throws {
        guard let conversation else { return try await conversations() }
        let id = try await identifier(conversation)
        var own: Set<OperationID> = []
        if let text, let sent = try await send(text, photo, to: id) {
            own.insert(sent)
            await context.drain()
            if case .rejected? = context.events.outcome(of: sent) { try report(sent) }
        }
        if context.arguments.isLive { try await follow(id) } else { try await messages(id) }
        await context.finish(own: own)
        for sent in own { try report(sent) }
    }

    private func send(_ text: String, _ photo: String?, to conversation: String) async throws -> OperationID? {
        guard let photo else { return try client.chat.send(text, to: conversation) }
        return try await client.send(text, photo: photo, to: conversation)
    }

    private func report(_ id: OperationID) throws {
        switch context.events.outcome(of: id) {
        case .accepted: break
        case .rejected(let error):
            throw Failure(
                "The message was rejected: \(Failure.sentence(error.description)) Later messages wait; 'larder outbox drop \(id)' "
                    + "removes it."
            )
        default: terminal.note("the message is queued; the next command that reaches the server sends it")
        }
    }

    // MARK: Conversations

    private func conversations() async throws {
        let reading = try await context.read(client.chat.conversations, called: "conversations")
        let list = (reading.snapshot.value?.items ?? []).prefix(context.arguments.limit ?? 50)
        try await context.show(list, reading, orElse: "No conversations yet.") {
            let names = await context.people(list.flatMap(\.memberIDs))
            return list.map { conversation in
                terminal.paint(TextWidth.pad(conversation.id, 16), .dim) + "  "
                    + TextWidth.fit(title(conversation, names), 60) + "  "
                    + terminal.paint(TimeText.text(from: conversation.updatedAt, to: context.now), .dim)
            }
        }
        await context.finish()
    }

    private func title(_ conversation: Conversation, _ names: [String: Profile]) -> String {
        let others = conversation.memberIDs.filter { $0 != client.session.userID }.map { names.handle($0) }
        guard let title = conversation.title, !title.isEmpty else { return others.joined(separator: ", ") }
        return "\(title) (\(others.joined(separator: ", ")))"
    }

    /// Finds a conversation by ID, by title, or by the handle of its only other member.
    private func identifier(_ word: String) async throws -> String {
        if word.hasPrefix("conversation_") || word.hasPrefix("conv_") { return word }
        let reading = try await context.read(client.chat.conversations, called: "conversations")
        let list = reading.snapshot.value?.items ?? []
        let names = await context.people(list.flatMap(\.memberIDs))
        let handle = word.hasPrefix("@") ? word : "@" + word
        let found = list.filter { conversation in
            if conversation.title?.lowercased() == word.lowercased() { return true }
            let others = conversation.memberIDs.filter { $0 != client.session.userID }
            return others.count == 1 && names.handle(others[0]) == handle
        }
        if found.count == 1 { return found[0].id }
        if list.contains(where: { $0.id == word }) { return word }
        let count = found.isEmpty ? "No" : "More than one"
        throw Failure("\(count) conversation is called '\(word)'. 'larder chat' lists the conversations.")
    }

    // MARK: Messages

    private func messages(_ id: String) async throws {
        let chat = client.chat
        let (messages, reading) = try await context.read(
            chat.messages(id),
            chat.timeline(id),
            atMost: limit,
            called: id
        )
        try await context.show(messages, reading, orElse: "No messages yet.") {
            let names = await context.people(messages.map(\.authorID))
            return messages.reversed().map { line($0, names, context.now) }
        }
    }

    private func line(_ message: Message, _ names: [String: Profile], _ now: WallTime) -> String {
        var parts = [
            terminal.paint(TextWidth.pad(TimeText.text(from: message.sentAt, to: now), 10), .dim),
            terminal.paint(names.handle(message.authorID), .cyan), message.text,
        ]
        if let photo = message.image { parts.append(terminal.paint("[photo \(photo.width) × \(photo.height)]", .dim)) }
        if message.editedAt != nil { parts.append(terminal.paint("(edited)", .dim)) }
        if message.isPending { parts.append(terminal.paint("(not sent yet)", .yellow)) }
        return parts.joined(separator: "  ")
    }

    private func follow(_ id: String) async throws {
        let view = LiveView<Timeline<Message>.List>(
            context: context,
            changes: { old, new in
                let before = old?.value?.items ?? []
                guard let list = new.value?.items else { return [] }
                let shown = old?.value == nil ? Array(list.prefix(limit)) : list
                let names = await context.people(shown.map(\.authorID))
                return try changes(before, shown, names)
            }
        )
        try await view.run(client.chat.messages(id))
    }

    /// The differences of two states of a conversation, the oldest message first.
    private func changes(_ old: [Message], _ new: [Message], _ names: [String: Profile]) throws -> [String] {
        let sent = Dictionary(new.compactMap { message in message.clientID.map { ($0, message.id) } }) { $1 }
        // A message that was sent meanwhile has the ID of the server.
        let old = old.map { message in
            var message = message
            message.id = message.clientID.flatMap { sent[$0] } ?? message.id
            return message
        }
        let changes = ListChanges(from: old, to: new)
        var lines: [String] = []
        for (earlier, message) in changes.edits.reversed() {
            let sign: String
            switch earlier {
            case nil: sign = "+"
            case let earlier? where earlier.isPending && !message.isPending: sign = "✓"
            case let earlier? where earlier.text != message.text: sign = "~"
            default: continue
            }
            lines.append(try row(sign, message, names))
        }
        return lines + (try changes.deletions.map { try row("-", $0, names) })
    }

    private func row(_ sign: String, _ message: Message, _ names: [String: Profile]) throws -> String {
        guard terminal.isJSON else { return "\(sign) \(line(message, names, context.now))" }
        return JSONValue.members([("change", .string(sign)), ("message", try JSONValue(encoding: message))]).line
    }
}
