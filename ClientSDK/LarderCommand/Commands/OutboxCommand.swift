import Larder
import LarderArguments
import LarderCoding
import LarderDemo
import LarderModels

/// `larder outbox`: lists, sends, retries and drops operations.
struct OutboxCommand {
    let context: CommandContext
    private var outbox: Outbox { context.cache.outbox }
    private var terminal: Terminal { context.terminal }

    /// - Parameter number: the operation; 0 for all.
    func run(_ verb: Arguments.OutboxVerb, _ number: Int64) async throws {
        switch verb {
        case .list: break
        case .send:
            guard !context.isOffline else {
                throw UsageError(message: "outbox send requires the server; remove --offline")
            }
            if case .unreachable(let error) = context.connection { throw error }
            await context.drain()
        case .retry: try await send(number) { try outbox.retry($0) }
        case .keep: try await send(number) { try outbox.keepMine($0) }
        case .merge: try await send(number) { try outbox.merge($0) }
        case .theirs: try await send(number) { try outbox.takeTheirs($0) }
        case .drop:
            let id = try known(number)
            // Read before it is dropped.
            let description = outbox.entries.first { $0.id == id }.map(context.describe) ?? ""
            try outbox.drop(id)
            if !terminal.isJSON { terminal.line("dropped: \(description)") }
        }
        try list()
        if verb == .send, !outbox.status.isDrained {
            throw Failure(
                "Not all operations were sent within \(context.arguments.drainTimeout) s. Check the server with 'larder doctor', or "
                    + "wait longer with --wait."
            )
        }
    }

    private func send(_ number: Int64, _ decide: (OperationID) throws -> Void) async throws {
        try decide(try known(number))
        await context.drain()
    }

    private func known(_ number: Int64) throws -> OperationID {
        let id = OperationID(rawValue: number)
        guard outbox.entries.contains(where: { $0.id == id }) else {
            throw Failure("The outbox has no operation \(number). 'larder outbox' lists the operations.")
        }
        return id
    }

    private func list() throws {
        let (entries, status) = (outbox.entries, outbox.status)
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("pending", .integer(Int64(status.pending))), ("inFlight", .integer(Int64(status.inFlight))),
                    ("inDoubt", .integer(Int64(status.inDoubt))), ("rejected", .integer(Int64(status.rejected))),
                    ("oldest", status.oldest.map { .string($0.rfc3339()) }),
                    ("items", .array(try entries.map(context.json))),
                    ("sent", .array(sent.map { .string(context.describe($0)) })),
                ])
            )
        }
        for entry in sent { terminal.line(terminal.paint("✓ sent  ", .green) + context.describe(entry)) }
        for entry in entries {
            let color: Terminal.Color = entry.state == .rejected ? .red : .yellow
            terminal.line(
                "\(TextWidth.pad("\(entry.id)", 4)) \(context.describe(entry))  "
                    + terminal.paint(context.stateText(entry), color) + "  "
                    + terminal.paint(TimeText.text(from: entry.enqueuedAt, to: context.now), .dim)
            )
            if let error = reason(entry) { terminal.line("     " + error) }
            if let fields = try fields(entry) { terminal.line("     " + fields) }
        }
        if entries.isEmpty { terminal.line("The outbox is empty.") }
    }

    /// The operations that were sent in this run.
    private var sent: [Outbox.Entry] {
        context.initiallyPending.filter { entry in
            if case .accepted? = context.events.outcome(of: entry.id) { true } else { false }
        }
    }

    private func reason(_ entry: Outbox.Entry) -> String? {
        let advice =
            entry.state == .rejected
            ? "'larder outbox retry \(entry.id)' sends it again, 'drop \(entry.id)' removes it." : nil
        let parts = [entry.error.map { Failure.sentence($0.description) }, advice].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    /// What both sides have changed, if the operation is a rejected edit of a task.
    private func fields(_ entry: Outbox.Entry) throws -> String? {
        guard let conflict = try outbox.conflict(entry.id, of: WorkItem.self) else { return nil }
        func names(_ fields: Set<String>) -> String {
            fields.isEmpty ? "nothing" : fields.sorted().joined(separator: ", ")
        }
        return
            "You changed \(names(try conflict.myFields)); the server has changed \(names(try conflict.theirFields)). "
            + "'larder outbox keep|merge|theirs \(entry.id)' decides."
    }
}
