import Foundation
import Larder
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Testing

@testable import LarderDemo

/// What must hold after every visit.
extension Person {
    /// What the client holds, for the server's oracle.
    private var held: [String: Int] {
        get throws {
            // A drift may add 2^53 to a version.
            try client.cache.held(Post.self, Profile.self, Conversation.self, Message.self).mapValues { $0 % (1 << 53) }
        }
    }

    /// How what the client holds differs from what the server has.
    func outdated() throws -> [Difference] {
        try visit.world.differences(held: held, as: "ana").filter { $0.held != nil }
    }

    /// The posts, profiles, conversations and messages that the client does not hold.
    private func missing() throws -> [Difference] {
        try visit.world.differences(held: held, types: Self.types, as: "ana").filter { $0.held == nil }
    }

    private static let types = [
        Post.entityType, Profile.entityType, Conversation.entityType, Message.entityType,
    ].joined(separator: ",")

    /// Whether everything was sent. A like of a post that another person has deleted is rejected, and the entry tells so.
    var isDrained: Bool {
        client.cache.outbox.entries.allSatisfy { $0.state == .rejected && $0.operation == client.likes.operation.name }
    }

    private var isLive: Bool { if case .live = client.live.state { true } else { false } }

    /// Waits until everything was sent, changes arrive again, and nothing that the client holds is outdated, without any act of the person.
    func expectToCatchUp(
        within limit: Duration = .seconds(900),
        _ comment: String,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let hasCaughtUp = try await visit.pass(atMost: limit) {
            try isDrained && isLive && outdated().isEmpty
        }
        let state = "\(client.cache.outbox.entries) \(client.sync.status) \(client.live.state) \(try outdated())"
        #expect(hasCaughtUp, "\(comment): \(state) \(done.errors)", sourceLocation: location)
    }

    /// Opens every screen and compares all of it with the server.
    ///
    /// - Parameter mayHaveStaleItems: whether the client has lost its change token, or replies to its writes. Then items outside of the
    ///   newest page stay stale until they are read.
    func expectConvergence(
        _ comment: String,
        mayHaveStaleItems: Bool = false,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        // On a busy machine a screen may need a second look: the clock does not wait for work without requests.
        for _ in 1...3 {
            try await openEverything()
            if try outdated().isEmpty, try missing().isEmpty { break }
        }
        let types = Self.types
        if mayHaveStaleItems {
            let stale = try visit.world.differences(held: held, types: types, as: "ana")
            #expect(stale.allSatisfy { $0.held == nil }, "\(comment): \(stale)", sourceLocation: location)
            let shown = client.cache.stored(client.feed.newest)?.value?.items.map(\.id) ?? []
            await openPosts(Array(Set(stale.map(\.id).filter { $0.hasPrefix("post_") } + shown)).sorted())
        }
        let differences = try visit.world.differences(held: held, types: types, as: "ana")
        #expect(differences.isEmpty, "\(comment): \(differences) \(done.errors)", sourceLocation: location)
        try expectContents(comment, at: location)
    }

    /// Compares what is shown with the server's lists.
    func expectContents(_ comment: String, at location: SourceLocation = #_sourceLocation) throws {
        let (world, cache) = (visit.world, client.cache)
        let posts: [Post] = try world.list("/v1/feed", as: "ana")
        let shown = cache.stored(client.feed.newest)?.value?.items ?? []
        #expect(shown.map(\.id) == posts.map(\.id), "\(comment)", sourceLocation: location)
        #expect(shown.map(\.text) == posts.map(\.text), "\(comment)", sourceLocation: location)
        #expect(shown.map(\.likedByMe) == posts.map(\.likedByMe), "\(comment)", sourceLocation: location)
        let messages: [Message] = try world.list("/v1/conversations/\(places.conversation)/messages", as: "ana")
        let lines = cache.stored(client.chat.messages(places.conversation))?.value?.items ?? []
        #expect(lines.map(\.id) == messages.map(\.id), "\(comment)", sourceLocation: location)
        #expect(lines.map(\.text) == messages.map(\.text), "\(comment)", sourceLocation: location)
        let profile = cache.stored(client.profiles.resource(places.me))?.value
        let reply = world.perform(ScriptedAction("GET", "/v1/profiles/\(places.me)", as: "ana"))
        let truth = try JSONDecoder().decode(Profile.self, from: Data(reply.body))
        #expect(
            profile?.bio == truth.bio && profile?.location == truth.location,
            "\(comment)",
            sourceLocation: location
        )
        let accounts: [Account] = try world.list("/v1/accounts", as: "ana")
        let balances = cache.stored(client.bank.accounts)?.value?.items ?? []
        #expect(balances.map(\.balance) == accounts.map(\.balance), "\(comment)", sourceLocation: location)
        try expectDeeds(comment, at: location)
    }

    /// Compares what the person has done with the server: the last tap on each post, each message once and in order, each transfer once.
    func expectDeeds(_ comment: String, at location: SourceLocation = #_sourceLocation) throws {
        let world = visit.world
        let posts: [Post] = try world.list("/v1/feed", as: "ana")
        for (id, isLiked) in done.likes {
            guard let post = posts.first(where: { $0.id == id }) else { continue }
            #expect(post.likedByMe == isLiked, "\(comment): the last tap on \(id)", sourceLocation: location)
        }
        let messages: [Message] = try world.list("/v1/conversations/\(places.conversation)/messages", as: "ana")
        let mine = messages.filter { $0.text.hasSuffix("of seed \(visit.seed)") }
        #expect(
            mine.map(\.text) == done.messages.reversed(),
            "\(comment): once each, in order",
            sourceLocation: location
        )
        try expectMoney(comment, at: location)
    }

    private func expectMoney(_ comment: String, at location: SourceLocation) throws {
        let world = visit.world
        #expect(try world.ledgerFaults().isEmpty, "\(comment)", sourceLocation: location)
        let entries: [Transaction] = try world.list("/v1/accounts/\(places.from.id)/transactions", as: "ana")
        for (note, outcome) in done.transfers {
            let count = entries.count { $0.note == note }
            switch outcome {
            case .confirmed: #expect(count == 1, "\(comment): \(note) was confirmed", sourceLocation: location)
            // The outbox has sent it until its outcome was known.
            case .unknown: #expect(count <= 1, "\(comment): \(note)", sourceLocation: location)
            case .failed: #expect(count == 0, "\(comment): \(note) has failed", sourceLocation: location)
            }
        }
    }

    /// Holds the client to the rules of the conduct report, and reports the visit.
    ///
    /// Not to `downloadedTwice`, which other tests hold it to: while the newest post is known from the change feed alone, the feed is read
    /// without its validator, because a 304 would keep a post that the server no longer has.
    func expectGoodConduct(
        _ row: String,
        _ comment: String,
        except exceptions: Set<ConductReport.Rule> = [],
        at location: SourceLocation = #_sourceLocation
    ) async {
        let unjudged = exceptions.union([.downloadedTwice])
        report(row, await visit.world.expectGoodConduct(except: unjudged, comment, at: location))
    }

    /// Prints what the journal says about the visit, if the environment asks for it: `LARDER_CONDUCT_REPORT=1`.
    private func report(_ name: String, _ report: ConductReport) {
        guard ProcessInfo.processInfo.environment["LARDER_CONDUCT_REPORT"] != nil else { return }
        let columns = [
            name, "\(report.exchanges)", "\(report.full)", "\(report.notModified)", "\(report.clientErrors)",
            "\(report.serverErrors)", "\(report.unanswered)", "\(report.bytesSent)", "\(report.bytesSaved)",
            "\(report.findings.count)",
        ]
        print("conduct | " + columns.joined(separator: " | ") + " |")
    }
}
