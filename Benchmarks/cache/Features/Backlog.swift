import Larder
import LarderDemo
import LarderServer
import Measuring
import Synchronization

/// Measures the synchronisation of 10,000 posts by other users, and the latency of concurrent reads.
func measureBacklog(_ stage: Stage) async throws {
    let client = try await stage.client("backlog")
    let newest = client.feed.newest
    let known = try await client.cache.value(newest).items.map(\.id)
    try await client.sync.catchUp()
    for number in 0..<10_000 {
        let act = ScriptedAction(
            "POST",
            "/v1/posts",
            as: "ana",
            body: #"{"text":"The \#(number)th thing that happened."}"#
        )
        let reply = stage.backend.main.perform(act)
        precondition(reply.status == 201, String(decoding: reply.body, as: UTF8.self))
    }
    let isOver = Atomic<Bool>(false)
    let clock = ContinuousClock()
    let reader = Task {
        var times: [Duration] = []
        while !isOver.load(ordering: .relaxed) {
            for id in known.prefix(10) {
                let post = client.feed.post(id)
                times.append(try await clock.measure { _ = try await client.cache.snapshot(post, .cacheOnly) })
            }
            times.append(try await clock.measure { _ = try await client.cache.snapshot(newest, .cacheOnly) })
            try await ContinuousClock().sleep(for: .microseconds(500))
        }
        return times.sorted()
    }
    let start = clock.now
    let applied = try await client.sync.catchUp()
    let time = clock.now - start
    isOver.store(true, ordering: .relaxed)
    let reads = try await reader.value
    say("backlog of \(applied) changes: fetched, stored and shown in \(time)  goal 1 s")
    let (median, last) = (reads[reads.count / 2], reads[reads.count * 99 / 100])
    say(
        "    \(reads.count) reads meanwhile: median \(median), 99th percentile \(last), longest \(reads[reads.count - 1])  goal 5 ms"
    )
    client.close()
}
