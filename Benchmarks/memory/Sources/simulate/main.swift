import LarderMemory

// Hit rates of the eviction policies on several traces. The seed is fixed: the table is the same each time.

/// SplitMix64.
struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// Numbers from 0 with a Zipf distribution.
struct Zipf {
    private var sums: [Double] = []

    init(_ count: Int, _ exponent: Double) {
        var sum = 0.0
        for rank in 1...count {
            sum += power(Double(rank), -exponent)
            sums.append(sum)
        }
    }

    func draw(_ generator: inout Generator) -> Int {
        let wanted = Double.random(in: 0..<sums[sums.count - 1], using: &generator)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func power(_ base: Double, _ exponent: Double) -> Double {
        // Only 0.8125 and 1.0 are used.
        exponent == -1
            ? 1 / base
            : 1
                / (base.squareRoot() * base.squareRoot().squareRoot()
                    * base.squareRoot().squareRoot().squareRoot().squareRoot())
    }
}

let length = 400_000

func trace(_ name: String) -> [Int] {
    var generator = Generator(state: 42)
    var keys: [Int] = []
    keys.reserveCapacity(length)
    switch name {
    case "zipf 0.8", "zipf 1.0":
        let zipf = Zipf(20_000, name == "zipf 1.0" ? 1 : 0.8125)
        while keys.count < length { keys.append(zipf.draw(&generator)) }
    case "scan": while keys.count < length { keys.append(keys.count) }
    case "loop": while keys.count < length { keys.append(keys.count % 3_000) }
    case "zipf with scans":
        let zipf = Zipf(20_000, 1)
        while keys.count < length {
            for _ in 0..<4_000 { keys.append(zipf.draw(&generator)) }
            let start = 1_000_000 + keys.count
            for offset in 0..<4_000 { keys.append(start + offset) }
        }
    case "recency bursts":
        var base = 0
        while keys.count < length {
            base += 200
            for _ in 0..<2_000 { keys.append(base + Int.random(in: 0..<600, using: &generator)) }
        }
    default:
        // A session: scroll down some pages of the feed, open some profiles by popularity, scroll back up, and repeat later with
        // new posts on top.
        let people = Zipf(2_000, 1)
        var newest = 100_000
        while keys.count < length {
            newest += Int.random(in: 5..<40, using: &generator)
            let depth = Int.random(in: 20..<400, using: &generator)
            for offset in 0..<depth {
                keys.append(newest - offset)
                if Int.random(in: 0..<4, using: &generator) == 0 { keys.append(1_000_000 + people.draw(&generator)) }
            }
            for offset in stride(from: depth - 1, through: 0, by: -3) { keys.append(newest - offset) }
        }
    }
    return Array(keys.prefix(length))
}

func padded(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }

func percent(_ rate: Double) -> String {
    let tenths = Int((rate * 1_000).rounded())
    return String(repeating: " ", count: tenths < 100 ? 3 : tenths < 1_000 ? 2 : 1) + "\(tenths / 10).\(tenths % 10)"
}

let names = ["zipf 0.8", "zipf 1.0", "scan", "loop", "zipf with scans", "recency bursts", "mobile session"]
print(
    padded("hit rate, %", 18) + padded("entries", 10) + EvictionPolicy.allCases.map { padded($0.rawValue, 9) }.joined()
)
var sums = [Double](repeating: 0, count: EvictionPolicy.allCases.count)
for name in names {
    let keys = trace(name)
    for size in [200, 1_000, 2_000] {
        var line = padded(name, 18) + padded(String(size), 10)
        for (index, policy) in EvictionPolicy.allCases.enumerated() {
            let tier = MemoryTier<Int, Int>(limits: .init(count: size), policy: policy)
            for key in keys where tier[key] == nil { tier.store(key, for: key) }
            let rate = tier.statistics.hitRate
            sums[index] += rate
            line += padded(percent(rate), 9)
        }
        print(line)
    }
}
print(padded("mean", 28) + sums.map { padded(percent($0 / Double(names.count * 3)), 9) }.joined())
