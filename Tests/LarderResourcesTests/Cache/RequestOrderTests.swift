import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

@Suite("Order of requests", .oneMinute)
struct RequestOrderTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `the oldest request in flight is that of a sorted set, in whatever order requests end`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var (active, model) = (ActiveOrders(), Set<UInt64>())
        var last: UInt64 = 0
        for step in 0..<2_000 {
            if generator.uniform(in: 0..<5) < 3 {
                last += UInt64(generator.uniform(in: 1..<4))
                active.append(last)
                model.insert(last)
            } else if let ended = model.randomElement(using: &generator) {
                active.remove(ended)
                // A request may end twice: when it is abandoned, and when its answer comes.
                if generator.uniform(in: 0..<3) == 0 { active.remove(ended) }
                model.remove(ended)
            }
            #expect(active.oldest == model.min(), "seed \(seed), step \(step)")
            #expect(active.isEmpty == model.isEmpty, "seed \(seed), step \(step)")
        }
    }

    @Test func `records that no request needs are dropped while an old request hangs`() {
        let order = RequestOrder()
        let hanging = order.begin(RequestOrder.Start(seenCommits: 0, invalid: []))
        for number in 0..<5_000 {
            let request = order.begin(RequestOrder.Start(seenCommits: 0, invalid: []))
            order.noteApplied(.entity(EntityKey(type: "note", id: "\(number)")), request)
            order.end(request)
        }
        // They are newer than the request that hangs.
        #expect(order.isOvertaken(.entity(EntityKey(type: "note", id: "0")), by: hanging))
        let newer = order.begin(RequestOrder.Start(seenCommits: 0, invalid: []))
        order.end(hanging)
        #expect(!order.isOvertaken(.entity(EntityKey(type: "note", id: "0")), by: newer))
        order.end(newer)
        #expect(!order.isOvertaken(.entity(EntityKey(type: "note", id: "4999")), by: 0))
    }

    @Test
    func `a reply with a newer version than an event during its request counts, also if memory has evicted the value`()
        async throws
    {
        let scene = CacheScene()
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes") { try await source.fetch($0) }
        try await cache.update { $0.put(Note(id: "1", text: "a", revision: 1)) }
        let reading = Task { try await cache.refresh(list) }
        await source.waitForRequests(1)
        try await cache.update { $0.put(Note(id: "1", text: "b", revision: 2)) }
        cache.trimMemory(toBytes: 0)
        source.answer(0, .value(EntityList([Note(id: "1", text: "c", revision: 3)])))
        #expect(try await reading.value.value?.items.map(\.text) == ["c"])
        #expect(try scene.cache().stored(list)?.value?.items.map(\.text) == ["c"])
    }

    @Test func `many invalidations of another process apply to the requests that began before this one heard of them`()
    {
        let (one, two) = (InvalidationTable(), InvalidationTable())
        for number in 0..<1_100 {
            one.mark(.tag("\(number)"), at: WallTime(seconds: Int64(number)), order: 1)
        }
        let now = WallTime(seconds: 2_000)
        two.merge(one.encoded, at: now, order: 7)
        for tag in ["0", "1099"] {
            #expect(two.covers([tag], validatedAt: now, order: 6))
            #expect(!two.covers([tag], validatedAt: now, order: 8))
        }
    }
}
