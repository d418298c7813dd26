import Larder
import Measuring
import Synchronization

/// Measures memory hits, on no actor and on the main actor.
func measureReads() async throws {
    let larder = try LarderCache()
    let one = single("post_1")
    let list = feed("feed", from: 0)
    _ = try await larder.value(one)
    _ = try await larder.value(list)
    let before = requests.load(ordering: .relaxed)
    try await onNoActor(larder, one, list)
    try await onMainActor(larder, one)
    precondition(requests.load(ordering: .relaxed) == before, "A memory hit has sent a request.")
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
        // Assembled from its entities each time, as after a change of one of them.
        for _ in 0..<100 {
            try await larder.update { $0.modify(Post.self, "post_7") { $0.likes += 1 } }
            joined.add(try await clock.measure { _ = try await larder.value(list) }, operations: 1)
        }
        observed.add(
            await clock.measure {
                for _ in 0..<100 { for await _ in larder.snapshots(one) { break } }
            },
            operations: 100
        )
    }
    value.show("value, memory hit, existing resource value", goal: "1 µs")
    anew.show("value, memory hit, new resource value")
    built.show("    of which creating the resource value")
    snapshot.show("snapshot, memory hit", goal: "1 µs")
    fifty.show("value of a list of 50, memory hit", goal: "50 µs")
    joined.show("value of a list of 50, assembled from entities in memory", goal: "50 µs")
    observed.show("observe, first snapshot, end")
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

/// Measures 10,000 concurrent reads of one missing key.
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
        precondition(requests.load(ordering: .relaxed) == before + 1, "All reads must share one request.")
    }
    cold.show("10,000 tasks read one missing key (one request), each")
    warm.show("10,000 tasks read one key from memory, each")
}
