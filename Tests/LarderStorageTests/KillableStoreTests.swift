import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Killable store", .oneMinute)
struct KillableStoreTests {
    private let fixture = DiskFixture()

    @Test func `after a simulated death nothing has an effect, and committed data is there after reopening`() throws {
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        try store.put(fixture.entity("1", [1]))
        killable.kill()
        #expect(killable.isDead)
        #expect(throws: DiskError.self) { try store.put(fixture.entity("2")) }
        #expect(throws: DiskError.self) { try store.entity(fixture.key("1")) }
        let next = try killable.reopen()
        #expect(!killable.isDead)
        #expect(try next.entity(fixture.key("1"))?.payload == [1])
        #expect(try next.entity(fixture.key("2")) == nil)
        #expect(throws: DiskError.self) { try store.put(fixture.entity("2")) }
    }

    @Test func `it dies at the given step, counted from now`() throws {
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        // The first write begins the log.
        for _ in 0..<2 { try store.put(fixture.entity("1")) }
        let before = killable.stepCount
        try store.put(fixture.entity("1"))
        let steps = killable.stepCount - before
        #expect(steps > 5)
        killable.kill(atStep: steps + 1)
        try store.put(fixture.entity("1"))
        #expect(!killable.isDead)
        #expect(throws: DiskError.self) { try store.put(fixture.entity("1")) }
        #expect(killable.isDead)
    }

    @Test func `a failing step throws its error once`() throws {
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        for (failure, code) in [
            (KillableStore.Failure.full, ErrorCode<DiskError>.full), (.readOnly, .readOnly),
            (.inputOutput, .inputOutput),
        ] {
            killable.fail(failure)
            let error = try #require(throws: DiskError.self) { try store.put(fixture.entity("1")) }
            #expect(error.code == code)
            try store.put(fixture.entity("1"))
        }
    }
}
