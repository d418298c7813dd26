import Foundation
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import Larder

/// A world of its own on a backend that all suites share, and clients with temporary directories.
final class ClientScene: Sendable {
    private static let shared: Result<MockBackend, any Error> = Result {
        try Listeners.share { try MockBackend.startSmall() }
    }

    let world: MockWorld
    let clock = ManualClock()
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        .path

    /// - Parameter seed: the seed of the world; nil: its default.
    init(seed: UInt64? = nil) throws {
        let backend = try Self.shared.get()
        world = try backend.makeWorld(seed: seed)
        AloneWithinTime.atEnd { #expect(await backend.activity() == []) }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
        try? world.destroy()
    }

    /// A client of a user on a device. A second client of the same device is the app after a restart.
    func client(
        _ handle: String = "ana",
        device: String = "phone",
        live kinds: [LiveSync.Kind] = [],
        isOnline: @escaping @Sendable () -> Bool = { true },
        onEvent: @escaping @Sendable (CacheEvent) -> Void = { _ in },
        store: DiskStore? = nil,
        services: APIClient.Services = .none,
        transport: any Transport = SocketTransport(clock: ManualClock())
    ) async throws -> LarderClient {
        var configuration = LarderClient.Configuration(
            transport: NamedTransport(device: "\(handle) \(device)", transport: transport)
        )
        configuration.webSockets = SocketTransport(clock: ManualClock()).webSockets()
        if let store { configuration.cache.storage = .store(store) }
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.cache.random = { 0 }
        configuration.cache.mayUseNetwork = isOnline
        configuration.cache.onEvent = onEvent
        configuration.services = services
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

    /// The handle of a user.
    func handle(_ id: String) throws -> String {
        let reply = world.perform(ScriptedAction("GET", "/v1/profiles/\(id)", as: nil))
        return try JSONDecoder().decode(Profile.self, from: Data(reply.body)).handle
    }

    /// Edits the profile of a user from another device.
    @discardableResult
    func edit(as handle: String, _ patch: String) -> Int {
        var act = ScriptedAction("PATCH", "/v1/me", as: handle, body: patch)
        act.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        return world.perform(act).status
    }

    func files(of handle: String, device: String = "phone") -> Bool {
        FileManager.default.fileExists(
            atPath: DiskStore.directory(forAccount: "\(handle) \(device)", in: directory)
        )
    }

    /// The number of requests that match.
    func count(_ method: String, _ path: String, status: String? = nil) async -> Int {
        await world.journal(JournalFilter(method, path, status: status)).count
    }
}
