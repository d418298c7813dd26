import Foundation
import Larder
import Measuring
import Synchronization

/// How long the calling thread has run, and how long it was ready to run while other threads had the processors.
private func threadTimes() -> (running: Duration, waiting: Duration) {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    let fields =
        (try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8))?.split(separator: " ") ?? []
    let waiting = fields.count > 1 ? Int64(fields[1]) ?? 0 : 0
    return (.seconds(time.tv_sec) + .nanoseconds(time.tv_nsec), .nanoseconds(waiting))
}

/// Measures calls on the main actor while changes of lists are synchronised, and for how long each holds the main thread, which
/// sleeps between the calls as that of an application does.
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
    let clock = SystemMonotonicClock()
    let isOver = Flag()
    let synchronised = Task.detached { try await synchronise(sync, isOver) }
    var (updates, enqueues, firsts, values, hits) = (Calls(), Calls(), Calls(), Calls(), Calls())
    var number = 0
    while !isOver.isSet.load(ordering: .relaxed), number + 3 < reads {
        number += 3
        let id = number
        try await clock.sleep(until: clock.uptime + .milliseconds(2))
        updates.add(
            try await Call.measure { try await larder.update { $0.modify(Post.self, "post_\(id)") { $0.likes += 1 } } }
        )
        enqueues.add(try await Call.measure { _ = try larder.enqueue(id, operation) })
        firsts.add(
            await Call.measure {
                for await _ in larder.snapshots(single("post_\(id + 1)"), .cacheOnly) { break }
            }
        )
        let resource = single("post_\(id + 2)")
        values.add(try await Call.measure { _ = try await larder.value(resource, .cacheOnly) })
        hits.add(try await Call.measure { _ = try await larder.value(resource, .cacheOnly) })
    }
    let time = try await synchronised.value
    say(
        "on the main actor while \(changes.count) changes are synchronised in \(time), goal: held 1 ms at most at the 99th percentile:"
    )
    updates.show("update")
    enqueues.show("enqueue")
    firsts.show("first of snapshots, from the disk")
    values.show("value, from the disk")
    hits.show("value, from memory")
    larder.close()
}

/// How long a call took, and how long the main thread could do nothing else: the sum of its turns, with the time that other threads
/// kept it from the processors.
private struct Call {
    let time: Duration
    let running: Duration
    let held: Duration

    @MainActor
    static func measure(_ call: () async throws -> Void) async rethrows -> Call {
        let before = threadTimes()
        let time = try await ContinuousClock().measure(call)
        let after = threadTimes()
        let running = after.running - before.running
        return Call(time: time, running: running, held: running + (after.waiting - before.waiting))
    }
}

private struct Calls {
    private var calls: [Call] = []

    mutating func add(_ call: Call) { calls.append(call) }

    func show(_ name: String) {
        func text(_ part: (Call) -> Duration) -> String {
            let sorted = calls.map(part).sorted()
            guard let last = sorted.last else { return "–" }
            func shown(_ duration: Duration) -> String { String(format: "%.3f", duration / .milliseconds(1)) }
            return "\(shown(sorted[sorted.count / 2])) \(shown(sorted[sorted.count * 99 / 100])) \(shown(last))"
        }
        say(
            "    \(name): \(calls.count) calls, ms (median, 99 %, maximum): took \(text(\.time)); held \(text(\.held));"
                + " running \(text(\.running))"
        )
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
