import Larder
import LarderDemo
import LarderServer

extension TourScene {
    /// The reads of one profile in six situations.
    func reads() async throws -> TourChapter {
        var chapter = begin(
            .reads,
            "A profile is fresh for five minutes. Where does each read find it, what goes over the network, and what does the person see?"
        )
        let world = try world()
        let clock = ManualClock(SystemWallClock().now)
        var client = try await client(world, clock: clock)
        var rows: [[TourValue]] = []
        func read(_ caption: String) async throws {
            let client = client
            let (snapshot, traffic, time) = try await cost(world) { try await client.profiles.profile("user_3") }
            rows.append([
                .text(caption), .text(snapshot.source?.rawValue ?? "–"), .text(snapshot.freshness.description),
                .text(traffic.text), .duration(time),
            ])
        }
        try await read("first read")
        try await read("a moment later")
        client.close()
        client = try await self.client(world, clock: clock)
        try await read("after a restart")
        clock.advance(by: .seconds(360))
        try await read("six minutes later, unchanged")
        try world.act("PATCH", "/v1/me", as: try world.handle("user_3"), "{\"bio\":\"A new text.\"}")
        clock.advance(by: .seconds(360))
        try await read("six minutes later, changed")
        clock.advance(by: .seconds(360))
        try world.set(.offline)
        try await read("six minutes later, offline")
        client.close()
        chapter.exhibits = [
            .table(
                TourTable(title: "Six reads", columns: ["read", "from", "freshness", "network", "time"], rows: rows)
            )
        ]
        let requests = rows.filter { $0[3] != .text("no request") }.count
        chapter.answer =
            "Of \(rows.count) reads \(requests) used the network. An unchanged profile cost a reply without content, and without a network the "
            + "stored profile was shown and called stale."
        return chapter
    }
}
