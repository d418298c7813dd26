import Foundation
import Larder
import Measuring
import Synchronization

/// The processor time of the calling thread.
private func processorTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

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

/// Measures how long a call takes, for how long without a break it holds the main actor, and how much processor time of the main
/// thread the longest of these holds has: the rest is the scheduler's, which gives the processor to other threads.
@MainActor
private final class Pulse {
    private let clock = ContinuousClock()
    private var last = ContinuousClock.now
    private var lastProcessorTime = processorTime()
    private var lastThread = pthread_self()
    private var longest = Duration.zero
    private var longestProcessorTime = Duration.zero
    private var count = 0
    var isOver = false

    /// Called on each turn of the main actor that nobody else takes.
    func beat() {
        let now = clock.now
        let used = processorTime()
        longest = max(longest, now - last)
        // Another thread may have become the main actor's; its clock is another one.
        let thread = pthread_self()
        if thread == lastThread { longestProcessorTime = max(longestProcessorTime, used - lastProcessorTime) }
        lastThread = thread
        (last, lastProcessorTime) = (now, used)
        count += 1
    }

    fileprivate func measure(_ call: () async throws -> Void) async rethrows -> Call {
        await turn()
        (last, longest) = (clock.now, .zero)
        (lastProcessorTime, longestProcessorTime, lastThread) = (processorTime(), .zero, pthread_self())
        let time = try await clock.measure(call)
        await turn()
        return Call(time: time, held: longest, worked: longestProcessorTime)
    }

    private func turn() async {
        let before = count
        while count == before, !isOver { await Task.yield() }
    }
}

private struct Call {
    let time: Duration
    let held: Duration
    let worked: Duration
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
                + " processor time of it \(text(\.worked))"
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
