import Larder
import LarderServer
import LarderTesting

/// A backend with some thousand posts, and clients of it.
final class Stage {
    let backend: MockBackend
    let directory: String

    init(_ directory: String) throws {
        var numbers = WorldNumbers()
        numbers.seed = 1
        numbers.people = 50
        numbers.posts = 2_000
        backend = try MockBackend.start(.generated(numbers, picturesFrom: nil))
        self.directory = directory
    }

    /// A client of Ana's that follows nothing by itself.
    func client(_ account: String) async throws -> LarderClient {
        var configuration = LarderClient.Configuration()
        configuration.followsLive = false
        let client = try await LarderClient(
            server: backend.url,
            account: account,
            directory: directory,
            configuration
        )
        if client.session.state == .signedOut { try await client.signIn(handle: "ana", password: "larder") }
        return client
    }

    /// How often something was asked for.
    func count(_ method: String, _ path: String) async -> Int {
        await backend.main.journal(JournalFilter(method, path)).count
    }
}
