import LarderStorage
import LarderTime
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
        let hanging = order.begin()
        for number in 0..<5_000 {
            let request = order.begin()
            order.noteApplied(.entity(EntityKey(type: "note", id: "\(number)")), request)
            order.end(request)
        }
        // They are newer than the request that hangs.
        #expect(order.isOvertaken(.entity(EntityKey(type: "note", id: "0")), by: hanging))
        let newer = order.begin()
        order.end(hanging)
        #expect(!order.isOvertaken(.entity(EntityKey(type: "note", id: "0")), by: newer))
        order.end(newer)
        #expect(!order.isOvertaken(.entity(EntityKey(type: "note", id: "4999")), by: 0))
    }
}
