import Larder
import LarderDemo
import LarderModels
import LarderServer
import Synchronization

extension TourScene {
    private struct Network {
        let name: String
        /// The faults of the requests that like.
        var actions: [(FaultAction, Fault.Occurrence)] = []

        static func delayed(_ name: String, _ delay: Duration) -> Network {
            Network(name: name, actions: [(.latency(connect: nil, firstByte: .fixed(delay), body: nil), .init())])
        }

        static let all: [Network] = {
            var once = Fault.Occurrence()
            once.count = 1
            var briefly = Fault.Occurrence()
            briefly.until = .seconds(3)
            return [
                Network(name: "0 ms"), .delayed("150 ms", .milliseconds(150)), .delayed("2 s", .seconds(2)),
                Network(name: "first reply lost", actions: [(.loseReply(.reset), once)]),
                Network(name: "offline for 3 s", actions: [(.reset, briefly)]),
            ]
        }()
    }

    /// One tap, and what became of it.
    private struct Tap: Sendable {
        var shown: Duration?
        var durable: Duration?
        var known: Duration?
        var effect = 0
        /// Nil: there was none.
        var error: String?

        func row(_ network: String, _ strategy: String) -> [TourValue] {
            func value(_ time: Duration?) -> TourValue { time.map { .duration($0) } ?? .none }
            return [
                .text(network), .text(strategy), value(shown), value(durable), value(known), .count(effect),
                .text(error ?? "none"),
            ]
        }
    }

    /// A like as write-behind, as write-through and as a plain request, on five networks.
    func taps() async throws -> TourChapter {
        var chapter = begin(
            .taps,
            "A person taps the heart of a post. Larder stores the tap, shows it and sends it later (write-behind); or stores it, sends it and "
                + "shows it when the server has it (write-through). The usual way is to send a request and to show the result. After what time "
                + "is the tap shown, safe on disk, and known to the server?"
        )
        let networks = Network.all
        let taps = try await withThrowingTaskGroup(of: (Int, [Tap]).self) { group in
            for (index, network) in networks.enumerated() {
                group.addTask {
                    async let later = self.tapLater(network)
                    async let through = self.tapThrough(network)
                    async let waiting = self.tapAndWait(network)
                    return (index, try await [later, through, waiting])
                }
            }
            var taps = [[Tap]](repeating: [], count: networks.count)
            for try await (index, three) in group { taps[index] = three }
            return taps
        }
        let rows = zip(networks, taps).flatMap { network, taps in
            zip(Self.strategies, taps).map { $1.row(network.name, $0) }
        }
        chapter.exhibits = [
            .table(
                TourTable(
                    title: "One tap",
                    columns: ["network", "strategy", "shown", "durable", "known", "likes counted", "error"],
                    rows: rows
                )
            ),
            .steps(
                TourSteps(
                    title: "The same tap, network by network",
                    steps: zip(networks, taps).map { network, taps in Self.step(network, taps) }
                )
            ),
        ]
        let slowest = taps.compactMap(\.[0].shown).max() ?? .zero
        let open = taps.filter { $0[1].shown == nil && $0[1].known != nil }.count
        let failed = taps.filter { $0[2].error != nil }.count
        chapter.answer =
            "Write-behind showed each tap within \(TourValue.duration(slowest).text) whatever the network did, and each was counted once. "
            + "Write-through made the person wait, said on \(open) of \(networks.count) networks that the outcome was not known yet, and found "
            + "it out later. The plain request made the person wait too, and ended with an error on \(failed) of \(networks.count) networks; "
            + "it is a PUT, which the transport repeats after a lost reply. Write-through is a POST, which it must not repeat."
        return chapter
    }

    private static let strategies = ["write-behind", "write-through", "plain request"]

    /// What a person sees of one tap with each strategy; each bar is a part of the longest time.
    private static func step(_ network: Network, _ taps: [Tap]) -> TourSteps.Step {
        let all = taps.flatMap { [$0.shown, $0.durable, $0.known].compactMap { $0?.nanosecondsSaturating } }
        let longest = Double(max(1, all.max() ?? 1))
        let boxes = zip(strategies, taps).flatMap { name, tap in
            [("shown", tap.shown), ("on disk", tap.durable), ("known", tap.known)].map { event, time in
                TourSteps.Box(
                    label: "\(name): \(event)",
                    text: time.map { "after \(TourValue.duration($0).text)" }
                        ?? (["never"] + [tap.error].compactMap(\.self)).joined(separator: "; "),
                    tone: time.map { $0 < .milliseconds(100) ? .good : .warning } ?? .bad,
                    share: time.map { Double($0.nanosecondsSaturating) / longest } ?? 0
                )
            }
        }
        let effects = zip(strategies, taps).map { "\($0) \($1.effect)" }.joined(separator: ", ")
        return TourSteps.Step(caption: "Network: \(network.name). Likes counted: \(effects)", boxes: boxes)
    }

    /// A client that has the feed, and a post to like.
    private func prepare(_ network: Network, _ device: String) async throws -> (MockWorld, LarderClient, Post) {
        let world = try world()
        let client = try await client(world, device)
        _ = try await client.cache.snapshot(client.feed.newest)
        guard let post = client.cache.stored(client.feed.newest)?.value?.items.first(where: { !$0.likedByMe }) else {
            throw Failure("The tour's world has no post without a like.")
        }
        for (index, action) in network.actions.enumerated() {
            for (method, path) in [("POST", "/v1/likes"), ("PUT", "/v1/posts/*/like")] {
                try world.set(
                    Fault(
                        id: "\(method)-\(index)",
                        action.0,
                        when: FaultMatch(method, path),
                        occurrence: action.1
                    )
                )
            }
        }
        return (world, client, post)
    }

    private func tapLater(_ network: Network) async throws -> Tap {
        let (world, client, post) = try await prepare(network, "later")
        defer { client.close() }
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
        tap.effect = try world.state("/v1/posts/\(post.id)", as: Post.self).likeCount - post.likeCount
        return tap
    }

    private func tapThrough(_ network: Network) async throws -> Tap {
        let (world, client, post) = try await prepare(network, "through")
        defer { client.close() }
        var tap = Tap()
        let (clock, source, stored) = (clock, client.source, FirstTime())
        let begin = clock.uptime
        var like = WriteThrough<String, Bool>("tour-awaited-like", scope: { $0 }) { attempt in
            // It is stored before it is sent.
            stored.note(clock.uptime - begin)
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
        tap.durable = stored.time
        tap.effect = try world.state("/v1/posts/\(post.id)", as: Post.self).likeCount - post.likeCount
        return tap
    }

    private func tapAndWait(_ network: Network) async throws -> Tap {
        let (world, client, post) = try await prepare(network, "waiting")
        defer { client.close() }
        var tap = Tap()
        let plain = try await PlainClient(world, "waiting", keeps: nil, attempts: 1)
        let begin = clock.uptime
        do {
            try await plain.send("PUT", "/v1/posts/\(post.id)/like")
            tap.shown = clock.uptime - begin
            tap.known = tap.shown
        } catch { tap.error = "error after \(TourValue.duration(clock.uptime - begin).text)" }
        tap.effect = try world.state("/v1/posts/\(post.id)", as: Post.self).likeCount - post.likeCount
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

/// The first of several times.
private final class FirstTime: Sendable {
    private let first = Mutex<Duration?>(nil)

    var time: Duration? { first.withLock { $0 } }

    func note(_ time: Duration) { first.withLock { $0 = $0 ?? time } }
}
