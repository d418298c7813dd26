import Larder
import LarderDemo
import LarderServer

/// A backend with 2,000 posts, and clients of it.
final class Stage {
    let backend: MockBackend
    let directory: String

    init(_ directory: String) throws {
        var numbers = WorldSize()
        numbers.seed = 1
        numbers.people = 50
        numbers.posts = 2_000
        backend = try MockBackend.start(.generated(numbers, picturesFrom: nil))
        self.directory = directory
    }

    /// A client of Ana without live updates.
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

    /// The number of requests to a path.
    func count(_ method: String, _ path: String) async -> Int {
        await backend.main.journal(JournalFilter(method, path)).count
    }
}
