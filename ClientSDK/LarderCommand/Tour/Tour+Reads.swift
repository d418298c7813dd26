import Larder
import LarderDemo
import LarderServer

extension TourScene {
    /// The reads of one profile in eight situations.
    func reads() async throws -> TourChapter {
        let world = try world()
        let clock = ManualClock(SystemWallClock().now)
        var client = try await client(world, clock: clock)
        var rows: [[TourValue]] = []
        func read(_ caption: String, after seconds: Int64) async throws {
            clock.advance(by: .seconds(seconds))
            let client = client
            let (snapshot, traffic, time) = try await cost(world) { try await client.profiles.profile("user_3") }
            rows.append([
                .text(caption), TourValue(snapshot.expiresAt.map { max(.zero, $0 - clock.now) }),
                .text(snapshot.source?.rawValue ?? "–"), .text(snapshot.freshness.description), .text(traffic.text),
                .duration(time),
            ])
        }
        try await read("first read", after: 0)
        try await read("a moment later", after: 0)
        try await read("90 s later", after: 90)
        try await read("150 s later", after: 150)
        client.close()
        client = try await self.client(world, clock: clock)
        try await read("after a restart", after: 0)
        try await read("six minutes later, unchanged", after: 360)
        try world.act("PATCH", "/v1/me", as: try world.handle("user_3"), "{\"bio\":\"A new text.\"}")
        try await read("six minutes later, changed", after: 360)
        try world.set(.offline)
        try await read("six minutes later, offline", after: 360)
        client.close()
        let requests = rows.filter { $0[4] != .text("no request") }.count
        return TourChapter(
            name: .reads,
            question:
                "A profile is fresh for five minutes. Where does each read find it, what goes over the network, and what does the person see?",
            tables: [
                TourTable(
                    title: "Read by read",
                    columns: ["read", "lifetime left", "from", "freshness", "network", "time"],
                    rows: rows
                )
            ],
            answer:
                "Of \(rows.count) reads \(requests) used the network. An unchanged profile cost a reply without content, and without a "
                + "network the stored profile was shown and called stale."
        )
    }
}
