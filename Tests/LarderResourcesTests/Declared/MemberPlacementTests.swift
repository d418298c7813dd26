import LarderTesting
import Testing

@testable import LarderResources

@Suite("Declared lists: places of changed items")
struct MemberPlacementTests {
    private let placement = MemberPlacement<Double>(isMember: { $0 >= 0 }, areInIncreasingOrder: { $0 < $1 })

    @Test func `an item that has moved up stays in the beginning of a list, also behind no unchanged item`() {
        let listed = [(item: 1.0, hasChanged: false), (item: 4, hasChanged: true), (item: 1.5, hasChanged: true)]
        #expect(placement.items(listed, others: [], isWhole: false) == [1, 1.5, 4])
        let all = [(item: 3.0, hasChanged: true), (item: 1, hasChanged: true), (item: 2, hasChanged: true)]
        #expect(placement.items(all, others: [], isWhole: false) == [1, 2, 3])
    }

    @Test func `an item that sorts behind the beginning of a list is left out`() {
        let listed = [(item: 1.0, hasChanged: false), (item: 4, hasChanged: true), (item: 3, hasChanged: false)]
        #expect(placement.items(listed, others: [2, 5], isWhole: false) == [1, 2, 3])
        #expect(placement.items(listed, others: [2, 5], isWhole: true) == [1, 2, 3, 4, 5])
        let removed = [(item: 1.0, hasChanged: false), (item: -1, hasChanged: true)]
        #expect(placement.items(removed, others: [], isWhole: false) == [1])
    }
}
