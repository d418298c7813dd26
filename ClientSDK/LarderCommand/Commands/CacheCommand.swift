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
        case .export(let path): return try export(disk, imageStore(), to: path)
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

    private func export(_ disk: DiskStore, _ images: DiskStore, to path: String) throws {
        var members: [(String, JSONValue?)] = [("exportedAt", .string(context.now.rfc3339()))]
        members += try StoreContent.members(disk)
        members.append(("images", JSONValue.members(try StoreContent.members(images))))
        let document = JSONValue.members(members)
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

/// Reads all entities and lists of a store.
enum StoreContent {
    /// Calls the functions with each item, in order of types and keys. Damaged ones are left out, and reported by the store.
    static func visit(
        _ disk: DiskStore,
        entity visitEntity: (DiskEntity) throws -> Void,
        list visitList: (DiskQuery) throws -> Void
    ) throws {
        let (entities, lists) = try disk.read { transaction in
            let entities = try transaction.entityTypes().flatMap { type in
                try transaction.entityIDs(ofType: type).map { EntityKey(type: type, id: $0) }
            }
            let lists = try transaction.queryNames().flatMap { try transaction.queryKeys(named: $0) }
            return (entities, lists)
        }
        for key in entities { if let entity = try disk.entity(key) { try visitEntity(entity) } }
        for key in lists { if let list = try disk.query(key) { try visitList(list) } }
    }

    /// Entities and lists as JSON. Tokens are secret and left out; the outbox is not part of the cache.
    static func members(_ disk: DiskStore) throws -> [(String, JSONValue?)] {
        var (entities, lists): ([JSONValue], [JSONValue]) = ([], [])
        try visit(disk) {
            entities.append(json($0))
        } list: {
            lists.append(json($0))
        }
        return [("entities", .array(entities)), ("lists", .array(lists))]
    }

    /// Content that is no JSON, such as a picture, is described by its length.
    private static func json(_ entity: DiskEntity) -> JSONValue {
        let value = try? JSONParser.parse(entity.payload)
        return .members([
            ("type", .string(entity.key.type)), ("id", .string(entity.key.id)),
            ("version", entity.version.map { .integer($0) }), ("etag", entity.entityTag.map { .string($0) }),
            ("fetchedAt", .string(entity.fetchedAt.rfc3339())), ("validatedAt", .string(entity.validatedAt.rfc3339())),
            ("expiresAt", .string(entity.expiresAt.rfc3339())), ("isInvalidated", .bool(entity.isInvalidated)),
            ("byteCount", .integer(Int64(entity.payload.count))), ("value", value),
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
