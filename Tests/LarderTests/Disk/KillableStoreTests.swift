import Larder
import LarderTesting
import TestSupport
import Testing

@Suite("Killable store", .oneMinute)
struct KillableStoreTests {
    private let fixture = DiskFixture()

    @Test func `after its death nothing has any effect, and what was committed is there in the next life`() throws {
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

    @Test func `it dies at the step that was named, and steps count from there`() throws {
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

    @Test func `a failing step is an error of its kind, once`() throws {
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        for (failure, code) in [
            (KillableStore.Failure.full, DiskError.Code.full), (.readOnly, .readOnly), (.inputOutput, .inputOutput),
        ] {
            killable.fail(failure)
            let error = try #require(throws: DiskError.self) { try store.put(fixture.entity("1")) }
            #expect(error.code == code)
            try store.put(fixture.entity("1"))
        }
    }
}
