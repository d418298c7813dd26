import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer

extension TourScene {
    /// The same edits under four ways to keep a copy right.
    func invalidation() async throws -> TourChapter {
        var random = SeededGenerator(seed: 3)
        var edits: [Int] = []
        var at = 0.0
        while true {
            at += -300 * log(1 - random.unit())
            if at >= 3_600 { break }
            edits.append(Int(at))
        }
        let ways: [(name: String, value: Keeping)] = [
            ("lifetime of 60 s", .lifetime(.seconds(60))), ("lifetime of 5 min", .lifetime(.seconds(300))),
            ("version, asked at each look", .version), ("version, told by a push", .push),
            ("event, then the change feed", .event),
        ]
        let (table, results) = try await TourTable.measured(
            "\(edits.count) edits, 360 looks",
            columns: ["kept right by", "requests", "bytes", "looks at an old text", "time"],
            ways
        ) { way in
            try await keep(way, edits)
        } row: {
            [.count($0.traffic.requests), .bytes($0.traffic.bytes), .count($0.old), .duration(.seconds($0.old * 10))]
        }
        let old = results.map { $0.old }
        return TourChapter(
            name: .invalidation,
            question:
                "For an hour a profile is edited about every five minutes, and a person looks at it every ten seconds. What does each way "
                + "to keep it right cost, and how long does the person see an old text?",
            tables: [table],
            answer:
                "Short lifetimes cost requests, long ones show old texts (\(old[1]) looks). Asking for the version is always right and costs a "
                + "request for each look. A push that tells the version was right at \(360 - old[3]) of 360 looks; it costs a request at the "
                + "next look, and one after five minutes without an edit (LarderClient.received). Events were right at \(360 - old[4]) looks, "
                + "and cost something only when something changed."
        )
    }

    private enum Keeping {
        case lifetime(Duration)
        case version
        case push
        case event
    }

    /// Plays the edits and looks; how many looks saw an old text, and the traffic of the client.
    private func keep(_ way: Keeping, _ edits: [Int]) async throws -> (old: Int, traffic: TourTraffic) {
        let world = try world()
        let clock = ManualClock(SystemWallClock().now)
        let client = try await client(world, clock: clock)
        defer { client.close() }
        var resource = client.profiles.resource("user_3")
        let policy: ReadPolicy
        switch way {
        case .lifetime(let lifetime): (resource.freshness, policy) = (.timeToLive(lifetime), .cacheFirst)
        case .version: policy = .networkFirst(timeout: nil)
        // The rule of the demo: five minutes, and no newer version known.
        case .push: policy = .cacheFirst
        case .event: (resource.freshness, policy) = (.timeToLive(.seconds(86_400)), .cacheFirst)
        }
        let handle = try world.handle("user_3")
        if case .event = way { _ = try await client.sync.catchUp() }
        let last = await world.journal().last?.number ?? 0
        var rest = edits[...]
        var text = ""
        var old = 0
        for second in stride(from: 0, to: 3_600, by: 10) {
            while let next = rest.first, next <= second {
                rest.removeFirst()
                text = "edit \(edits.count - rest.count)"
                let reply = try world.act("PATCH", "/v1/me", as: handle, "{\"bio\":\"\(text)\"}")
                switch way {
                case .push:
                    let version = Int(try JSONDecoder().decode(Profile.self, from: Data(reply.body)).version)
                    _ = try await client.received(push: ["profile": "user_3", "version": version])
                // The event says that something has changed; the change feed says what.
                case .event: _ = try await client.sync.catchUp()
                case .lifetime, .version: break
                }
            }
            let seen = try await client.cache.snapshot(resource, policy).value?.bio
            if !text.isEmpty, seen != text { old += 1 }
            clock.advance(by: .seconds(10))
        }
        return (old, await TourTraffic(world, after: last))
    }
}
