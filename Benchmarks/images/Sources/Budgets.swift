import Foundation
import Larder

/// A way to keep decoded pictures within a number of bytes.
enum Keeping: String, CaseIterable {
    case lru = "one LRU"
    /// A third for pictures below 1 MiB, the rest for larger ones, each LRU.
    case twoBudgets = "two budgets"
    /// The same, and each may use what the other leaves unused.
    case lending = "lending"
    /// Effort for size, as the pipeline does.
    case score = "score"
    case lendingScore = "lending, score"
    /// Evicted pictures are written to a file and read again, within 256 MiB.
    case spill = "score, spill"
    case compressedSpill = "score, spill deflated"

    var hasScore: Bool { [.score, .lendingScore, .spill, .compressedSpill].contains(self) }
    var hasBudgets: Bool { [.twoBudgets, .lending, .lendingScore].contains(self) }
    var lends: Bool { self == .lending || self == .lendingScore }
    var spills: Bool { self == .spill || self == .compressedSpill }
}

/// What this machine takes, in milliseconds.
struct PictureCosts {
    /// For each pixel of a file.
    var decoding = 0.0
    /// For each byte of pixels.
    var writing = 0.0
    var reading = 0.0
    var deflating = 0.0
    var inflating = 0.0
    /// The size of deflated pixels by that of pixels.
    var ratio = 1.0

    /// Measures with the photos of the fixtures: the medians of all of them.
    static func measured(_ directory: String) throws -> PictureCosts {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        var all: [PictureCosts] = []
        let path = NSTemporaryDirectory() + "larder-spill-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let transform = DiskStore.CompressingTransform()
        for name in names.sorted() where name.hasSuffix("1280.jpg") {
            let file = try read(directory + "/" + name)
            var costs = PictureCosts()
            func time(_ body: () throws -> Void) rethrows -> Double {
                let clock = ContinuousClock()
                return try (0..<5).map { _ in milliseconds(try clock.measure(body)) }.sorted()[2]
            }
            var pixels: [UInt8] = []
            costs.decoding = try time {
                let image = try decoders.decoder(for: file)
                    .decode(file, into: ImageTarget(width: 750, height: 563), limits: DecodedImage.Limits())
                pixels = image.pixels
            }
            let count = Double(pixels.count)
            costs.decoding /= 1_280 * 960
            let url = URL(fileURLWithPath: path)
            costs.writing = try time { try Data(pixels).write(to: url) } / count
            var restored: [UInt8] = []
            costs.reading = try time { restored = try Array(Data(contentsOf: url)) } / count
            precondition(restored == pixels, "what was written is read")
            var deflated: [UInt8] = []
            costs.deflating = try time { deflated = try transform.encode(pixels) } / count
            costs.inflating = try time { restored = try transform.decode(deflated) } / count
            precondition(restored == pixels, "what was deflated is inflated")
            costs.ratio = Double(deflated.count) / count
            all.append(costs)
        }
        func median(_ value: (PictureCosts) -> Double) -> Double { all.map(value).sorted()[all.count / 2] }
        return PictureCosts(
            decoding: median(\.decoding),
            writing: median(\.writing),
            reading: median(\.reading),
            deflating: median(\.deflating),
            inflating: median(\.inflating),
            ratio: median(\.ratio)
        )
    }

    /// Reading the stored file and decoding it.
    func miss(_ picture: Shown) -> Double { 0.3 + decoding * Double(picture.sourcePixels) }
}

/// The result of a trace.
struct Kept {
    var hits = 0
    var spilledHits = 0
    var milliseconds = 0.0
    var bytesWritten = 0.0
}

/// Shows all pictures of a trace.
func keep(_ shown: [Shown], _ bytesMaximum: Int, _ keeping: Keeping, _ costs: PictureCosts) -> Kept {
    typealias Tier = MemoryTier<Int, Int>
    nonisolated(unsafe) var evicted: [(key: Int, byteCount: Int)] = []
    let report: @Sendable (Tier.Departure) -> Void = { departure in
        if departure.reason != .replaced { evicted.append((departure.key, departure.cost)) }
    }
    let smallBudget = keeping.hasBudgets ? bytesMaximum / 3 : bytesMaximum
    let largeBudget = bytesMaximum - smallBudget
    let small = Tier(limits: .init(cost: smallBudget), onDeparture: report)
    let large = Tier(limits: .init(cost: largeBudget))
    // Without scores it is LRU.
    let spilled = Tier(limits: .init(cost: 256 << 20))
    var kept = Kept()
    for picture in shown {
        let isLarge = keeping.hasBudgets && picture.byteCount >= 1 << 20
        let (own, other) = isLarge ? (large, small) : (small, large)
        if own[picture.key] != nil {
            kept.hits += 1
            continue
        }
        let size = Double(picture.byteCount)
        if keeping.spills, spilled[picture.key] != nil {
            kept.spilledHits += 1
            kept.milliseconds +=
                size * (keeping == .spill ? costs.reading : costs.reading * costs.ratio + costs.inflating)
        } else {
            kept.milliseconds += costs.miss(picture)
        }
        if keeping.lends {
            let budget = isLarge ? largeBudget : smallBudget
            let wanted = min(own.cost + picture.byteCount, budget)
            other.trim(cost: bytesMaximum - wanted)
            own.setLimits(.init(cost: max(budget, bytesMaximum - other.cost)))
        }
        let score = keeping.hasScore ? (1 + costs.decoding * Double(picture.sourcePixels)) / size : 1
        own.store(0, for: picture.key, cost: picture.byteCount, score: score)
        for (key, byteCount) in evicted where keeping.spills && spilled.peek(key) == nil {
            let stored = Double(byteCount) * (keeping == .spill ? 1 : costs.ratio)
            kept.milliseconds += costs.writing * stored
            if keeping == .compressedSpill { kept.milliseconds += costs.deflating * Double(byteCount) }
            kept.bytesWritten += stored
            spilled.store(0, for: key, cost: Int(stored))
        }
        evicted = []
    }
    return kept
}

/// Compares the ways to keep decoded pictures.
func compareBudgets(_ directory: String) throws {
    let costs = try PictureCosts.measured(directory)
    print(
        String(
            format:
                "decoding %.1f ns a source pixel; a MB of pixels: write %.2f, read %.2f, deflate %.1f, inflate %.1f ms; deflated %.0f %%",
            costs.decoding * 1e6,
            costs.writing * 1e6,
            costs.reading * 1e6,
            costs.deflating * 1e6,
            costs.inflating * 1e6,
            costs.ratio * 100
        )
    )
    for keeping in Keeping.allCases {
        print(keeping.rawValue)
        var (rates, times) = (0.0, 0.0)
        for trace in PictureTrace.allCases {
            let shown = trace.pictures
            for megabytes in [16, 48, 96] {
                let kept = keep(shown, megabytes << 20, keeping, costs)
                let rate = 100 * Double(kept.hits) / Double(shown.count)
                rates += rate / 9
                times += kept.milliseconds / 9_000
                print(
                    "  \(trace.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0))",
                    String(
                        format: "%3d MiB  hits %5.1f %%  spilled %5.1f %%  %6.1f s  written %6.0f MB",
                        megabytes,
                        rate,
                        100 * Double(kept.spilledHits) / Double(shown.count),
                        kept.milliseconds / 1_000,
                        kept.bytesWritten / 1e6
                    )
                )
            }
        }
        print(String(format: "  mean              hits %5.1f %%                  %6.1f s", rates, times))
    }
}
