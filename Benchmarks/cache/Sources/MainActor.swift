import Foundation
import Larder
import Measuring
import Synchronization

/// Measures calls on the main actor while 10,000 changes of lists are synchronised, and how long anything holds the main actor.
@MainActor
func measureMainActor(_ directory: String) async throws {
    let (talk, reads) = (2_000, 6_000)
    do {
        let larder = try LarderCache(directory: directory)
        for list in ["ana", "ben"] { try await load(list, count: talk, larder) }
        for start in stride(from: 0, to: reads, by: 1_000) {
            try await larder.update { update in for number in start..<(start + 1_000) { update.put(post(number)) } }
        }
        larder.close()
        larder.disk?.suspend()
    }
    let operation = WriteBehind<Int, Int>(
        "like",
        scope: { "\($0)" },
        changes: { number, changes in changes.modify(Post.self, "post_\(number)") { $0.isLiked = true } },
        send: { attempts in attempts.map { .accepted($0.input) } }
    )
    var configuration = CacheConfiguration(.directory(directory))
    configuration.operations = [operation]
    let larder = try LarderCache(configuration)
    var changes: [ChangeFeed.Change] = []
    // Five times 10,000, for enough calls meanwhile.
    for version in 2..<7 {
        for number in 0..<5_000 {
            for list in ["ana", "ben"] {
                let item = number < 100 ? talk + version * 100 + number : number % talk
                changes.append(arrival(list, item, version: Int64(version), count: talk))
            }
        }
    }
    let sync = ChangeSync(changeFeed(changes), into: larder)
    let isOver = Flag()
    let synchronised = Task.detached { try await synchronise(sync, isOver) }
    let pulse = Pulse()
    let beating = Task { @MainActor in
        while !isOver.isSet.load(ordering: .relaxed) {
            await Task.yield()
            pulse.beat()
        }
        pulse.isOver = true
    }
    var (updates, enqueues, firsts, values, hits) = (Calls(), Calls(), Calls(), Calls(), Calls())
    var number = 0
    while !isOver.isSet.load(ordering: .relaxed), number + 3 < reads {
        number += 3
        let id = number
        updates.add(
            try await pulse.measure { try await larder.update { $0.modify(Post.self, "post_\(id)") { $0.likes += 1 } } }
        )
        enqueues.add(try await pulse.measure { _ = try larder.enqueue(id, operation) })
        firsts.add(
            await pulse.measure {
                for await _ in larder.snapshots(single("post_\(id + 1)"), .cacheOnly) { break }
            }
        )
        let resource = single("post_\(id + 2)")
        values.add(try await pulse.measure { _ = try await larder.value(resource, .cacheOnly) })
        hits.add(try await pulse.measure { _ = try await larder.value(resource, .cacheOnly) })
    }
    let time = try await synchronised.value
    await beating.value
    say("on the main actor while \(changes.count) changes are synchronised in \(time), goal: held 1 ms at most:")
    updates.show("update")
    enqueues.show("enqueue")
    firsts.show("first of snapshots, from the disk")
    values.show("value, from the disk")
    hits.show("value, from memory")
    larder.close()
}

/// Measures how long a call takes, and for how long without a break it holds the main actor.
@MainActor
private final class Pulse {
    private let clock = ContinuousClock()
    private var last = ContinuousClock.now
    private var longest = Duration.zero
    private var count = 0
    var isOver = false

    /// Called on each turn of the main actor that nobody else takes.
    func beat() {
        let now = clock.now
        longest = max(longest, now - last)
        last = now
        count += 1
    }

    func measure(_ call: () async throws -> Void) async rethrows -> (time: Duration, held: Duration) {
        await turn()
        (last, longest) = (clock.now, .zero)
        let time = try await clock.measure(call)
        await turn()
        return (time, longest)
    }

    private func turn() async {
        let before = count
        while count == before, !isOver { await Task.yield() }
    }
}

private struct Calls {
    private var times: [Duration] = []
    private var holds: [Duration] = []

    mutating func add(_ call: (time: Duration, held: Duration)) {
        times.append(call.time)
        holds.append(call.held)
    }

    func show(_ name: String) {
        func text(_ durations: [Duration]) -> String {
            let sorted = durations.sorted()
            guard let last = sorted.last else { return "–" }
            return
                "median \(sorted[sorted.count / 2]), 99th percentile \(sorted[sorted.count * 99 / 100]), maximum \(last)"
        }
        say("    \(name): \(times.count) times, \(text(times)); held \(text(holds))")
    }
}

private final class Flag: Sendable {
    let isSet = Atomic<Bool>(false)
}

/// Synchronises until the end of the feed, and sets the flag.
private func synchronise(_ sync: ChangeSync, _ isOver: Flag) async throws -> Duration {
    defer { isOver.isSet.store(true, ordering: .relaxed) }
    let clock = ContinuousClock()
    let start = clock.now
    try await sync.catchUp()
    return clock.now - start
}
