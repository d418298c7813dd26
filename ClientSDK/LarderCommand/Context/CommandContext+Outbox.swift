import Foundation
import Larder
import LarderCoding
import LarderDemo

extension CommandContext {
    /// Waits for unsent operations as `drain` does, and prints their outcomes.
    ///
    /// - Parameter own: the operations of this command, which prints their outcomes itself.
    func finish(own: Set<OperationID> = []) async {
        await drain()
        reportOutbox(own: own)
    }

    private func reportOutbox(own: Set<OperationID>) {
        noteConnection()
        // An accepted operation leaves the outbox after it was reported.
        let entries = cache.outbox.entries.filter { entry in
            if case .accepted? = events.outcome(of: entry.id) { false } else { true }
        }
        for entry in initiallyPending where !own.contains(entry.id) {
            let now = entries.first { $0.id == entry.id }
            if case .accepted? = events.outcome(of: entry.id) {
                terminal.note("sent queued operation: \(describe(entry))")
            } else if let now, now.state == .rejected, entry.state != .rejected, let error = now.error {
                terminal.note(
                    "queued operation was rejected: \(describe(entry)): \(error.description) (larder outbox)"
                )
            }
        }
        let others = entries.count { $0.state != .rejected && !own.contains($0.id) }
        if others > 0 {
            terminal.note(
                "\(others) change\(others == 1 ? "" : "s") queued; the next command that reaches \(arguments.server) sends them (larder outbox)"
            )
        }
        let rejected = entries.count { $0.state == .rejected && !own.contains($0.id) }
        if rejected > 0 {
            terminal.note("\(rejected) rejected; retry or drop with 'larder outbox'")
        }
    }

    /// Waits until the outbox is empty, no operation can be sent, or `--wait` is over.
    func drain() async {
        guard connection.isOpen, !cache.outbox.status.isDrained else { return }
        let outbox = cache.outbox
        let limit = uptime.uptime + .seconds(arguments.drainTimeout)
        _ = await until(limit, by: SystemMonotonicClock()) {
            for await status in outbox.statuses where status.isDrained || Self.isStuck(outbox.entries) { return }
        }
    }

    /// Whether no operation can be sent: the first of each lane was rejected or found no network or no server that is
    /// trusted.
    private static func isStuck(_ entries: [Outbox.Entry]) -> Bool {
        Dictionary(grouping: entries, by: \.scope).values.allSatisfy { lane in
            guard let first = lane.first else { return true }
            return first.state == .rejected
                || (first.state != .sending && [.offline, .untrusted].contains(first.error?.code))
        }
    }

    /// The like or unlike of an operation; nil for other operations, and if another version of the command has queued it.
    func tap(_ entry: Outbox.Entry) -> Likes.Tap? {
        entry.operation == client.likes.operation.name ? input(entry, as: Likes.Tap.self) : nil
    }

    /// The input of an operation; nil if it cannot be decoded because another version of the command has queued it.
    private func input<Input: Codable & Sendable>(_ entry: Outbox.Entry, as type: Input.Type) -> Input? {
        do throws(LarderError) { return try entry.input(as: type) } catch { return nil }
    }

    /// A one-line description of an operation.
    func describe(_ entry: Outbox.Entry) -> String {
        switch entry.operation {
        case "like":
            guard let tap = tap(entry) else { break }
            return "\(tap.isLike ? "like" : "unlike") \(tap.postID)"
        case "transfer":
            guard let order = input(entry, as: Bank.TransferOrder.self) else { break }
            return "transfer \(MoneyText.text(order.amount)) from \(order.fromAccountID) to \(order.toAccountID)"
        case "message", "post":
            guard let change = input(entry, as: TextChange.self) else { break }
            let text = TextWidth.fit(change.text, 40)
            switch change.kind {
            case .create: return change.conversationID.map { "message to \($0): \(text)" } ?? "post: \(text)"
            case .edit: return "edit of \(change.id): \(text)"
            case .delete: return "deletion of \(change.id)"
            }
        default: if let request = entry.request { return "\(request.method) \(request.path)" }
        }
        return "\(entry.operation) (\(entry.scope))"
    }

    /// The state of an operation.
    func stateText(_ entry: Outbox.Entry) -> String {
        switch entry.state {
        case .pending: entry.attempts == 0 ? "not sent yet" : "waiting for retry"
        case .sending: "in flight"
        case .inDoubt: "in doubt: retried with the same key"
        case .rejected: "rejected"
        }
    }

    /// An operation of `--json`.
    func json(_ entry: Outbox.Entry) throws -> JSONValue {
        .members([
            ("id", .integer(entry.id.rawValue)), ("operation", .string(entry.operation)),
            ("scope", .string(entry.scope)), ("state", .string("\(entry.state)")),
            ("attempts", .integer(Int64(entry.attempts))), ("enqueuedAt", .string(entry.enqueuedAt.rfc3339())),
            ("idempotencyKey", .string(entry.idempotencyKey)), ("error", entry.error.map { .string($0.description) }),
            ("input", try JSONParser.parse(entry.payload)),
        ])
    }
}

extension CommandContext {
    /// Sends an own operation if the server can be reached, and reports the outcome.
    ///
    /// - Parameters:
    ///   - change: what the operation changes, for the error.
    ///   - report: prints an outcome: its name, its text and its color.
    /// - Throws: if the server has rejected it.
    func settle(
        _ operation: OperationID,
        _ change: String,
        _ report: (_ outcome: String, _ text: String, Terminal.Color) async -> Void
    ) async throws {
        await drain()
        switch events.outcome(of: operation) {
        case .accepted: await report("sent", "sent", .green)
        case .rejected: break
        case .postponed(let error)? where error.code != .offline:
            await report("queued", "queued for retry: \(Failure.sentence(error.description))", .yellow)
        case let other:
            let isLate = other == nil && connection.isOpen
            let reason =
                isOffline
                ? "--offline"
                : isLate ? "no answer within \(arguments.drainTimeout) s" : "\(arguments.server) cannot be reached"
            await report("queued", "queued (\(reason)); the next command that reaches the server sends it", .yellow)
        }
        // Not `finish`, which would wait again for what was just reported as queued.
        reportOutbox(own: [operation])
        if case .rejected(let error)? = events.outcome(of: operation) {
            throw Failure(
                "\(change): \(Failure.sentence(error.description)) The change was rolled back; 'larder outbox drop \(operation)' "
                    + "removes it."
            )
        }
    }
}
