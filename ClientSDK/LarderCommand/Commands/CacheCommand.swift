import Foundation
import Larder
import LarderCoding
import LarderDemo

/// `larder cache`: counts, clears, trims or exports the stored data.
struct CacheCommand {
    let context: CommandContext
    private var terminal: Terminal { context.terminal }

    init(_ context: CommandContext) { self.context = context }

    func run(_ action: Arguments.CacheAction) async throws {
        guard let disk = context.cache.disk else {
            throw Failure("The cache is in memory only. Choose a directory with --directory DIR.")
        }
        switch action {
        case .stats: break
        case .clear:
            // The outbox and the session are not part of the cache and stay.
            try disk.removeAllItems()
            try imageStore().removeAllItems()
            try maintain(disk)
        case .trim(let bytes): try trim(disk, to: bytes)
        case .export(let path): return try export(disk, to: path)
        }
        try show(try StoreSummary(disk), try StoreSummary(imageStore()), action)
    }

    private func imageStore() throws -> DiskStore {
        try DiskStore(DiskStore.Configuration(directory: context.imagesDirectory))
    }

    /// The store was opened with this budget, and the next commit enforces it. The rest of the budget is for images.
    private func trim(_ disk: DiskStore, to bytes: Int64) throws {
        try context.cache.updateBlocking { $0.setMetadata(nil, for: "larder.command.trim") }
        try maintain(disk)
        let left = max(0, bytes - (try disk.statistics().bytes))
        var configuration = DiskStore.Configuration(directory: context.imagesDirectory)
        configuration.bytesMaximum = left
        let images = try DiskStore(configuration)
        try images.removeRecord("larder.command.trim")
        try maintain(images)
    }

    private func maintain(_ disk: DiskStore) throws {
        while try !disk.maintain().isDone {}
    }

    /// The counts and sizes of a store.
    private struct StoreSummary {
        var statistics: DiskStore.Statistics
        var counts: [(String, Int)] = []

        init(_ disk: DiskStore) throws {
            statistics = try disk.statistics()
            counts = try disk.read { transaction in
                var counts: [(String, Int)] = []
                for type in StoreExport.types { counts.append((type, try transaction.entityIDs(ofType: type).count)) }
                var lists = 0
                for name in StoreExport.lists { lists += try transaction.queryKeys(named: name).count }
                counts.append(("list", lists))
                counts.append(("record", try transaction.recordKeys(startingWith: "").count))
                return counts.filter { $0.1 > 0 }
            }
        }
    }

    private func show(_ data: StoreSummary, _ images: StoreSummary, _ action: Arguments.CacheAction) throws {
        let outbox = context.cache.outbox.status
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("data", Self.json(data)), ("images", Self.json(images)),
                    ("unsent", .integer(Int64(outbox.pending + outbox.inFlight))),
                ])
            )
        }
        switch action {
        case .clear: terminal.line(terminal.paint("✓ cleared; ", .green) + "the session and unsent operations are kept")
        case .trim(let bytes):
            let size = SizeText.text(bytes)
            terminal.line(terminal.paint("✓ trimmed ", .green) + "to \(size), least recently used first")
        default: break
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

    // MARK: Export

    private func export(_ disk: DiskStore, to path: String) throws {
        let document = try StoreExport.json(disk, now: context.now)
        var writer = JSONWriter(capacity: 1 << 20)
        writer.value(document)
        if path == "-" { return terminal.write(String(decoding: writer.bytes, as: UTF8.self) + "\n") }
        try PrivateFile.write(Data(writer.bytes), to: path)
        let count = document["entities"]?.array?.count ?? 0
        if terminal.isJSON {
            terminal.json(
                .members([
                    ("path", .string(path)), ("entities", .integer(Int64(count))),
                    ("bytes", .integer(Int64(writer.bytes.count))),
                ])
            )
        } else {
            terminal.line("\(count) entities, \(SizeText.text(Int64(writer.bytes.count))) → \(path)")
        }
    }
}

/// Exports the content of a store as JSON.
enum StoreExport {
    static let types = ["profile", "post", "conversation", "message"]
    static let lists = ["feed", "conversations", "messages", "people"]

    /// Entities and lists. Tokens are secret and left out; the outbox is not part of the cache.
    static func json(_ disk: DiskStore, now: WallTime) throws -> JSONValue {
        try disk.read { transaction in
            var (entities, lists): ([JSONValue], [JSONValue]) = ([], [])
            for type in types {
                for id in try transaction.entityIDs(ofType: type) {
                    guard let entity = try transaction.entity(EntityKey(type: type, id: id)) else { continue }
                    entities.append(try json(entity))
                }
            }
            for name in Self.lists {
                for key in try transaction.queryKeys(named: name) {
                    guard let list = try transaction.query(key) else { continue }
                    lists.append(json(list))
                }
            }
            return .members([
                ("exportedAt", .string(now.rfc3339())), ("entities", .array(entities)), ("lists", .array(lists)),
            ])
        }
    }

    private static func json(_ entity: DiskEntity) throws -> JSONValue {
        .members([
            ("type", .string(entity.key.type)), ("id", .string(entity.key.id)),
            ("version", entity.version.map { .integer($0) }), ("etag", entity.entityTag.map { .string($0) }),
            ("fetchedAt", .string(entity.fetchedAt.rfc3339())), ("validatedAt", .string(entity.validatedAt.rfc3339())),
            ("expiresAt", .string(entity.expiresAt.rfc3339())), ("isInvalidated", .bool(entity.isInvalidated)),
            ("value", try JSONParser.parse(entity.payload)),
        ])
    }

    private static func json(_ list: DiskQuery) -> JSONValue {
        .members([
            ("key", .string(list.key.description)), ("etag", list.entityTag.map { .string($0) }),
            ("validatedAt", .string(list.validatedAt.rfc3339())), ("expiresAt", .string(list.expiresAt.rfc3339())),
            ("isInvalidated", .bool(list.isInvalidated)), ("items", .array(list.ids.map { .string($0.id) })),
        ])
    }
}
