import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer
import Synchronization

/// What the person's client can do.
protocol TourVisitor: Sendable {
    func openFeed() async throws
    func openProfile() async throws
    func like(_ post: String) async throws
    func write(_ text: String, to conversation: String) async throws
    func pay(_ order: Bank.TransferOrder) async throws
    /// Closes the app and starts it again.
    func restart() async throws
    /// Waits until what was promised is done.
    func settle() async throws
    func close()
}

/// The person with Larder.
final class LarderVisitor: TourVisitor {
    private let scene: TourScene
    private let world: MockWorld
    private let present: Mutex<LarderClient>

    init(_ scene: TourScene, _ world: MockWorld, _ client: LarderClient) {
        (self.scene, self.world) = (scene, world)
        present = Mutex(client)
    }

    private var client: LarderClient { present.withLock { $0 } }

    func openFeed() async throws {
        let client = client
        guard try await client.cache.snapshot(client.feed.newest).value != nil else {
            throw Failure("No feed was shown.")
        }
    }

    func openProfile() async throws {
        guard try await client.profiles.profile("user_3").value != nil else { throw Failure("No profile was shown.") }
    }

    func like(_ post: String) async throws { try client.likes.set(true, post) }

    func write(_ text: String, to conversation: String) async throws { try client.chat.send(text, to: conversation) }

    func pay(_ order: Bank.TransferOrder) async throws {
        let bank = client.bank
        _ = try await bank.transfer(order, given: bank.validatedAccounts())
    }

    func restart() async throws {
        client.close()
        let next = try await scene.client(world)
        present.withLock { $0 = next }
    }

    func settle() async throws { try await client.cache.outbox.drain(within: .seconds(30)) }

    func close() { client.close() }
}

extension PlainClient: TourVisitor {
    func openFeed() async throws { _ = try await get("/v1/feed?limit=50", as: Page<Post>.self) }

    func openProfile() async throws { _ = try await get("/v1/profiles/user_3", as: Profile.self) }

    func like(_ post: String) async throws { try await send("PUT", "/v1/posts/\(post)/like") }

    func write(_ text: String, to conversation: String) async throws {
        try await send("POST", "/v1/conversations/\(conversation)/messages") {
            "{\"text\":\"\(text)\",\"clientId\":\"\(UUID().uuidString)\"}"
        }
    }

    func pay(_ order: Bank.TransferOrder) async throws {
        let body = String(decoding: try JSONEncoder().encode(order), as: UTF8.self)
        try await send("POST", "/v1/transfers", { body }, key: true)
    }

    func restart() async throws { forget() }

    func settle() async throws {}

    func close() {}
}
