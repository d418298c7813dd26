import Foundation
import LarderStorage
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Disk store: secrets under a payload transform", .oneMinute)
struct DiskSecretTests {
    /// Not a cipher, and not authenticated: a wrong key decodes to other bytes without an error.
    private struct Mask: DiskStore.PayloadTransform {
        let byte: UInt8
        var identifier: String { "mask" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { payload.map { $0 ^ byte } }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ byte } }
    }

    private struct Locked: DiskStore.PayloadTransform {
        var identifier: String { "mask" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { throw Broken() }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { throw Broken() }
    }

    private let fixture = DiskFixture()
    private let secret = Array("the-secret-of-this-test".utf8)

    private func isFound() -> Bool { fixture.directory.contains(secret) }

    private func row(_ payload: [UInt8], key: String) -> DiskOutboxRow {
        let name = String(decoding: payload, as: UTF8.self)
        return DiskOutboxRow(
            operation: name,
            scope: name,
            coalescingKey: name,
            idempotencyKey: key,
            payload: payload
        )
    }

    private func list(_ details: [UInt8]) -> DiskQuery {
        DiskQuery(
            QueryKey("list"),
            ids: [fixture.key("1")],
            isComplete: false,
            fetchedAt: fixture.clock.now,
            expiresAt: fixture.clock.now + .seconds(60),
            details: details
        )
    }

    /// Each kind of write that stores bytes of the caller.
    private static let writes: [String] = [
        "entity", "large entity", "list", "record", "metadata", "token", "operation", "rejection", "secret",
    ]

    private func write(_ kind: String, _ store: DiskStore) throws {
        switch kind {
        case "entity": try store.put(fixture.entity("1", secret))
        case "large entity": try store.put(fixture.entity("2", Array(repeating: secret, count: 9_000).flatMap(\.self)))
        case "list": _ = try store.write { try $0.put(list(secret)) }
        case "record": try store.put(fixture.record("r", secret))
        case "metadata": try store.write { try $0.setMetadata(secret, for: "m") }
        case "secret": try store.setSecret(secret, for: "session")
        case "token": try store.write { try $0.setToken(String(decoding: secret, as: UTF8.self), for: "f") }
        case "operation":
            try store.write { _ = try $0.append(row(secret, key: String(decoding: secret, as: UTF8.self))) }
        default: try store.write { try $0.setMetadata(secret, for: DiskOutboxRow.noteKey(1)) }
        }
    }

    @Test(arguments: writes)
    func `no file has the content of a write, and without a transform one has`(_ kind: String) throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
            try write(kind, store)
            #expect(!isFound())
            _ = try store.emptyLog()
            #expect(!isFound())
            try store.erase()
        }
        let store = try fixture.store()
        try write(kind, store)
        #expect(isFound())
    }

    @Test func `removed content is in no file after the log is emptied, even without a transform`() throws {
        let store = try fixture.store()
        for kind in Self.writes { try write(kind, store) }
        _ = try store.emptyLog()
        #expect(isFound())
        try store.removeAllItems()
        try store.write { transaction in
            try transaction.setMetadata(nil, for: "m")
            try transaction.setMetadata(nil, for: DiskOutboxRow.noteKey(1))
            try transaction.setToken(nil, for: "f")
            try transaction.removeOperation(1)
        }
        try store.setSecret(nil, for: "session")
        while try !store.maintain() {}
        _ = try store.emptyLog()
        #expect(!isFound())
    }

    @Test func `everything is read back as it was written`() throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
            for kind in Self.writes { try write(kind, store) }
        }
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        let text = String(decoding: secret, as: UTF8.self)
        #expect(try store.entity(fixture.key("1"))?.payload == secret)
        #expect(try store.query(QueryKey("list"))?.details == secret)
        #expect(try store.metadata("m") == secret && store.token("f") == text)
        let found = try #require(try store.read { try $0.outbox() }.first)
        var expected = row(secret, key: text)
        expected.sequence = 1
        #expect(found == expected)
        #expect(fixture.events.isEmpty)
    }

    @Test(arguments: [nil, UInt8(0x66)])
    func `with another key or none, content is removed, and operations are kept, unreadable, until the key returns`(
        _ other: UInt8?
    ) throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
            for kind in Self.writes { try write(kind, store) }
        }
        do {
            let store = try fixture.store { $0.transform = other.map { Mask(byte: $0) } }
            #expect(fixture.events.transformChanges == ["4 items, 1 operations"])
            #expect(try store.statistics().items == 0)
            #expect(try store.metadata("m") == nil && store.token("f") == nil)
            let kept = try #require(try store.read { try $0.outbox() }.first)
            #expect(kept.operation == DiskOutboxRow.unreadableName && kept.payload.isEmpty && kept.scope != "")
            var sent = kept
            sent.state = 1
            let changed = sent
            let error = #expect(throws: DiskError.self) { try store.write { try $0.update(changed) } }
            #expect(error?.code == .transform)
            // New content is stored under the other key.
            try store.put(fixture.entity("1", [1]))
            #expect(try store.entity(fixture.key("1"))?.payload == [1])
        }
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        let found = try #require(try store.read { try $0.outbox() }.first)
        #expect(found.payload == secret && found.idempotencyKey == String(decoding: secret, as: UTF8.self))
        #expect(try store.metadata("m") == secret)
        #expect(try store.entity(fixture.key("1")) == nil)
    }

    @Test func `a store without a transform gets one: nothing that was written before is left readable`() throws {
        do {
            let store = try fixture.store()
            for kind in Self.writes { try write(kind, store) }
        }
        #expect(isFound())
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        while try !store.maintain() {}
        _ = try store.emptyLog()
        #expect(!isFound())
        #expect(try store.metadata("m") == secret)
        #expect(try store.secret("session") == secret)
        #expect(try store.read { try $0.outbox() }.first?.payload == secret)
        #expect(fixture.events.transformChanges == ["4 items, 0 operations"])
    }

    @Test func `a secret that was written without the transform is read before anything else opens the store`() throws {
        try fixture.store().setSecret(secret, for: "session")
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        #expect(try store.secret("session") == secret)
        #expect(!isFound())
    }

    @Test func `after a change of keys nothing but content needs the old one`() throws {
        typealias Encryption = DiskStore.EncryptingTransform
        let (old, new) = (try Encryption.makeKey(), try Encryption.makeKey())
        for (index, keys) in [[old], [new, old], [new]].enumerated() {
            let transform = try Encryption(keys: keys)
            let store = try fixture.store { $0.transform = transform }
            if index == 0 { for kind in Self.writes { try write(kind, store) } }
            #expect(try store.metadata("m") == secret)
            #expect(try store.token("f") == String(decoding: secret, as: UTF8.self))
            #expect(try store.secret("session") == secret)
            #expect(try store.read { try $0.outbox() }.map(\.payload) == [secret])
            // What has the new key stays, too.
            #expect(try store.entity(fixture.key("1"))?.payload == (index < 2 ? secret : nil))
            if index == 1 { try store.put(fixture.entity("3", secret)) }
            if index == 2 { #expect(try store.entity(fixture.key("3"))?.payload == secret) }
        }
        #expect(fixture.events.transformChanges.isEmpty)
    }

    @Test func `a removed secret leaves no file, also that of an interrupted write`() throws {
        let store = try fixture.store()
        try store.setSecret(secret, for: "session")
        let path = fixture.directory.path + "/store.secret-session"
        try FileManager.default.copyItem(atPath: path, toPath: path + ".new")
        try store.setSecret(nil, for: "session")
        #expect(!isFound())
        try Data(secret).write(to: URL(filePath: path + ".new"))
        try store.setSecret(nil, for: "session")
        #expect(!isFound())
    }

    @Test func `while the key is not available, opening the store changes nothing`() throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
            for kind in Self.writes { try write(kind, store) }
        }
        do {
            let store = try fixture.store { $0.transform = Locked() }
            #expect(try store.statistics().items == 4)
        }
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        #expect(try store.entity(fixture.key("1"))?.payload == secret)
        #expect(fixture.events.transformChanges.isEmpty)
    }

    @Test func `a payload in the place of another is not taken for it`() throws {
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        let sealed = try store.sealed(secret, as: "a")
        #expect(try store.opened(sealed, as: "a") == secret)
        #expect(throws: DiskError.self) { try store.opened(sealed, as: "b") }
        #expect(throws: DiskError.self) { try store.opened(Array(sealed.dropLast()), as: "a") }
    }

    @Test func `an operation that cannot be decoded survives damage to the database`() throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
            try write("operation", store)
        }
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 0x66) }
            _ = try store.outbox(since: nil)
            _ = try store.emptyLog()
            try fixture.directory.overwrite("store.sqlite", at: 0, with: Array(repeating: 7, count: 200))
            try store.put(fixture.entity("3"))
            store.suspend()
            try store.put(fixture.entity("4"))
            #expect(fixture.events.recoveries.count == 1)
        }
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        #expect(try store.read { try $0.outbox() }.first?.payload == secret)
    }
}
