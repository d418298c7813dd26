import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer

/// What a person's visit has cost, and what became of what they did.
private struct Visit: Sendable {
    var traffic: TourTraffic?
    /// The time until the feed was shown: at the first start, after a restart, and offline.
    var first: Duration?
    var again: Duration?
    var offline: Duration?
    var errors = 0
    var lost = 0
    var doubled = 0

    var row: [TourValue] {
        func value(_ time: Duration?) -> TourValue { time.map { .duration($0) } ?? .text("error") }
        return [
            traffic.map { .count($0.requests) } ?? .none, traffic.map { .bytes($0.bytes) } ?? .none, value(first),
            value(again), value(offline), .count(errors), .count(lost), .count(doubled),
        ]
    }

    /// Counts the effects of one act that was meant to have one.
    mutating func count(effects: Int) {
        if effects == 0 { lost += 1 }
        doubled += max(0, effects - 1)
    }
}

extension TourScene {
    private enum Strategy: String, CaseIterable {
        case larder = "Larder"
        case none = "no cache, one try"
        case dictionary = "dictionary of 5 min, three tries"
    }

    private struct Network {
        let name: String
        let prepare: @Sendable (MockWorld) throws -> Void

        static let all: [Network] = [
            Network(name: "good") { _ in }, Network(name: "3g") { try $0.set(.threeG) },
            Network(name: "lossy Wi-Fi") { try $0.set(.lossyWifi) },
            Network(name: "busy server") { world in
                var some = Fault.Occurrence()
                some.every = 3
                some.after = 1
                var busy = CannedReply(status: 503)
                busy.retryAfter = .seconds(1)
                try world.set(Fault(id: "busy", .respond(busy), when: FaultMatch(nil, "/v1/**"), occurrence: some))
            },
            Network(name: "replies of writes lost") { world in
                var once = Fault.Occurrence()
                once.count = 1
                let writes = [
                    ("POST", "/v1/likes"), ("PUT", "/v1/posts/*/like"), ("POST", "/v1/conversations/*/messages"),
                    ("POST", "/v1/transfers"),
                ]
                try world.fail(.loseReply(.reset), on: writes, once)
            },
        ]
    }

    /// The same visit with three clients on five networks.
    func features() async throws -> TourChapter {
        let cases = Network.all.flatMap { network in Strategy.allCases.map { (network: network, strategy: $0) } }
        let visits = try await atOnce(cases) { try await self.visit($0.network, $0.strategy) }
        func sums(_ count: (Visit) -> Int) -> String {
            let sums = Strategy.allCases.map { strategy in
                zip(cases, visits).reduce(0) { $0 + ($1.0.strategy == strategy ? count($1.1) : 0) }
            }
            return "\(sums[0]), \(sums[1]) and \(sums[2])"
        }
        return TourChapter(
            name: .features,
            question:
                "A person, who does something each second, opens the feed and a profile, likes a post, sends a message, makes a transfer, "
                + "closes the app, opens the feed and the profile again, and once more without a network. What does the visit cost, when is the "
                + "feed shown, which acts end with an error, and which of the three writes were not done, or done twice?",
            tables: [
                TourTable(
                    title: "Nine acts of a person",
                    columns: [
                        "network", "client", "requests", "bytes", "first feed", "after restart", "offline", "errors",
                        "not done", "done twice",
                    ],
                    rows: zip(cases, visits).map { one, visit in
                        [.text(one.network.name), .text(one.strategy.rawValue)] + visit.row
                    }
                )
            ],
            answer:
                "Over all networks, with Larder, without a cache and with a dictionary: \(sums(\.errors)) acts ended with an error; of 15 "
                + "writes \(sums(\.lost)) were not done, and \(sums(\.doubled)) were done twice."
        )
    }

    private func visit(_ network: Network, _ strategy: Strategy) async throws -> Visit {
        let world = try world()
        let places = try Places(world)
        let client: any TourVisitor =
            switch strategy {
            case .larder: try await LarderVisitor(self, world, client(world))
            case .none: try await PlainClient(world, "plain", keeps: nil, attempts: 1)
            case .dictionary: try await PlainClient(world, "plain", keeps: .seconds(300), attempts: 3)
            }
        defer { client.close() }
        var visit = Visit()
        let last = await world.journal().last?.number ?? 0
        try network.prepare(world)
        func attempt(_ act: () async throws -> Void) async throws -> Duration? {
            // The person looks at the screen.
            try await clock.sleep(until: clock.uptime + pause)
            let begin = clock.uptime
            do {
                try await act()
                return clock.uptime - begin
            } catch {
                visit.errors += 1
                return nil
            }
        }
        visit.first = try await attempt { try await client.openFeed() }
        _ = try await attempt { try await client.openProfile() }
        _ = try await attempt { try await client.like(places.post) }
        _ = try await attempt { try await client.write(places.text, to: places.conversation) }
        _ = try await attempt { try await client.pay(places.order) }
        try await client.restart()
        visit.again = try await attempt { try await client.openFeed() }
        _ = try await attempt { try await client.openProfile() }
        try await client.settle()
        visit.traffic = await TourTraffic(world, after: last)
        world.removeFaults()
        try world.set(.offline)
        try await client.restart()
        visit.offline = try await attempt { try await client.openFeed() }
        _ = try await attempt { try await client.openProfile() }
        world.removeFaults()
        for effects in try places.effects(world) { visit.count(effects: effects) }
        return visit
    }
}

/// What the person reads and writes, and how the server shows its effect.
private struct Places {
    let post: String
    let conversation: String
    let order: Bank.TransferOrder
    let text = "A message of the tour."
    private let likes: Int

    init(_ world: MockWorld) throws {
        let posts: Page<Post> = try world.state("/v1/feed?limit=20")
        let conversations: Page<Conversation> = try world.state("/v1/conversations")
        let mine: Page<Account> = try world.state("/v1/accounts")
        guard let post = posts.items.first(where: { !$0.likedByMe }), let conversation = conversations.items.first,
            let (from, to) = try Self.accounts(mine.items, world)
        else {
            throw Failure("The tour's world has no post to like, no conversation or no two accounts of one currency.")
        }
        (self.post, self.conversation, likes) = (post.id, conversation.id, post.likeCount)
        order = Bank.TransferOrder(
            from: from.id,
            to: to.id,
            Money(minorUnits: 100, currency: from.balance.currency),
            note: "a transfer of the tour"
        )
    }

    /// An open account of the person with money, and one of somebody else in its currency.
    private static func accounts(_ mine: [Account], _ world: MockWorld) throws -> (from: Account, to: Account)? {
        let sources = mine.filter { $0.status == "open" && $0.balance.minorUnits > 1_000 }
        for number in 2...20 {
            let person = try world.handle("user_\(number)")
            let theirs = try JSONDecoder().decode(
                Page<Account>.self,
                from: Data(try world.act("GET", "/v1/accounts", as: person).body)
            )
            for from in sources {
                let to = theirs.items.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        return nil
    }

    /// How often the like, the message and the transfer were done.
    func effects(_ world: MockWorld) throws -> [Int] {
        let post: Post = try world.state("/v1/posts/\(post)")
        let messages: Page<Message> = try world.state("/v1/conversations/\(conversation)/messages?limit=50")
        let booked: Page<Transaction> = try world.state("/v1/accounts/\(order.fromAccountID)/transactions?limit=50")
        return [
            post.likeCount - likes, messages.items.filter { $0.text == text }.count,
            booked.items.filter { $0.note == order.note }.count,
        ]
    }
}
