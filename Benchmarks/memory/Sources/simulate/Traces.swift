import LarderTime

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Numbers from 0 with a Zipf distribution.
struct Zipf {
    private var sums: [Double] = []

    init(_ count: Int, _ exponent: Double) {
        var sum = 0.0
        for rank in 1...count {
            sum += pow(Double(rank), -exponent)
            sums.append(sum)
        }
    }

    func draw(_ generator: inout SeededGenerator) -> Int {
        let wanted = generator.unit() * sums[sums.count - 1]
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Synthetic traces: apps, loops, and what databases and file systems show in the literature.
enum Trace: String, CaseIterable {
    case zipf08 = "zipf 0.8"
    case zipf1 = "zipf 1.0"
    case scan
    case loop
    case zipfWithScans = "zipf with scans"
    case recencyBursts = "recency bursts"
    case mobileSession = "mobile session"
    case twoPools = "two pools"
    case severalLoops = "several loops"
    case shiftingZipf = "shifting zipf"
    case transactions
    case tableScans = "table scans"
    case join
    case correlated
    case phases
    case stackDistances = "stack distances"

    static let length = 400_000

    var keys: [Int] {
        var generator = SeededGenerator(seed: 42)
        var keys: [Int] = []
        keys.reserveCapacity(Self.length + 50_000)
        switch self {
        case .zipf08, .zipf1:
            let zipf = Zipf(20_000, self == .zipf1 ? 1 : 0.8)
            while keys.count < Self.length { keys.append(zipf.draw(&generator)) }
        case .scan: keys = Array(0..<Self.length)
        case .loop: keys = (0..<Self.length).map { $0 % 3_000 }
        case .zipfWithScans: popularityWithScans(&keys, &generator)
        case .recencyBursts: while keys.count < Self.length { window(keys.count / 10, 2_000, &keys, &generator) }
        case .mobileSession: session(&keys, &generator)
        // Index pages and data pages, in turn.
        case .twoPools:
            while keys.count < Self.length {
                keys += [generator.uniform(in: 0..<400), 100_000 + generator.uniform(in: 0..<40_000)]
            }
        case .severalLoops: loops(&keys, &generator)
        // Another set becomes popular from time to time.
        case .shiftingZipf:
            let zipf = Zipf(10_000, 1)
            for phase in 0..<10 {
                for _ in 0..<40_000 { keys.append((zipf.draw(&generator) * 7_919 + phase) % 10_000 + phase * 5_003) }
            }
        case .transactions: transactions(&keys, &generator)
        // One table is scanned again and again, beside point queries.
        case .tableScans:
            let zipf = Zipf(20_000, 1)
            var row = 0
            while keys.count < Self.length {
                row += 1
                keys += [500_000 + row % 5_000, (zipf.draw(&generator) * 7_919) % 20_000]
            }
        // An inner table is read for each block of an outer one.
        case .join:
            var outer = 1_000_000
            while keys.count < Self.length {
                for inner in 0..<1_200 {
                    if inner % 10 == 0 {
                        outer += 1
                        keys.append(outer)
                    }
                    keys.append(inner)
                }
            }
        case .correlated: correlated(&keys, &generator)
        case .phases: phases(&keys, &generator)
        case .stackDistances: stackDistances(&keys, &generator)
        }
        return Array(keys.prefix(Self.length))
    }

    private func popularityWithScans(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let zipf = Zipf(20_000, 1)
        while keys.count < Self.length {
            for _ in 0..<4_000 { keys.append(zipf.draw(&generator)) }
            let start = 1_000_000 + keys.count
            keys += start..<(start + 4_000)
        }
    }

    private func window(_ base: Int, _ count: Int, _ keys: inout [Int], _ generator: inout SeededGenerator) {
        for _ in 0..<count { keys.append(base + generator.uniform(in: 0..<600)) }
    }

    /// Scroll down some pages of the feed, open some profiles by popularity, scroll back up, and repeat later with new posts on top.
    private func session(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let people = Zipf(2_000, 1)
        var newest = 100_000
        while keys.count < Self.length {
            newest += generator.uniform(in: 5..<40)
            let depth = generator.uniform(in: 20..<400)
            for offset in 0..<depth {
                keys.append(newest - offset)
                if generator.uniform(in: 0..<4) == 0 { keys.append(1_000_000 + people.draw(&generator)) }
            }
            for offset in stride(from: depth - 1, through: 0, by: -3) { keys.append(newest - offset) }
        }
    }

    private func loops(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let loops = [0..<300, 10_000..<11_500, 20_000..<22_500, 30_000..<36_000]
        while keys.count < Self.length {
            let loop = loops[generator.uniform(in: 0..<loops.count)]
            for _ in 0..<max(4, 20_000 / loop.count) { keys += loop }
        }
    }

    /// A B-tree with a root and inner pages, rows by popularity, some ranges, and a log that is read again while it is new.
    private func transactions(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let zipf = Zipf(30_000, 0.8)
        var log = 1_000_000
        while keys.count < Self.length {
            let row = (zipf.draw(&generator) * 7_919) % 30_000
            keys += [900_000, 910_000 + row / 200]
            switch generator.uniform(in: 0..<20) {
            case 0..<16: keys.append(row)
            case 16: for offset in 0..<generator.uniform(in: 20..<300) { keys.append((row + offset) % 30_000) }
            default:
                log += 1
                for _ in 0..<3 { keys.append(log - generator.uniform(in: 0..<60)) }
            }
        }
    }

    /// New keys are used again one to three times soon, and never later; a third of the uses are of popular keys.
    private func correlated(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let zipf = Zipf(5_000, 0.8)
        var due: [Int: [Int]] = [:]
        var newest = 1_000_000
        while keys.count < Self.length {
            if let again = due.removeValue(forKey: keys.count / 16) {
                keys += again
            } else if generator.uniform(in: 0..<3) == 0 {
                keys.append(zipf.draw(&generator))
            } else {
                newest += 1
                keys.append(newest)
                for _ in 0..<generator.uniform(in: 1..<4) {
                    due[keys.count / 16 + generator.uniform(in: 1..<32), default: []].append(newest)
                }
            }
        }
    }

    private func phases(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let zipf = Zipf(20_000, 1)
        for phase in 0..<10 {
            switch phase % 3 {
            case 0: for step in 0..<20 { window(100_000 + phase * 10_000 + step * 200, 2_000, &keys, &generator) }
            case 1: for step in 0..<40_000 { keys.append(step % 2_500) }
            default: for _ in 0..<40_000 { keys.append(30_000 + zipf.draw(&generator)) }
            }
        }
    }

    /// A key is drawn by how long ago it was used last.
    private func stackDistances(_ keys: inout [Int], _ generator: inout SeededGenerator) {
        let zipf = Zipf(4_000, 0.8)
        // Newest last.
        var stack: [Int] = []
        while keys.count < Self.length {
            let distance = zipf.draw(&generator)
            if distance < stack.count, generator.uniform(in: 0..<20) > 0 {
                stack.append(stack.remove(at: stack.count - 1 - distance))
            } else {
                stack.append(keys.count)
                if stack.count > 4_000 { stack.removeFirst() }
            }
            keys.append(stack[stack.count - 1])
        }
    }
}
