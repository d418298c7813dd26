import Larder
import Measuring
import Synchronization

/// Reads that memory answers. On no actor, and on the main one, where screens read.
func measureReads() async throws {
    let larder = try LarderCache()
    let one = single("post_1")
    let list = feed("feed", from: 0)
    _ = try await larder.value(one)
    _ = try await larder.value(list)
    let before = requests.load(ordering: .relaxed)
    try await onNoActor(larder, one, list)
    try await onMainActor(larder, one)
    precondition(requests.load(ordering: .relaxed) == before, "A hit has asked the network.")
}

@concurrent private func onNoActor(
    _ larder: LarderCache,
    _ one: Resource<Post>,
    _ list: Resource<EntityList<Post>>
) async throws {
    let clock = ContinuousClock()
    let count = 5_000
    var (value, anew, snapshot, fifty, built) = (Samples(), Samples(), Samples(), Samples(), Samples())
    var (joined, observed) = (Samples(), Samples())
    for _ in 0..<31 {
        value.add(try await clock.measure { for _ in 0..<count { _ = try await larder.value(one) } }, operations: count)
        anew.add(
            try await clock.measure { for _ in 0..<count { _ = try await larder.value(single("post_1")) } },
            operations: count
        )
        built.add(clock.measure { for _ in 0..<count { _ = single("post_1") } }, operations: count)
        snapshot.add(
            try await clock.measure { for _ in 0..<count { _ = try await larder.snapshot(one) } },
            operations: count
        )
        fifty.add(
            try await clock.measure { for _ in 0..<count { _ = try await larder.value(list) } },
            operations: count
        )
        // Put together from its entities each time, as after any of them has changed.
        for _ in 0..<100 {
            larder.noteVersion(1, of: Post.self, "post_7")
            joined.add(try await clock.measure { _ = try await larder.value(list) }, operations: 1)
        }
        observed.add(
            await clock.measure {
                for _ in 0..<100 { for await _ in larder.snapshots(one) { break } }
            },
            operations: 100
        )
    }
    value.show("value, memory hit, the resource at hand", goal: "1 µs")
    anew.show("value, memory hit, the resource made anew")
    built.show("    of which to make the resource")
    snapshot.show("snapshot, memory hit", goal: "1 µs")
    fifty.show("value of a list of 50, memory hit", goal: "50 µs")
    joined.show("value of a list of 50, put together from entities in memory", goal: "50 µs")
    observed.show("begin to observe, first snapshot, end")
}

@MainActor private func onMainActor(_ larder: LarderCache, _ one: Resource<Post>) async throws {
    let clock = ContinuousClock()
    var value = Samples()
    for _ in 0..<31 {
        let start = clock.now
        for _ in 0..<1_000 { _ = try await larder.value(one) }
        value.add(clock.now - start, operations: 1_000)
    }
    value.show("value, memory hit, called on the main actor", goal: "1 µs")
}

/// Ten thousand tasks that want one thing which nobody has yet.
func measureCrowd() async throws {
    let clock = ContinuousClock()
    var (cold, warm) = (Samples(), Samples())
    for _ in 0..<11 {
        let larder = try LarderCache()
        let one = single("post_1")
        let before = requests.load(ordering: .relaxed)
        for round in 0..<2 {
            let start = clock.now
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<10_000 { group.addTask { _ = try await larder.value(one) } }
                try await group.waitForAll()
            }
            if round == 0 {
                cold.add(clock.now - start, operations: 10_000)
            } else {
                warm.add(clock.now - start, operations: 10_000)
            }
        }
        precondition(requests.load(ordering: .relaxed) == before + 1, "There is one request for all.")
    }
    cold.show("10,000 tasks read one key that is not there (one request), each")
    warm.show("10,000 tasks read one key from memory, each")
}
