import Larder
import LarderArguments
import LarderCoding
import LarderTime

/// `larder outbox`: what is still to be sent, what was refused, and what to do about it.
struct OutboxCommand {
    let kitchen: Kitchen
    private var outbox: Outbox { kitchen.cache.outbox }
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run(_ action: Arguments.OutboxAction) async throws {
        switch action {
        case .list: break
        case .send:
            guard !kitchen.isOffline else {
                throw UsageError(message: "outbox send asks the server; leave out --offline")
            }
            if case .unreachable(let error) = kitchen.connection { throw error }
            await kitchen.drain()
        case .retry(let number):
            let id = try known(number)
            try outbox.retry(id)
            await kitchen.drain()
        case .drop(let number):
            let id = try known(number)
            // Its words are gone with it.
            let words = outbox.entries.first { $0.id == id }.map(Kitchen.words) ?? ""
            try outbox.drop(id)
            if !terminal.isJSON { terminal.line("dropped: \(words)") }
        }
        try list()
        if action == .send, !outbox.status.isDrained {
            throw Failure(
                "Not everything has left within \(kitchen.arguments.patience) s. larder doctor looks at the server; --wait "
                    + "gives it longer."
            )
        }
    }

    private func known(_ number: Int64) throws -> OperationID {
        let id = OperationID(rawValue: number)
        guard outbox.entries.contains(where: { $0.id == id }) else {
            throw Failure("There is no operation \(number) in the outbox. larder outbox lists them.")
        }
        return id
    }

    private func list() throws {
        let (entries, status) = (outbox.entries, outbox.status)
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("pending", .integer(Int64(status.pending))), ("inFlight", .integer(Int64(status.inFlight))),
                    ("inDoubt", .integer(Int64(status.inDoubt))), ("refused", .integer(Int64(status.refused))),
                    ("oldest", status.oldest.map { .string($0.rfc3339()) }),
                    ("items", .array(try entries.map(kitchen.json))),
                    ("sent", .array(sent.map { .string(Kitchen.words($0)) })),
                ])
            )
        }
        for entry in sent { terminal.line(terminal.paint("✓ sent  ", .green) + Kitchen.words(entry)) }
        for entry in entries {
            let colour: Terminal.Colour = entry.state == .refused ? .red : .yellow
            terminal.line(
                "\(TextWidth.pad("\(entry.id)", 4)) \(Kitchen.words(entry))  "
                    + terminal.paint(kitchen.standing(entry), colour) + "  "
                    + terminal.paint(Ages.text(from: entry.enqueuedAt, to: kitchen.now), .dim)
            )
            if let error = reason(entry) { terminal.line("     " + TextWidth.clean(error)) }
        }
        if entries.isEmpty { terminal.line("Nothing is waiting to be sent.") }
    }

    /// What left in this run.
    private var sent: [OutboxEntry] {
        kitchen.kept.filter { entry in
            if case .accepted? = kitchen.journal.end(of: entry.id) { true } else { false }
        }
    }

    private func reason(_ entry: OutboxEntry) -> String? {
        let advice =
            entry.state == .refused ? "larder outbox retry \(entry.id) asks again, drop \(entry.id) forgets it." : nil
        let parts = [entry.error.map { Failure.sentence($0.description) }, advice].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }
}
