import Larder
import Measuring
import Synchronization

/// The last value that each observer has seen.
private final class Shown: Sendable {
    private let likes = Mutex([Int](repeating: -1, count: 5))

    func note(_ number: Int, _ seen: Int) { likes.withLock { $0[number] = seen } }

    func isEverywhere(_ wanted: Int) -> Bool { likes.withLock { $0.allSatisfy { $0 == wanted } } }
}

/// Measures a change of one entity in five observed lists.
func measureTaps(_ directory: String?) async throws {
    let larder = try LarderCache(CacheConfiguration(directory.map { .directory($0) } ?? .memory))
    let clock = ContinuousClock()
    let shown = Shown()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<5 {
        // The lists start at different posts, and all contain number 50.
        let list = feed("feed \(number)", from: 10 * number + 5)
        tasks.append(
            Task {
                for await snapshot in larder.snapshots(list) {
                    guard let likes = snapshot.value?.items.first(where: { $0.id == "post_50" })?.likes else {
                        continue
                    }
                    shown.note(number, likes)
                }
            }
        )
    }
    while !shown.isEverywhere(50) { await Task.yield() }
    var (update, seen) = (Samples(), Samples())
    for likes in 1_000..<1_300 {
        let start = clock.now
        try await larder.update { $0.modify(Post.self, "post_50") { $0.likes = likes } }
        update.add(clock.now - start, operations: 1)
        while !shown.isEverywhere(likes) { await Task.yield() }
        seen.add(clock.now - start, operations: 1)
    }
    for task in tasks { task.cancel() }
    let place = directory == nil ? "in memory" : "on disk"
    update.show("update { modify } of one entity in 5 observed lists of 50, \(place)")
    seen.show("    until all five have been seen to show it")
}

private struct Mark: Codable, Sendable {
    var scope: String
    var key: String

    static let operation = {
        var operation = WriteBehind<Mark, Void>(
            "mark",
            scope: { $0.scope },
            changes: { _, _ in },
            send: { marks in marks.map { _ in .accepted(()) } }
        )
        operation.coalescingKey = { $0.key }
        operation.coalesce = { _, newer in .replace(newer) }
        return operation
    }()
}

/// Measures a tap while 10,000 operations wait, all in its scope or each in one of its own.
func measureScope(_ directory: String) async throws {
    for isOne in [true, false] {
        var configuration = CacheConfiguration(.directory(directory + (isOne ? "/one" : "/many")))
        configuration.operations = [Mark.operation]
        let larder = try LarderCache(configuration)
        for number in 0..<10_000 {
            try larder.enqueue(Mark(scope: isOne ? "one" : "\(number)", key: "\(number)"), Mark.operation)
        }
        let clock = ContinuousClock()
        var (coalesced, new) = (Samples(), Samples())
        for number in 0..<300 {
            var start = clock.now
            try larder.enqueue(Mark(scope: isOne ? "one" : "\(number)", key: "\(number)"), Mark.operation)
            coalesced.add(clock.now - start, operations: 1)
            start = clock.now
            try larder.enqueue(Mark(scope: isOne ? "one" : "new \(number)", key: "new \(number)"), Mark.operation)
            new.add(clock.now - start, operations: 1)
        }
        let place = isOne ? "in one scope" : "in 10,000 scopes"
        coalesced.show("a coalesced tap with 10,000 operations \(place)")
        new.show("a new tap with 10,000 operations \(place)")
        larder.close()
    }
}
