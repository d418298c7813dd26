import Larder
import LarderCoding
import LarderDemo

/// `larder cache`: counts or clears the stored data.
struct CacheCommand {
    let context: CommandContext
    private var terminal: Terminal { context.terminal }

    init(_ context: CommandContext) { self.context = context }

    func run(isCleared: Bool) async throws {
        guard let disk = context.cache.disk else {
            throw Failure("The cache is in memory only. Choose a directory with --directory DIR.")
        }
        let images = try DiskStore(DiskStore.Configuration(directory: context.imagesDirectory))
        if isCleared {
            // The outbox and the session are not part of the cache and stay.
            try disk.removeAllItems()
            try images.removeAllItems()
            while try !disk.maintain() {}
        }
        try show(try StoreSummary(disk), try StoreSummary(images), isCleared)
    }

    /// The counts and sizes of a store.
    private struct StoreSummary {
        var statistics: DiskStore.Statistics
        var counts: [(String, Int)] = []

        init(_ disk: DiskStore) throws {
            statistics = try disk.statistics()
            counts = try disk.read { transaction in
                var counts: [(String, Int)] = []
                for type in try transaction.entityTypes() {
                    counts.append((type, try transaction.entityIDs(ofType: type).count))
                }
                var lists = 0
                for name in try transaction.queryNames() { lists += try transaction.queryKeys(named: name).count }
                counts.append(("list", lists))
                counts.append(("record", try transaction.recordKeys(startingWith: "").count))
                return counts.filter { $0.1 > 0 }
            }
        }
    }

    private func show(_ data: StoreSummary, _ images: StoreSummary, _ isCleared: Bool) throws {
        let outbox = context.cache.outbox.status
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("data", Self.json(data)), ("images", Self.json(images)),
                    ("unsent", .integer(Int64(outbox.pending + outbox.inFlight))),
                ])
            )
        }
        if isCleared {
            terminal.line(terminal.paint("✓ cleared; ", .green) + "the session and unsent operations are kept")
        }
        for (name, summary) in [("data", data), ("images", images)] {
            let counts = summary.counts.map { "\($0.1) \($0.0)\($0.1 == 1 ? "" : "s")" }.joined(separator: ", ")
            terminal.line(
                "\(TextWidth.pad(name, 9)) \(TextWidth.pad(SizeText.text(summary.statistics.bytes), 9)) in "
                    + "\(summary.statistics.items) items, \(SizeText.text(summary.statistics.databaseBytes)) in files"
                    + (counts.isEmpty ? "" : ": \(counts)")
            )
        }
        terminal.line("unsent    \(outbox.pending + outbox.inFlight), rejected \(outbox.rejected) (larder outbox)")
        terminal.line("directory \(context.state.path)")
    }

    private static func json(_ summary: StoreSummary) -> JSONValue {
        .members([
            ("items", .integer(Int64(summary.statistics.items))), ("bytes", .integer(summary.statistics.bytes)),
            ("fileBytes", .integer(summary.statistics.databaseBytes)),
            ("counts", .members(summary.counts.map { ($0.0, .integer(Int64($0.1))) })),
        ])
    }
}
