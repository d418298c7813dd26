import Larder
import LarderDemo
import LarderModels
import LarderServer
import Synchronization

extension TourScene {
    private struct Network {
        let name: String
        /// The fault of the requests that like.
        var fault: (action: FaultAction, occurrence: Fault.Occurrence)?

        static func delayed(_ name: String, _ delay: Duration) -> Network {
            Network(name: name, fault: (.latency(connect: nil, firstByte: .fixed(delay), body: nil), .init()))
        }

        static let all: [Network] = {
            var once = Fault.Occurrence()
            once.count = 1
            var briefly = Fault.Occurrence()
            briefly.until = .seconds(3)
            return [
                Network(name: "0 ms"), .delayed("150 ms", .milliseconds(150)), .delayed("2 s", .seconds(2)),
                Network(name: "first reply lost", fault: (.loseReply(.reset), once)),
                Network(name: "offline for 3 s", fault: (.reset, briefly)),
            ]
        }()
    }

    private enum Strategy: String, CaseIterable {
        case later = "write-behind"
        case through = "write-through"
        case waiting = "plain request"
    }

    /// One tap, and what became of it.
    private struct Tap: Sendable {
        var shown: Duration?
        var durable: Duration?
        var known: Duration?
        var effect = 0
        /// Nil: there was none.
        var error: String?
    }

    /// A like as write-behind, as write-through and as a plain request, on five networks.
    func taps() async throws -> TourChapter {
        let cases = Network.all.flatMap { network in Strategy.allCases.map { (network: network, strategy: $0) } }
        let taps = try await atOnce(cases) { try await self.tap($0.network, $0.strategy) }
        func results(_ strategy: Strategy) -> [Tap] { zip(cases, taps).filter { $0.0.strategy == strategy }.map(\.1) }
        let slowest = results(.later).compactMap(\.shown).max() ?? .zero
        let open = results(.through).filter { $0.shown == nil && $0.known != nil }.count
        let failed = results(.waiting).filter { $0.error != nil }.count
        let count = Network.all.count
        return TourChapter(
            name: .taps,
            question:
                "A person taps the heart of a post. Larder stores the tap, shows it and sends it later (write-behind); or stores it, sends "
                + "it and shows it when the server has it (write-through). The usual way is to send a request and to show the result. After "
                + "what time is the tap shown, safe on disk, and known to the server?",
            tables: [
                TourTable(
                    title: "One tap",
                    columns: ["network", "strategy", "shown", "durable", "known", "likes counted", "error"],
                    rows: zip(cases, taps).map { one, tap in
                        [
                            .text(one.network.name), .text(one.strategy.rawValue), TourValue(tap.shown),
                            TourValue(tap.durable), TourValue(tap.known), .count(tap.effect),
                            .text(tap.error ?? "none"),
                        ]
                    }
                )
            ],
            answer:
                "Write-behind showed each tap within \(TourValue.duration(slowest).text) whatever the network did, and each was counted "
                + "once. Write-through made the person wait, said on \(open) of \(count) networks that the outcome was not known yet, and found "
                + "it out later. The plain request made the person wait too, and ended with an error on \(failed) of \(count) networks; it is a "
                + "PUT, which the transport repeats after a lost reply. Write-through is a POST, which it must not repeat."
        )
    }

    private func tap(_ network: Network, _ strategy: Strategy) async throws -> Tap {
        let (world, client, post) = try await prepare(network)
        defer { client.close() }
        var tap =
            switch strategy {
            case .later: try await tapLater(client, post)
            case .through: try await tapThrough(client, post)
            case .waiting: try await tapAndWait(world, post)
            }
        tap.effect = try world.state("/v1/posts/\(post.id)", as: Post.self).likeCount - post.likeCount
        return tap
    }

    /// A client that has the feed, and a post to like.
    private func prepare(_ network: Network) async throws -> (MockWorld, LarderClient, Post) {
        let world = try world()
        let client = try await client(world)
        _ = try await client.cache.snapshot(client.feed.newest)
        guard let post = client.cache.stored(client.feed.newest)?.value?.items.first(where: { !$0.likedByMe }) else {
            throw Failure("The tour's world has no post without a like.")
        }
        if let (action, occurrence) = network.fault {
            try world.fail(action, on: [("POST", "/v1/likes"), ("PUT", "/v1/posts/*/like")], occurrence)
        }
        return (world, client, post)
    }

    private func tapLater(_ client: LarderClient, _ post: Post) async throws -> Tap {
        var tap = Tap()
        let begin = clock.uptime
        try client.likes.set(true, post.id)
        // Both at once: the call returns when the tap is on disk and shown.
        tap.durable = clock.uptime - begin
        let isShown = client.cache.stored(client.feed.post(post.id))?.value?.likedByMe == true
        tap.shown = isShown ? tap.durable : nil
        try await client.cache.outbox.drain(within: .seconds(30))
        if client.cache.outbox.status.isDrained {
            tap.known = clock.uptime - begin
        } else {
            tap.error = "not sent within 30 s"
        }
        return tap
    }

    private func tapThrough(_ client: LarderClient, _ post: Post) async throws -> Tap {
        var tap = Tap()
        let (clock, source, begin) = (clock, client.source, clock.uptime)
        let stored = Mutex<Duration?>(nil)
        var like = WriteThrough<String, Bool>("tour-awaited-like", scope: { $0 }) { attempt in
            // It is stored before it is sent.
            stored.withLock { $0 = $0 ?? clock.uptime - begin }
            let like = LikeRequest.Item(postID: attempt.input, liked: true, idempotencyKey: attempt.idempotencyKey)
            try await source.send(.post, "/v1/likes", LikeRequest(items: [like]))
            return .accepted(true)
        }
        like.acknowledge = { post, _, update in update.invalidate(Post.self, post) }
        client.cache.outbox.register(like)
        do throws(LarderError) {
            _ = try await client.cache.commit(post.id, like)
            tap.shown = clock.uptime - begin
            tap.known = tap.shown
        } catch {
            tap.error = "\(error.code.rawValue) after \(TourValue.duration(clock.uptime - begin).text)"
            try await client.cache.outbox.drain(within: .seconds(30))
            if error.code == .inDoubt, client.cache.outbox.status.isDrained { tap.known = clock.uptime - begin }
        }
        tap.durable = stored.withLock { $0 }
        return tap
    }

    private func tapAndWait(_ world: MockWorld, _ post: Post) async throws -> Tap {
        var tap = Tap()
        let plain = try await PlainClient(world, "waiting", keeps: nil, attempts: 1)
        let begin = clock.uptime
        do {
            try await plain.send("PUT", "/v1/posts/\(post.id)/like")
            tap.shown = clock.uptime - begin
            tap.known = tap.shown
        } catch { tap.error = "error after \(TourValue.duration(clock.uptime - begin).text)" }
        return tap
    }
}

/// The body of a request that likes posts.
private struct LikeRequest: Encodable {
    struct Item: Encodable {
        let postID: String
        let liked: Bool
        let idempotencyKey: String

        private enum CodingKeys: String, CodingKey {
            case postID = "postId"
            case liked, idempotencyKey
        }
    }

    let items: [Item]
}
