import Foundation
import Larder
import Measuring

/// An item with a version, as of a conversation.
struct Note: CacheEntity {
    static let entityType = "note"

    var id: String
    var text: String
    var version: Int64

    var entityVersion: Int64? { version }
}

func note(_ list: String, _ number: Int, version: Int64 = 1) -> Note {
    // Padded, so that the order of the identifiers is the order of the numbers.
    let digits = String(1_000_000 + number)
    return Note(id: "\(list)_\(digits)", text: "The \(number)th of many things that were said here.", version: version)
}

/// A timeline whose newest item has the number `count`, and that the source returns in pages of 100.
func notes(_ list: String, count: Int) -> PagedResource<Note> {
    var pages = PagedResource<Note>("notes", ["list": list], pageSize: 100, freshness: .timeToLive(.seconds(86_400))) {
        request in
        let first = request.cursor.flatMap { Int($0) } ?? count
        let last = max(0, first - request.limit)
        let items = (last..<first).reversed().map { note(list, $0) }
        return .value(EntityList(items, nextCursor: last > 0 ? String(last) : nil))
    }
    pages.itemsMaximum = 50_000
    return pages
}

/// Stores a timeline with all of its pages.
func load(_ list: String, count: Int, _ larder: LarderCache) async throws {
    let timeline = larder.timeline(notes(list, count: count))
    _ = try await larder.refresh(notes(list, count: count).list)
    while try await timeline.loadOlder() == .more {}
}

/// Measures one change of a list at several lengths: time, and the bytes that the store's log grows by.
func measureEdits(_ directory: String) async throws {
    for count in [100, 1_000, 10_000] {
        let place = directory + "/edits \(count)"
        let larder = try LarderCache(directory: place)
        let list = "edits"
        try await load(list, count: count, larder)
        let key = notes(list, count: count).key
        larder.close()
        larder.disk?.suspend()
        let again = try LarderCache(directory: place)
        let clock = ContinuousClock()
        var (inserted, removed) = (Samples(), Samples())
        let log = place + "/store.sqlite-wal"
        try await again.update { $0.insert(note(list, count), in: key, isNew: true) { $0 > $1 } }
        let before = bytes(of: log)
        for number in 1..<21 {
            let new = note(list, count + number)
            inserted.add(
                try await clock.measure { try await again.update { $0.insert(new, in: key, isNew: true) { $0 > $1 } } },
                operations: 1
            )
        }
        let grown = (bytes(of: log) - before) / 20
        for number in 1..<21 {
            let old = note(list, count / 2 + number)
            removed.add(
                try await clock.measure {
                    try await again.update { $0.remove(Note.self, old.id, deletedInVersion: 2) }
                },
                operations: 1
            )
        }
        inserted.show("insert one item into a timeline of \(count) (log: \(grown) bytes)")
        removed.show("    remove one item from its middle")
        again.close()
    }
}

func bytes(of path: String) -> Int {
    (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
}

private struct Draft: Codable, Sendable {
    var list: String
    var number: Int
}

/// The change feed of a script.
func changeFeed(_ changes: [ChangeFeed.Change], page: Int = 100) -> ChangeFeed {
    ChangeFeed(
        "script",
        read: { since in
            let start = Int(since) ?? 0
            let end = min(changes.count, start + page)
            return ChangeFeed.Batch(Array(changes[start..<end]), nextToken: "\(end)", hasMore: end < changes.count)
        },
        present: { ChangeFeed.Batch(nextToken: "0") },
        invalidateAll: { _ in }
    )
}

/// The arrival of an item in its list.
func arrival(_ list: String, _ number: Int, version: Int64 = 1, count: Int) -> ChangeFeed.Change {
    let item = note(list, number, version: version)
    let key = notes(list, count: count).key
    return ChangeFeed.Change(item.entityKey) { update in
        update.insert(item, in: key, isNew: version == 1) { $0 > $1 }
    }
}

/// Measures how long it takes until what was written offline is sent and everything is synchronised: 3,720 operations and 7,440
/// changes in three conversations and a feed.
func measureDrain(_ directory: String, factor: Int) async throws {
    let (talk, feed) = (2_100 * factor, 2_958 * factor)
    let talks = ["ana", "ben", "eva"]
    let operation = {
        var operation = WriteBehind<Draft, Note>(
            "note",
            scope: { $0.list },
            changes: { draft, changes in
                let new = Note(id: "local \(draft.list) \(draft.number)", text: "New", version: 0)
                changes.create(new)
                changes.edit(notes(draft.list, count: 0).key) { $0.insert(new.entityKey, at: 0) }
            },
            send: { attempts in attempts.map { .accepted(note($0.input.list, $0.input.number)) } }
        )
        operation.acknowledge = { draft, receipt, update in
            update.insert(receipt, in: notes(draft.list, count: 0).key, isNew: true, isOwn: true) { $0 > $1 }
        }
        return operation
    }()
    var configuration = CacheConfiguration(.directory(directory))
    configuration.operations = [operation]
    let larder = try LarderCache(configuration)
    for talk in talks { try await load(talk, count: 2_100 * factor, larder) }
    try await load("feed", count: feed, larder)
    let clock = ContinuousClock()
    var changes: [ChangeFeed.Change] = []
    for number in 0..<1_240 {
        for list in talks {
            changes.append(arrival(list, talk + number, count: talk))
            try larder.enqueue(Draft(list: list, number: talk + number), operation)
        }
        // A new post, an edited one and one of another person's, as in a busy feed.
        changes.append(arrival("feed", feed + number, count: feed))
        changes.append(arrival("feed", number * 2 % feed, version: 2, count: feed))
        let gone = note("feed", (number * 2 + 1) % feed)
        changes.append(
            ChangeFeed.Change(gone.entityKey) { $0.remove(gone.entityKey, deletedInVersion: 2) }
        )
    }
    let sync = ChangeSync(changeFeed(changes), into: larder)
    let start = clock.now
    larder.outbox.resume()
    try await larder.outbox.drained()
    let drained = clock.now - start
    let applied = try await sync.catchUp()
    say(
        "\(3 * 1_240) operations into lists of \(talk) drained in \(drained), and \(applied) changes synchronised in "
            + "\(clock.now - start - drained)  goal 3 s together"
    )
    larder.close()
}
