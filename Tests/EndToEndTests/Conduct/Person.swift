import Foundation
import Larder
import LarderModels
import LarderResources
import LarderServer
import LarderTime
import Synchronization
import Testing

@testable import LarderDemo

/// A person who uses the demo client, and what they have done.
final class Person: Sendable {
    enum Outcome: Equatable {
        case confirmed
        case unknown
        case failed
    }

    struct Deeds {
        var likes: [String: Bool] = [:]
        var messages: [String] = []
        /// What the client has said about each transfer, by its note.
        var transfers: [String: Outcome] = [:]
        var bio: String?
        /// Errors by kind, for the reader of a failure.
        var errors: [String: Int] = [:]
    }

    /// What the person looks at.
    struct Places {
        let me: String
        let other: String
        let conversation: String
        let from: Account
        let to: Account
    }

    let visit: Visit
    let places: Places
    private let present: Mutex<LarderClient>
    private let deeds = Mutex(Deeds())

    var client: LarderClient { present.withLock { $0 } }
    var done: Deeds { deeds.withLock { $0 } }

    private init(_ visit: Visit, _ client: LarderClient, _ places: Places) {
        self.visit = visit
        self.places = places
        present = Mutex(client)
    }

    /// Signs in and looks at everything once over a good network; then the app is closed.
    ///
    /// The change feed is followed from here on: what is read before it is followed grows old without notice.
    static func arrive(_ visit: Visit) async throws -> Person {
        let client = try await visit.client(live: [.longPoll])
        let failure = Mutex<(any Error)?>(nil)
        await visit.perform {
            do { try await client.signIn(handle: "ana", password: "larder") } catch {
                failure.withLock { $0 = error }
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
        let person = Person(visit, client, try places(visit, try #require(client.session.userID)))
        await person.openFeed()
        await person.openConversation()
        await person.openProfile(person.places.me)
        await visit.pass(.seconds(30))
        #expect(client.sync.status.isCaughtUp)
        client.close()
        return person
    }

    /// Starts the app again.
    func restart(live kinds: [LiveSync.Kind]) async throws {
        client.close()
        // The server ends the long poll of the closed client by then.
        await visit.pass(.seconds(30))
        let client = try await visit.client(live: kinds)
        present.withLock { $0 = client }
    }

    private static func places(_ visit: Visit, _ me: String) throws -> Places {
        let world = visit.world
        let conversations: [Conversation] = try world.list("/v1/conversations", as: "ana")
        let conversation = try #require(conversations.first { $0.memberIDs.contains { $0 != me } })
        let partner = try #require(conversation.memberIDs.first { $0 != me })
        let (from, to) = try world.accounts(of: "ana")
        return Places(
            me: me,
            other: try world.handle(partner),
            conversation: conversation.id,
            from: from,
            to: to
        )
    }

    // MARK: Acts

    /// Does something; false if it has failed.
    @discardableResult
    private func attempt(
        _ what: String,
        _ act: @escaping @Sendable (LarderClient) async throws -> Void
    ) async -> Bool {
        let client = client
        let isDone = CallCount()
        await visit.perform { [self] in
            do {
                try await act(client)
                isDone.add()
            } catch {
                let code = (error as? LarderError)?.code.rawValue ?? "\(type(of: error))"
                deeds.withLock { $0.errors["\(what): \(code)", default: 0] += 1 }
            }
        }
        return isDone.count > 0
    }

    func openFeed() async {
        await attempt("feed") { _ = try await $0.feed.timeline.snapshot() }
    }

    func scroll() async { await attempt("scroll") { _ = try await $0.feed.timeline.loadOlder() } }

    func pull() async { await attempt("pull") { try await $0.feed.timeline.refresh() } }

    func openProfile(_ id: String) async { await attempt("profile") { _ = try await $0.profiles.profile(id) } }

    func openConversation() async {
        let id = places.conversation
        await attempt("conversations") { _ = try await $0.cache.snapshot($0.chat.conversations) }
        await attempt("messages") { _ = try await $0.chat.timeline(id).snapshot() }
    }

    func openBank() async {
        let account = places.from.id
        await attempt("accounts") { _ = try await $0.cache.snapshot($0.bank.accounts) }
        await attempt("transactions") { _ = try await $0.cache.snapshot($0.bank.transactions(account)) }
    }

    /// Looks at the pictures of the first posts.
    func lookAtPictures() async {
        guard let posts = client.cache.stored(client.feed.newest)?.value?.items else { return }
        for image in posts.prefix(8).compactMap(\.image).prefix(3) {
            await attempt("picture") { _ = try await $0.images.image(for: $0.imageRequest(for: image, width: 320)) }
        }
    }

    /// Taps the hearts of the posts on the screen, one of them twice.
    func like() async {
        guard let posts = client.cache.stored(client.feed.newest)?.value?.items, !posts.isEmpty else { return }
        let first = visit.number(in: 0..<posts.count)
        for index in [first, first, visit.number(in: 0..<posts.count), visit.number(in: 0..<posts.count)] {
            let post = posts[index]
            let isLike = !(done.likes[post.id] ?? post.likedByMe)
            await attempt("like") { [self] client in
                try client.likes.set(isLike, post.id)
                deeds.withLock { $0.likes[post.id] = isLike }
            }
        }
    }

    func write() async {
        let id = places.conversation
        for _ in 0..<2 {
            let text = "message \(done.messages.count) of seed \(visit.seed)"
            await attempt("message") { [self] client in
                try client.chat.send(text, to: id)
                deeds.withLock { $0.messages.append(text) }
            }
        }
    }

    func pay() async {
        let note = "transfer \(done.transfers.count) of seed \(visit.seed)"
        let amount = Money(minorUnits: 101, currency: places.from.balance.currency)
        let order = Bank.TransferOrder(from: places.from.id, to: places.to.id, amount, note: note)
        // Until the client has answered, nobody knows.
        deeds.withLock { $0.transfers[note] = .unknown }
        await attempt("transfer") { [self] client in
            do {
                _ = try await client.bank.transfer(order, given: client.bank.validatedAccounts())
                deeds.withLock { $0.transfers[note] = .confirmed }
            } catch {
                if (error as? LarderError)?.code != .inDoubt { deeds.withLock { $0.transfers[note] = .failed } }
                throw error
            }
        }
    }

    func editProfile() async {
        let (id, bio) = (places.me, "bio \(visit.number(in: 0..<1_000)) of seed \(visit.seed)")
        await attempt("edit") { [self] client in
            do { try await client.profiles.edit(id) { $0.bio = bio } } catch {
                guard let conflict = (error as? LarderError)?.cause as? Outbox.EditConflict<Profile> else {
                    throw error
                }
                let merged = try conflict.merged(preferringMine: true).value
                _ = try await client.profiles.save(base: conflict.theirs, mine: merged, ifMatch: conflict.validator)
            }
            deeds.withLock { $0.bio = bio }
        }
    }

    // MARK: A visit

    private typealias Act = @Sendable (Person) async -> Void

    private static let round: [Act] = [
        { await $0.openFeed() }, { await $0.lookAtPictures() }, { await $0.scroll() }, { await $0.like() },
        { await $0.openProfile("user_2") }, { await $0.openConversation() }, { await $0.write() },
        { await $0.openBank() }, { await $0.pay() }, { await $0.pull() }, { await $0.like() },
        { await $0.editProfile() }, { await $0.openProfile("user_2") }, { await $0.write() }, { await $0.pull() },
        { await $0.scroll() },
    ]

    /// Uses the app, while another device writes. The person thinks for up to ten seconds between two acts.
    func use(rounds: Int, between: (Int) async throws -> Void = { _ in }) async throws {
        var step = 0
        for _ in 0..<rounds {
            for act in Self.round {
                try visit.world.otherDeviceActs(step, places)
                await act(self)
                await visit.pass(.milliseconds(500 + visit.number(in: 0..<9_500)))
                try await between(step)
                step += 1
            }
        }
    }

    /// Opens the posts with these identifiers.
    func openPosts(_ ids: [String]) async {
        for id in ids { await attempt("post") { _ = try await $0.cache.snapshot($0.feed.post(id)) } }
        await visit.pass(.seconds(5))
    }

    /// Opens every screen to its end.
    func openEverything() async throws {
        await openFeed()
        await pull()
        for _ in 0..<10 { await scroll() }
        for number in 1...12 { await openProfile("user_\(number)") }
        await openConversation()
        let conversations = client.cache.stored(client.chat.conversations)?.value?.items ?? []
        for conversation in conversations {
            await attempt("messages") { _ = try await $0.chat.timeline(conversation.id).snapshot() }
            for _ in 0..<4 {
                await attempt("older") { _ = try await $0.chat.timeline(conversation.id).loadOlder() }
            }
        }
        await openBank()
        // What was shown at once is refreshed afterwards.
        await visit.pass(.seconds(5))
    }
}

extension MockWorld {
    /// Performs a request, in the next minute if the rate limit of its user is reached.
    private func performWithinLimit(_ action: ScriptedAction) -> (status: Int, body: [UInt8]) {
        let reply = perform(action)
        guard reply.status == 429 else { return reply }
        clock.advance(by: .seconds(61))
        return perform(action)
    }

    /// The server's list, read page by page without a client.
    func list<Item: Codable & Sendable & Hashable>(_ path: String, as handle: String, of type: Item.Type = Item.self)
        throws -> [Item]
    {
        var items: [Item] = []
        var query = "?limit=100"
        while true {
            let reply = performWithinLimit(ScriptedAction("GET", path + query, as: handle))
            try #require(reply.status == 200, "\(path)\(query): \(reply.status)")
            let page = try JSONDecoder().decode(Page<Item>.self, from: Data(reply.body))
            items += page.items
            guard let next = page.nextCursor else { return items }
            query = "?limit=100&after=\(HTTPSource.escape(next))"
        }
    }

    func handle(_ user: String) throws -> String {
        let reply = performWithinLimit(ScriptedAction("GET", "/v1/profiles/\(user)", as: nil))
        try #require(reply.status == 200, "\(user): \(reply.status)")
        return try JSONDecoder().decode(Profile.self, from: Data(reply.body)).handle
    }

    /// An open account with money, and one of somebody else in its currency.
    func accounts(of handle: String) throws -> (from: Account, to: Account) {
        let mine: [Account] = try list("/v1/accounts", as: handle)
        for number in 2...12 {
            let theirs: [Account] = try list("/v1/accounts", as: try self.handle("user_\(number)"))
            for from in mine where from.status == "open" && from.balance.minorUnits > 10_000 {
                let to = theirs.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        throw LarderError(.notCached, "No two accounts of this world have one currency.")
    }

    private func write(_ method: String, _ path: String, as handle: String, _ body: String? = nil) {
        let status = performWithinLimit(ScriptedAction(method, path, as: handle, body: body)).status
        #expect((200..<300).contains(status), "\(method) \(path) as \(handle): \(status)")
    }

    /// What other people and the person's other device do.
    func otherDeviceActs(_ step: Int, _ places: Person.Places) throws {
        let other = places.other
        let posts: [Post] = try list("/v1/feed", as: other)
        switch step % 6 {
        case 0: write("POST", "/v1/posts", as: other, "{\"text\":\"news \(step)\"}")
        case 1:
            let path = "/v1/conversations/\(places.conversation)/messages"
            write("POST", path, as: other, "{\"text\":\"answer \(step)\",\"clientId\":\"other-\(step)\"}")
        case 2: write("PUT", "/v1/posts/\(posts[step % 10].id)/like", as: other)
        case 3: write("PATCH", "/v1/me", as: "ana", "{\"location\":\"place \(step)\"}")
        case 4:
            guard let mine = posts.last(where: { $0.text.hasPrefix("news") }) else { return }
            write("PATCH", "/v1/posts/\(mine.id)", as: other, "{\"text\":\"news, edited in step \(step)\"}")
        default:
            guard let mine = posts.last(where: { $0.text.hasPrefix("news") }) else { return }
            write("DELETE", "/v1/posts/\(mine.id)", as: other)
        }
    }
}
