import Foundation
import Larder
import LarderCoding
import LarderTime

/// `larder cache`: how much is stored, less of it, none of it, or all of it in a file.
struct CacheCommand {
    let kitchen: Kitchen
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run(_ action: Arguments.CacheAction) async throws {
        guard let disk = kitchen.cache.disk else { throw Failure("The cache has no disk. Say --directory DIR.") }
        switch action {
        case .stats: break
        case .clear:
            // What is promised to be sent is no cache: it stays, and so does who is signed in.
            try disk.removeAllItems()
            try pictures().removeAllItems()
            try maintain(disk)
        case .trim(let bytes): try trim(disk, to: bytes)
        case .export(let path): return try export(disk, to: path)
        }
        try show(try Stock(disk), try Stock(pictures()), action)
    }

    private func pictures() throws -> DiskStore {
        try DiskStore(DiskStore.Configuration(directory: kitchen.picturesDirectory))
    }

    /// The store was opened with that budget: the next commit keeps it. Pictures get what is left, being the easiest to get again.
    private func trim(_ disk: DiskStore, to bytes: Int64) throws {
        try kitchen.cache.update { $0.setMetadata(nil, for: "larder.command.trim") }
        try maintain(disk)
        let left = max(0, bytes - (try disk.statistics().bytes))
        var configuration = DiskStore.Configuration(directory: kitchen.picturesDirectory)
        configuration.bytesMaximum = left
        let pictures = try DiskStore(configuration)
        try pictures.removeRecord("larder.command.trim")
        try maintain(pictures)
    }

    private func maintain(_ disk: DiskStore) throws {
        while try !disk.maintain().isDone {}
    }

    /// What a store holds.
    private struct Stock {
        var statistics: DiskStatistics
        var counts: [(String, Int)] = []

        init(_ disk: DiskStore) throws {
            statistics = try disk.statistics()
            counts = try disk.read { transaction in
                var counts: [(String, Int)] = []
                for type in Contents.types { counts.append((type, try transaction.entityIDs(ofType: type).count)) }
                var lists = 0
                for name in Contents.lists { lists += try transaction.queryKeys(named: name).count }
                counts.append(("list", lists))
                counts.append(("record", try transaction.recordKeys(startingWith: "").count))
                return counts.filter { $0.1 > 0 }
            }
        }
    }

    private func show(_ data: Stock, _ pictures: Stock, _ action: Arguments.CacheAction) throws {
        let outbox = kitchen.cache.outbox.status
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("data", Self.json(data)), ("pictures", Self.json(pictures)),
                    ("unsent", .integer(Int64(outbox.pending + outbox.inFlight))),
                ])
            )
        }
        switch action {
        case .clear: terminal.line(terminal.paint("✓ cleared; ", .green) + "who is signed in and what is unsent stays")
        case .trim(let bytes):
            let size = Sizes.text(bytes)
            terminal.line(terminal.paint("✓ trimmed ", .green) + "to \(size); what was read last stays longest")
        default: break
        }
        for (name, stock) in [("data", data), ("pictures", pictures)] {
            let counts = stock.counts.map { "\($0.1) \($0.0)\($0.1 == 1 ? "" : "s")" }.joined(separator: ", ")
            terminal.line(
                "\(TextWidth.pad(name, 9)) \(TextWidth.pad(Sizes.text(stock.statistics.bytes), 9)) in "
                    + "\(stock.statistics.items) items, \(Sizes.text(stock.statistics.databaseBytes)) in files"
                    + (counts.isEmpty ? "" : ": \(counts)")
            )
        }
        terminal.line("unsent    \(outbox.pending + outbox.inFlight), refused \(outbox.refused) (larder outbox)")
        terminal.line("where     \(kitchen.state.path)")
    }

    private static func json(_ stock: Stock) -> JSONValue {
        .members([
            ("items", .integer(Int64(stock.statistics.items))), ("bytes", .integer(stock.statistics.bytes)),
            ("fileBytes", .integer(stock.statistics.databaseBytes)),
            ("counts", .members(stock.counts.map { ($0.0, .integer(Int64($0.1))) })),
        ])
    }

    // MARK: Export

    private func export(_ disk: DiskStore, to path: String) throws {
        let document = try Contents.json(disk, now: kitchen.now)
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
            terminal.line("\(count) entities, \(Sizes.text(Int64(writer.bytes.count))) → \(path)")
        }
    }
}

/// What is in a store, for people who look into it.
enum Contents {
    static let types = ["profile", "post", "conversation", "message"]
    static let lists = ["feed", "conversations", "messages", "people"]

    /// Everything but tokens and the outbox: those are secrets and promises, and no cache.
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
