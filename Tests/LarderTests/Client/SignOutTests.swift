import FileFaults
import LarderImages
import LarderResources
import LarderSQLite
import LarderStorage
import LarderTesting
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Signing out", .oneMinute)
struct SignOutTests {
    private let directory = StoreDirectory()
    private let scene = CacheScene()

    @Test func `an operation during a sign-out is rejected, and one before it is erased`() async throws {
        let rejected = Mutex<[ErrorCode<LarderError>]>([])
        let client = Mutex<APIClient?>(nil)
        let operation = WriteBehind<String, Bool>("send", scope: { $0 }, changes: { _, _ in }) { attempts in
            attempts.map { _ in .retry(LarderError(.offline, "no network")) }
        }
        let order = WriteThrough<String, Bool>("order", scope: { $0 }) { _ in .accepted(true) }
        var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
        configuration.cache = scene.configuration()
        configuration.cache.storage = .memory
        configuration.cache.operations = [operation, order]
        configuration.services = .none
        configuration.session = BearerSession.Endpoints(
            renew: { _, _ throws(LarderError) in throw LarderError(.unauthorized, "") },
            endsSession: { _ in true },
            revoke: { _, _ throws(LarderError) in
                guard let cache = client.withLock({ $0?.cache }) else { return }
                do { try cache.enqueue("late", operation) } catch {
                    rejected.withLock { $0.append(LarderError(error).code) }
                }
                do { _ = try await cache.commit("late", order) } catch {
                    rejected.withLock { $0.append(LarderError(error).code) }
                }
            }
        )
        let opened = try await APIClient(
            server: "http://server",
            account: "ana",
            directory: directory.path,
            configuration
        )
        client.withLock { $0 = opened }
        try await opened.session.use(token: "t", userID: "ana")
        try opened.cache.enqueue("before", operation)
        try await opened.signOut()
        #expect(rejected.withLock { $0 } == [.closed, .closed])
        #expect(directory.files == [])
        client.withLock { $0 = nil }
    }

    @Test(arguments: ["sign-out", "close", "release"])
    func `no picture is loaded after a sign-out or the end of the client`(end: String) async throws {
        let gate = TransportGate()
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            try await gate.pass()
            return .text("")
        }
        var configuration = APIClient.Configuration(transport: transport)
        configuration.cache = scene.configuration()
        configuration.cache.storage = .memory
        configuration.services = .none
        var client: APIClient? = try await APIClient(
            server: "http://server",
            account: "ana",
            directory: directory.path,
            configuration
        )
        let images = try #require(client?.images)
        let requests = ImageRequest.Priority.allCases.map { priority in
            images.task(for: ImageRequest(url: "http://server/\(priority)", priority: priority))
        }
        switch end {
        case "sign-out": try await client?.signOut()
        case "close": client?.close()
        default: client = nil
        }
        #expect(images.workload == (0, 0))
        gate.open()
        for request in requests { await #expect(throws: ImageError.self) { try await request.image } }
        let count = transport.requests.count
        await #expect(throws: ImageError.self) {
            try await images.image(for: ImageRequest(url: "http://server/late"))
        }
        #expect(transport.requests.count == count)
        client = nil
    }

    @Test func `a repeated sign-out is the same one, and erases nothing of the next client`() async throws {
        let gate = TransportGate()
        let revocations = Mutex(0)
        let operation = WriteBehind<String, Bool>("send", scope: { $0 }, changes: { _, _ in }) { attempts in
            attempts.map { _ in .retry(LarderError(.offline, "no network")) }
        }
        var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
        configuration.cache = scene.configuration()
        configuration.cache.storage = .memory
        configuration.cache.operations = [operation]
        configuration.services = .none
        configuration.session = BearerSession.Endpoints(
            renew: { _, _ throws(LarderError) in throw LarderError(.unauthorized, "") },
            endsSession: { _ in true },
            revoke: { _, _ throws(LarderError) in
                revocations.withLock { $0 += 1 }
                do { try await gate.pass() } catch { throw LarderError(error) }
            }
        )
        func open() async throws -> APIClient {
            try await APIClient(server: "http://server", account: "ana", directory: directory.path, configuration)
        }
        let client = try await open()
        try await client.session.use(token: "t", userID: "ana")
        async let first: Void = client.signOut()
        async let second: Void = client.signOut()
        gate.open()
        _ = try await (first, second)
        #expect(revocations.withLock { $0 } == 1)
        let next = try await open()
        try next.cache.enqueue("kept", operation)
        let files = Set(directory.files)
        try await client.signOut()
        #expect(!files.isEmpty && files.isSubset(of: directory.files))
        next.close()
    }

    @Test func `after a sign-out elsewhere a client neither changes nor erases what the next user has stored`()
        async throws
    {
        func open() async throws -> APIClient {
            var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
            configuration.cache = scene.configuration()
            configuration.cache.storage = .memory
            configuration.services = .none
            return try await APIClient(
                server: "http://server",
                account: "ana",
                directory: directory.path,
                configuration
            )
        }
        let word = Resource<String>("word") { _ in .gone }
        // Changes wait in the outbox.
        scene.isOnline.withLock { $0 = false }
        let unaware = try await open()
        try await unaware.session.use(token: "t-ana", userID: "ana")
        try await open().signOut()
        let next = try await open()
        try await next.session.use(token: "t-ben", userID: "ben")
        try next.write(.put, "/articles/7/star")
        let rejected = #expect(throws: LarderError.self) { try unaware.write(.put, "/articles/8/star") }
        #expect(rejected?.code == .storage)
        try? await unaware.cache.put("of ana", for: word)
        try await unaware.signOut()
        next.close()
        let last = try await open()
        #expect(last.session.userID == "ben" && last.cache.outbox.entries.count == 1)
        #expect(last.cache.stored(word) == nil)
        last.close()
    }

    @Test func `a sign-out that a failing disk has interrupted goes on at the next start`() async throws {
        let operation = WriteBehind<String, Bool>("send", scope: { $0 }, changes: { _, _ in }) { attempts in
            attempts.map { _ in .retry(LarderError(.offline, "no network")) }
        }
        func open(_ directory: StoreDirectory, _ faults: FaultPlan?) async throws -> APIClient {
            var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
            configuration.cache = scene.configuration()
            var disk = DiskStore.Configuration(directory: directory.path)
            disk.faults = faults
            configuration.cache.storage = .disk(disk)
            configuration.cache.operations = [operation]
            configuration.services = .none
            return try await APIClient(server: "http://server", account: "ana", directory: "/unused", configuration)
        }
        let word = Resource<String>("word") { _ in .gone }
        // The outbox sends nothing: its writes would count as steps.
        scene.isOnline.withLock { $0 = false }
        var interruptions = 0
        // The first three steps store the mark that the sign-out has begun.
        for step in 4...60 {
            let directory = StoreDirectory()
            let faults = FaultPlan()
            let client = try await open(directory, faults)
            try await client.session.use(token: "t", userID: "ana")
            try await client.cache.put("secret", for: word)
            try client.cache.enqueue("before", operation)
            faults.arm(.failOn(.inputOutput), atStep: step)
            do {
                try await client.signOut()
                break
            } catch {
                #expect(error.code == .storage, "step \(step): \(error)")
                interruptions += 1
            }
            let next = try await open(directory, nil)
            #expect(next.session.state == .signedOut, "step \(step)")
            #expect(next.cache.stored(word) == nil, "step \(step)")
            #expect(next.cache.outbox.entries.isEmpty, "step \(step)")
            try await next.session.use(token: "u", userID: "ben")
            // It has ended, and does not begin again.
            try await next.cache.put("new", for: word)
            next.close()
            let last = try await open(directory, nil)
            #expect(last.cache.stored(word)?.value == "new" && last.session.userID == "ben", "step \(step)")
            last.close()
        }
        #expect(interruptions > 3)
    }
}
