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
    let clock = ContinuousClock()
    let synchronised = Task.detached { try await synchronise(sync, isOver) }
    let pulse = Task { @MainActor in
        var gaps: [Duration] = []
        var last = clock.now
        while !isOver.isSet.load(ordering: .relaxed) {
            await Task.yield()
            let now = clock.now
            gaps.append(now - last)
            last = now
        }
        return gaps
    }
    var (updates, enqueues, firsts, values, hits) = (
        [Duration](), [Duration](), [Duration](), [Duration](), [Duration]()
    )
    var number = 0
    while !isOver.isSet.load(ordering: .relaxed), number + 3 < reads {
        number += 3
        let id = number
        updates.append(
            try clock.measure { try await larder.update { $0.modify(Post.self, "post_\(id)") { $0.likes += 1 } } }
        )
        enqueues.append(try clock.measure { _ = try larder.enqueue(id, operation) })
        firsts.append(
            await clock.measure {
                for await _ in larder.snapshots(single("post_\(id + 1)"), .cacheOnly) { break }
            }
        )
        let resource = single("post_\(id + 2)")
        values.append(try await clock.measure { _ = try await larder.value(resource, .cacheOnly) })
        hits.append(try await clock.measure { _ = try await larder.value(resource, .cacheOnly) })
        await Task.yield()
    }
    let time = try await synchronised.value
    say("on the main actor while \(changes.count) changes are synchronised in \(time):")
    show("    update", updates)
    show("    enqueue", enqueues)
    show("    first of snapshots, from the disk", firsts)
    show("    value, from the disk", values)
    show("    value, from memory", hits)
    show("    the main actor between two turns", await pulse.value)
    larder.close()
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

private func show(_ name: String, _ times: [Duration]) {
    let sorted = times.sorted()
    guard let last = sorted.last else { return }
    let (median, tail) = (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100])
    say("\(name): \(times.count) times, median \(median), 99th percentile \(tail), maximum \(last)  goal 1 ms")
}
