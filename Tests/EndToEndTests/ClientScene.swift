import Foundation
import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Testing

/// A world of its own on a backend that all suites share, and clients of it whose directories are gone when the test is.
final class ClientScene: Sendable {
    private static let shared: Result<MockBackend, any Error> = Result { try MockBackend.startSmall() }

    let world: MockWorld
    let clock = ManualClock()
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        .path

    /// - Parameter seed: what the world's chance is drawn from; its own if nothing is said.
    init(seed: UInt64? = nil) throws { world = try Self.shared.get().makeWorld(seed: seed) }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
        try? world.destroy()
    }

    /// A client of a person's, on a device; the same device again is the same after a restart.
    func client(
        _ handle: String = "ana",
        device: String = "phone",
        live kinds: [LiveKind] = [],
        isOnline: @escaping @Sendable () -> Bool = { true },
        onEvent: @escaping @Sendable (CacheEvent) -> Void = { _ in },
        store: DiskStore? = nil,
        upkeep: LarderClient.Upkeep = .none,
        transport: any Transport = SocketTransport(clock: ManualClock())
    ) async throws -> LarderClient {
        var configuration = LarderClient.Configuration(
            transport: NamedTransport(device: "\(handle) \(device)", transport: transport)
        )
        configuration.cache.store = store
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.cache.sleeper = clock
        configuration.cache.random = { 0 }
        configuration.cache.mayUseNetwork = isOnline
        configuration.cache.onEvent = onEvent
        configuration.upkeep = upkeep
        configuration.followsLive = !kinds.isEmpty
        configuration.liveKinds = kinds
        let client = try await LarderClient(
            server: world.url,
            account: "\(handle) \(device)",
            directory: directory,
            configuration
        )
        if client.session.state == .signedOut {
            if isOnline() {
                try await client.signIn(handle: handle, password: "larder")
            }
        }
        return client
    }

    /// What a person is called.
    func handle(_ id: String) throws -> String {
        let reply = world.perform(PhantomAct("GET", "/v1/profiles/\(id)", as: nil))
        return try JSONDecoder().decode(Profile.self, from: Data(reply.body)).handle
    }

    /// Has a person change their own profile, on another device.
    @discardableResult
    func edit(as handle: String, _ patch: String) -> Int {
        var act = PhantomAct("PATCH", "/v1/me", as: handle, body: patch)
        act.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        return world.perform(act).status
    }

    func files(of handle: String, device: String = "phone") -> Bool {
        FileManager.default.fileExists(
            atPath: DiskStore.directory(forAccount: "\(handle) \(device)", in: directory)
        )
    }

    /// How often something was asked for.
    func count(_ method: String, _ path: String, status: String? = nil) async -> Int {
        await world.journal(JournalFilter(method, path, status: status)).count
    }
}
