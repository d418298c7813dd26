import Foundation
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Session: places of tokens", .oneMinute)
struct SecretStoreTests {
    /// A keychain of an app.
    private final class Keychain: SecretStore {
        let values = Mutex<[String: [UInt8]]>([:])
        let isLocked = Mutex(false)

        private func check() throws(LarderError) {
            guard isLocked.withLock({ $0 }) else { return }
            throw LarderError(.storage, "The keychain is locked. Unlock it.")
        }

        func load(_ name: String) async throws(LarderError) -> [UInt8]? {
            try check()
            return values.withLock { $0[name] }
        }

        func save(_ secret: [UInt8], as name: String) async throws(LarderError) {
            try check()
            values.withLock { $0[name] = secret }
        }

        func delete(_ name: String) async throws(LarderError) {
            try check()
            values.withLock { $0[name] = nil }
        }
    }

    private struct Mask: DiskStore.PayloadTransform {
        let byte: UInt8
        var identifier: String { "mask" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { payload.map { $0 ^ byte } }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ byte } }
    }

    private let scene = CacheScene()
    private let keychain = Keychain()

    private func session(
        _ secrets: (any SecretStore)? = nil,
        _ cache: LarderCache? = nil
    ) async throws -> BearerSession {
        try await BearerSession(
            try cache ?? scene.cache(),
            HTTPSource("http://server", transport: ScriptedTransport { _, _ in .text("") }),
            .none,
            secrets: secrets
        )
    }

    /// A keychain that is slow from the second write on.
    private final class HeldKeychain: SecretStore {
        let keychain = Keychain()
        let isSaving = Pending<Bool>()
        let mayEnd = Pending<Bool>()

        func load(_ name: String) async throws(LarderError) -> [UInt8]? { try await keychain.load(name) }

        func save(_ secret: [UInt8], as name: String) async throws(LarderError) {
            if try await keychain.load(name) != nil {
                isSaving.finish(true)
                _ = await mayEnd.value(ifCancelled: false)
            }
            try await keychain.save(secret, as: name)
        }

        func delete(_ name: String) async throws(LarderError) { try await keychain.delete(name) }
    }

    @Test func `a sign-in that is being stored while the account is erased leaves no tokens`() async throws {
        let held = HeldKeychain()
        let session = try await session(held)
        try await session.use(token: "a", userID: "ana")
        let signingIn = Task { try await session.use(token: "b", userID: "ana") }
        _ = await held.isSaving.value(ifCancelled: false)
        let states = SequenceRecorder(session.states)
        let leaving = Task { await session.forget(isFinal: true).failure }
        await states.wait { $0.last == .signedOut }
        held.mayEnd.finish(true)
        await #expect { try await signingIn.value } throws: { ($0 as? LarderError)?.code == .closed }
        #expect(await leaving.value == nil)
        #expect(held.keychain.values.withLock { $0.isEmpty } && session.state == .signedOut)
    }

    private var file: String { scene.outboxPath + "/store.secret-session" }

    @Test func `the key of the storage is made once, kept in the store, and never replaced`() async throws {
        let made = try await DiskStore.EncryptingTransform.key(in: keychain, forDataIn: scene.path)
        #expect(made.count == 32)
        #expect(keychain.values.withLock { $0["storage-key"] } == made)
        #expect(try await DiskStore.EncryptingTransform.key(in: keychain, forDataIn: scene.path) == made)
        keychain.values.withLock { $0["storage-key"] = [1] }
        await #expect(throws: LarderError.self) {
            try await DiskStore.EncryptingTransform.key(in: keychain, forDataIn: scene.path)
        }
        #expect(keychain.values.withLock { $0["storage-key"] } == [1])
        keychain.isLocked.withLock { $0 = true }
        await #expect(throws: LarderError.self) {
            try await DiskStore.EncryptingTransform.key(in: keychain, forDataIn: scene.path)
        }
    }

    /// A keychain whose first two callers find nothing, because they have asked at the same time.
    private actor SlowKeychain: SecretStore {
        private var value: [UInt8]?
        private(set) var savedCount = 0

        func load(_ name: String) async throws(LarderError) -> [UInt8]? {
            let found = value
            // The other one has asked when nothing else goes on.
            await rest()
            return found
        }

        func save(_ secret: [UInt8], as name: String) async throws(LarderError) {
            value = secret
            savedCount += 1
        }

        func delete(_ name: String) async throws(LarderError) { value = nil }
    }

    @Test func `two first starts at the same time get the same key`() async throws {
        let slow = SlowKeychain()
        async let first = DiskStore.EncryptingTransform.key(in: slow, forDataIn: scene.path)
        async let second = DiskStore.EncryptingTransform.key(in: slow, forDataIn: scene.path)
        let keys = try await [first, second]
        #expect(keys[0] == keys[1])
        #expect(await slow.savedCount == 1)
    }

    @Test func `tokens are in a file that its owner alone can read, in no other file, and leave with the sign-out`()
        async throws
    {
        let session = try await session()
        try await session.use(token: "secret-token", userID: "ana")
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let names = try FileManager.default.subpathsOfDirectory(atPath: scene.path).filter { name in
            FileManager.default.contents(atPath: "\(scene.path)/\(name)")?.range(of: Data("secret-token".utf8)) != nil
        }
        #expect(names == ["outbox/store.secret-session"])
        #expect(try await self.session().state == .signedIn(userID: "ana"))
        await session.signOut()
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(try await self.session().state == .signedOut)
    }

    @Test func `a sign-out whose task is cancelled deletes the tokens`() async throws {
        let session = try await session()
        try await session.use(token: "secret-token", userID: "ana")
        let gate = TransportGate()
        let leaving = Task {
            // The cancelled task does not pass.
            try? await gate.pass()
            await session.signOut()
        }
        leaving.cancel()
        gate.open()
        await leaving.value
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `an app's own place is used instead, also without a directory`() async throws {
        let cache = try scene.cache(inMemory: true)
        let session = try await session(keychain, cache)
        try await session.use(token: "secret-token", userID: "ana")
        #expect(keychain.values.withLock { Array($0.keys) } == ["session"])
        #expect(try await self.session(keychain, cache).state == .signedIn(userID: "ana"))
        await session.signOut()
        #expect(keychain.values.withLock { $0.isEmpty })
    }

    @Test func `a place that cannot be read fails the start, and one that cannot be written fails the sign-in`()
        async throws
    {
        let session = try await session(keychain)
        keychain.isLocked.withLock { $0 = true }
        let unread = await #expect(throws: LarderError.self) { try await self.session(keychain) }
        #expect(unread?.code == .storage)
        let unsaved = await #expect(throws: LarderError.self) { try await session.use(token: "a", userID: "ana") }
        #expect(unsaved?.code == .storage && session.state == .signedOut)
        // A deletion that failed is reported.
        keychain.isLocked.withLock { $0 = false }
        try await session.use(token: "a", userID: "ana")
        keychain.isLocked.withLock { $0 = true }
        await session.signOut()
        #expect(session.state == .signedOut)
        let reports = scene.events.withLock { $0.count { if case .storageFailed = $0 { true } else { false } } }
        #expect(reports == 1)
    }

    private func cache(_ byte: UInt8) throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.editStore { $0.transform = Mask(byte: byte) }
        return try LarderCache(configuration)
    }

    @Test func `with another key nobody signs in while a change waits for its key, and none is sent`() async throws {
        let operation = WriteBehind<String, Bool>("send", scope: { $0 }, changes: { _, _ in }) { attempts in
            attempts.map { _ in .retry(LarderError(.offline, "no network")) }
        }
        let first = try cache(1)
        try await session(nil, first).use(token: "secret-token", userID: "ana")
        try first.enqueue("waits", operation)
        first.close()
        let second = try cache(2)
        let other = try await session(nil, second)
        let error = await #expect(throws: LarderError.self) { try await other.use(token: "other", userID: "ben") }
        #expect(error?.code == .storage && other.state == .signedOut)
        let unsent = await #expect(throws: LarderError.self) { try await other.requireUser() }
        #expect(unsent?.code == .unauthorized)
        second.close()
        #expect(try await session(nil, try cache(1)).userID == "ana")
    }

    @Test func `with another key the session is reported as unreadable, and a sign-in replaces it`() async throws {
        let first = try cache(1)
        try await session(nil, first).use(token: "secret-token", userID: "ana")
        first.close()
        let second = try await session(nil, try cache(2))
        #expect(second.state == .signedOut)
        let reports = scene.events.withLock { events in
            events.compactMap { if case .storageFailed(let error) = $0 { error.code } else { nil } }
        }
        #expect(reports == [.storage])
        try await second.use(token: "other", userID: "ben")
        #expect(try await session(nil, try cache(2)).state == .signedIn(userID: "ben"))
    }

    @Test func `the tokens of the next user of the account are not used in place of those of the one before`()
        async throws
    {
        let session = try await session(keychain, try scene.cache(inMemory: true))
        try await session.use(token: "a", userID: "ana")
        // Another process signs out, and another user signs in there.
        keychain.values.withLock { $0 = [:] }
        try await self.session(keychain, try scene.cache(inMemory: true)).use(token: "b", userID: "ben")
        var request = TransportRequest(url: "http://server/me")
        try await session.authorize(&request)
        let rejected = request
        let error = await #expect(throws: LarderError.self) { try await session.renew(after: rejected) }
        #expect(error?.code == .closed && session.userID == "ana")
    }

    @Test func `a renewal saves no tokens after a sign-out in another process`() async throws {
        let grant = { @Sendable (access: String) in
            BearerSession.Grant(accessToken: access, refreshToken: "r", userID: "ana", lifetime: .seconds(60))
        }
        let endpoints = BearerSession.Endpoints(
            renew: { _, _ throws(LarderError) in grant("2") },
            endsSession: { _ in false }
        )
        func session(_ cache: LarderCache) async throws -> BearerSession {
            let source = HTTPSource("http://server", transport: ScriptedTransport { _, _ in .text("") })
            return try await BearerSession(cache, source, endpoints, secrets: keychain)
        }
        let first = try await session(try scene.cache())
        try await first.signIn { _ throws(LarderError) in grant("1") }
        // Another process signs out, and is opened again for the next sign-in.
        let other = try scene.cache()
        let leaving = try await session(other)
        await leaving.signOut()
        try other.erase()
        let next = try scene.cache()
        scene.clock.advance(by: .seconds(120))
        await #expect(throws: LarderError.self) { try await first.accessToken() }
        #expect(keychain.values.withLock { $0.isEmpty })
        next.close()
    }

    @Test func `nothing is saved after the cache was erased`() async throws {
        let cache = try scene.cache()
        let session = try await session(nil, cache)
        try cache.erase()
        let error = await #expect(throws: LarderError.self) { try await session.use(token: "a", userID: "ana") }
        #expect(error?.code == .closed)
        #expect(!FileManager.default.fileExists(atPath: file))
        // Another instance, which does not know of the end, finds no directory.
        let other = try scene.cache()
        let late = try await self.session(nil, other)
        try scene.cache().erase()
        let lost = await #expect(throws: LarderError.self) { try await late.use(token: "a", userID: "ana") }
        #expect(lost?.code == .storage)
        #expect(!FileManager.default.fileExists(atPath: file))
    }
}
