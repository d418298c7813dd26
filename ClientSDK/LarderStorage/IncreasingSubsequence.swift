/// A longest increasing subsequence: what can stay where it is when a sequence is put into another order.
package enum IncreasingSubsequence {
    /// The indices of the numbers of a longest increasing subsequence. Cost: O(n log n).
    package static func indices(of numbers: [Int]) -> Set<Int> {
        var tails: [Int] = []
        var previous = [Int?](repeating: nil, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var low = 0
            var high = tails.count
            while low < high {
                let middle = (low + high) / 2
                if numbers[tails[middle]] < number { low = middle + 1 } else { high = middle }
            }
            previous[index] = low > 0 ? tails[low - 1] : nil
            if low == tails.count { tails.append(index) } else { tails[low] = index }
        }
        var staying = Set<Int>()
        var next = tails.last
        while let index = next {
            staying.insert(index)
            next = previous[index]
        }
        return staying
    }
}
