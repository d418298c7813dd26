/// Operation numbers in ascending order. Appending the largest and removing the smallest cost amortised O(1); another place costs a
/// binary search and a move of the numbers behind it.
struct OrderedIDs: Sendable {
    /// Elements before `head` were removed.
    private var numbers: [Int64] = []
    private var head = 0

    var isEmpty: Bool { head == numbers.count }
    var count: Int { numbers.count - head }
    var first: Int64? { isEmpty ? nil : numbers[head] }
    var last: Int64? { isEmpty ? nil : numbers[numbers.count - 1] }
    /// All numbers, the smallest first.
    var all: ArraySlice<Int64> { numbers[head...] }

    mutating func insert(_ number: Int64) {
        guard let last, last >= number else { return numbers.append(number) }
        let index = index(of: number)
        if numbers[index] != number { numbers.insert(number, at: index) }
    }

    mutating func remove(_ number: Int64) {
        if first == number {
            head += 1
            if head > 32, head > numbers.count / 2 {
                numbers.removeFirst(head)
                head = 0
            }
            return
        }
        let index = index(of: number)
        if index < numbers.count, numbers[index] == number { numbers.remove(at: index) }
    }

    /// The index of the first number that is not smaller.
    private func index(of number: Int64) -> Int {
        var (low, high) = (head, numbers.count)
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
