import Foundation
import Larder
import LarderCoding
import LarderTime

extension Kitchen {
    /// Gives what is unsent a little time to leave, and tells what became of it.
    ///
    /// - Parameter own: the operations that this command has put in: it tells of them itself.
    func finish(own: Set<OperationID> = []) async {
        noteConnection()
        await drain()
        for entry in kept where !own.contains(entry.id) {
            switch journal.end(of: entry.id) {
            case .accepted: terminal.note("sent what was kept here: \(Self.words(entry))")
            case .refused(let error):
                terminal.note("refused what was kept here: \(Self.words(entry)): \(error.description) (larder outbox)")
            default: break
            }
        }
        let others = cache.outbox.entries.count { $0.state != .refused && !own.contains($0.id) }
        if others > 0 {
            terminal.note(
                "\(others) change\(others == 1 ? "" : "s") kept here until \(arguments.server) can be reached (larder outbox)"
            )
        }
        let refused = cache.outbox.entries.count { $0.state == .refused && !own.contains($0.id) }
        if refused > 0 {
            terminal.note("\(refused) refused and waiting for a decision: larder outbox")
        }
    }

    /// Waits until nothing is left to send, nothing can leave, or the time is over.
    func drain() async {
        guard connection.isOpen, !cache.outbox.status.isDrained else { return }
        let outbox = cache.outbox
        let limit = uptime.uptime + .seconds(arguments.patience)
        _ = await until(limit, by: SystemSleeper()) {
            for await status in outbox.statuses where status.isDrained || Self.isStuck(outbox.entries) { return }
        }
    }

    /// Whether waiting is in vain: what is first in each lane is refused, or found no network.
    private static func isStuck(_ entries: [OutboxEntry]) -> Bool {
        Dictionary(grouping: entries, by: \.scope).values.allSatisfy { lane in
            guard let first = lane.first else { return true }
            return first.state == .refused || (first.state != .sending && first.error?.code == .offline)
        }
    }

    /// What an operation is to do; nil where another version of the command has put it in, which is told of by its name.
    static func input<Input: Decodable>(_ entry: OutboxEntry, as type: Input.Type) -> Input? {
        do throws(LarderError) { return try entry.input(as: type) } catch { return nil }
    }

    /// An operation in words.
    static func words(_ entry: OutboxEntry) -> String {
        switch entry.operation {
        case "like":
            guard let tap = input(entry, as: Likes.Tap.self) else { break }
            return "\(tap.isLike ? "like" : "unlike") \(tap.postID)"
        case "transfer":
            guard let order = input(entry, as: Bank.TransferOrder.self) else { break }
            return "transfer \(MoneyText.text(order.amount)) from \(order.fromAccountId) to \(order.toAccountId)"
        case "message":
            guard let draft = input(entry, as: Chat.Draft.self) else { break }
            return "message to \(draft.conversationID): \(TextWidth.fit(TextWidth.clean(draft.text), 40))"
        default: break
        }
        return "\(entry.operation) (\(entry.scope))"
    }

    /// Where an operation stands, in words.
    func standing(_ entry: OutboxEntry) -> String {
        switch entry.state {
        case .pending: entry.attempts == 0 ? "not sent yet" : "to be sent again"
        case .sending: "on its way"
        case .inDoubt: "in doubt: asked for again under the same key"
        case .refused: "refused"
        }
    }

    /// For programs.
    func json(_ entry: OutboxEntry) throws -> JSONValue {
        .members([
            ("id", .integer(entry.id.rawValue)), ("operation", .string(entry.operation)),
            ("scope", .string(entry.scope)), ("state", .string("\(entry.state)")),
            ("attempts", .integer(Int64(entry.attempts))), ("enqueuedAt", .string(entry.enqueuedAt.rfc3339())),
            ("idempotencyKey", .string(entry.idempotencyKey)), ("error", entry.error.map { .string($0.description) }),
            ("input", try JSONParser.parse(entry.payload)),
        ])
    }
}
