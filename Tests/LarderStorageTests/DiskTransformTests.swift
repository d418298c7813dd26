import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Disk store: payload transforms", .oneMinute)
struct DiskTransformTests {
    /// Not a cipher: the result only differs from the payload.
    private struct Mask: DiskStore.PayloadTransform {
        struct Broken: Error {}

        let byte: UInt8
        var rejects = false

        var identifier: String { "mask" + (byte == 0 ? "" : "-\(byte)") }

        func encode(_ payload: [UInt8]) throws -> [UInt8] {
            if rejects { throw Broken() }
            return payload.map { $0 ^ byte } + [1]
        }

        func decode(_ stored: [UInt8]) throws -> [UInt8] {
            if rejects { throw Broken() }
            return stored.dropLast().map { $0 ^ byte }
        }
    }

    private let fixture = DiskFixture()
    private let text = Array("a sentence that nobody should find on the disk".utf8)

    @Test func `payloads are stored as transformed`() throws {
        let store = try fixture.store { $0.transform = Mask(byte: 0x55) }
        try store.put(fixture.entity("1", text))
        try store.put(fixture.record("r", text))
        #expect(try store.entity(fixture.key("1"))?.payload == text)
        #expect(try store.record("r")?.payload == text)
        #expect(!fixture.directory.contains(text))
        #expect(fixture.directory.contains(text.map { $0 ^ 0x55 }))
    }

    @Test func `items stored with another transform are removed`() throws {
        do { try fixture.store { $0.transform = Mask(byte: 1) }.put(fixture.entity("1", text)) }
        let store = try fixture.store { $0.transform = Mask(byte: 2) }
        #expect(try store.entity(fixture.key("1")) == nil)
        #expect(fixture.events.transformChanges == ["1 items, 0 operations"])
        #expect(try store.statistics().items == 0)
    }

    @Test func `a transform that throws fails the write and turns a read into a miss`() throws {
        do { try fixture.store { $0.transform = Mask(byte: 1) }.put(fixture.entity("1", text)) }
        let store = try fixture.store { $0.transform = Mask(byte: 1, rejects: true) }
        let error = try #require(throws: DiskError.self) { try store.put(fixture.record("r", text)) }
        #expect(error.code == .transform)
        #expect(try store.entity(fixture.key("1")) == nil)
        #expect(fixture.events.reasons == [])
    }

    @Test func `what cannot be decoded while the key is away stays`() throws {
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 1) }
            try store.put(fixture.entity("1", text))
            try store.put(fixture.entity("2", text))
            try store.write { transaction in
                try transaction.put(fixture.entity("3", text))
                let marked = ListMembers(entries: [
                    .init(EntityKey(type: "==page", id: "cursor")), .init(fixture.key("1"), note: "note"),
                ])
                let times = RowTimes(fetchedAt: fixture.clock.now, expiresAt: fixture.clock.now + .seconds(60))
                try transaction.put(DiskQuery(QueryKey("posts"), marked, times: times))
            }
        }
        do {
            let store = try fixture.store { $0.transform = Mask(byte: 1, rejects: true) }
            #expect(try store.entity(fixture.key("1")) == nil && store.entity(fixture.key("2")) == nil)
            #expect(try store.query(QueryKey("posts")) == nil)
            try store.write { transaction in try transaction.remove(.entity(fixture.key("2"))) }
            #expect(fixture.events.discarded == [])
        }
        let store = try fixture.store { $0.transform = Mask(byte: 1) }
        #expect(try store.entity(fixture.key("1"))?.payload == text && store.entity(fixture.key("2")) == nil)
        #expect(try store.query(QueryKey("posts"))?.ids.count == 2)
        #expect(fixture.events.discarded == [])
    }
}
