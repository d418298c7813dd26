import LarderMemory

// Hit rates of the adaptive policy and of the policies between which it selects. The traces have a fixed seed; the rates of the tier
// vary a little between processes, because each has its own hashes, unless SWIFT_DETERMINISTIC_HASHING is set.

func padded(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }

func percent(_ rate: Double) -> String {
    let tenths = Int((rate * 1_000).rounded(.toNearestOrAwayFromZero))
    let text = "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    return String(repeating: " ", count: max(0, 5 - text.count)) + text
}

func rate(_ keys: [Int], _ reference: some Reference) -> Double {
    var reference = reference
    var hits = 0
    for key in keys where reference.use(key) { hits += 1 }
    return Double(hits) / Double(keys.count)
}

func adaptiveRate(_ keys: [Int], _ size: Int) -> Double {
    let tier = MemoryTier<Int, Int>(limits: .init(count: size))
    for key in keys where tier[key] == nil { tier.store(key, for: key) }
    return tier.statistics.hitRate
}

let sizes =
    CommandLine.arguments.count > 1 ? CommandLine.arguments.dropFirst().compactMap(Int.init) : [200, 1_000, 2_000]
print(padded("hit rate, %", 18) + padded("entries", 10) + "LRU      S3-FIFO  W-TinyLFU  adaptive  to the best")
var sums = [Double](repeating: 0, count: 4)
var gaps: [Double] = []
for trace in Trace.allCases {
    let keys = trace.keys
    for size in sizes {
        let rates = [
            rate(keys, LRU(size)), rate(keys, S3FIFO(size)), rate(keys, WTinyLFU(size)), adaptiveRate(keys, size),
        ]
        for (number, rate) in rates.enumerated() { sums[number] += rate }
        let gap = rates[3] - (rates.dropLast().max() ?? 0)
        gaps.append(gap)
        print(
            padded(trace.rawValue, 18) + padded(String(size), 10)
                + rates.map { padded(percent($0), 9) }.joined() + "  " + percent(gap)
        )
    }
}
let points = Double(gaps.count)
print(padded("mean", 28) + sums.map { padded(percent($0 / points), 9) }.joined())
let far = gaps.filter { $0 < -0.01 }.count
print("farthest below the best: \(percent(gaps.min() ?? 0)) points; more than one point at \(far) of \(gaps.count)")
