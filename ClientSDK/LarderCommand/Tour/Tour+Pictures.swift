import Foundation
import Larder
import Synchronization

extension TourScene {
    /// Ways to share memory between small and large pictures.
    func budgets() async throws -> TourChapter {
        var chapter = begin(
            .budgets,
            "A person scrolls through 300 photos, looks at albums of large pictures in between, and sees 60 small portraits again and again. "
                + "Decoded pictures may take 48 MB. What has to be decoded again with one budget, with one for small and one for large "
                + "pictures, and when effort counts?"
        )
        let two = SizeBudgets(threshold: 1 << 20, small: 16 << 20, large: 32 << 20)
        var lending = two
        lending.lends = true
        let ways: [(name: String, value: (SizeBudgets, EvictionPolicy))] = [
            ("one budget, LRU", (.one(48 << 20), .lru)), ("16 MB small, 32 MB large", (two, .lru)),
            ("the same, lending", (lending, .lru)), ("the same, lending, by score", (lending, .greedyDual)),
            ("one budget, by score (Larder)", (.one(48 << 20), .greedyDual)),
        ]
        let (feed, album) = (Self.shownPictures(), Self.albumPictures())
        let (table, results) = try await TourTable.measured(
            "Decoded again, of \(feed.count) pictures of a feed with albums and \(album.count) of one album that is seen ten times",
            columns: ["way", "portraits", "other pictures", "time, feed", "album pictures", "time, album"],
            ways
        ) { way in
            [feed, album].map { Self.decoded($0, way.0, way.1) }
        } row: { decoded in
            [
                .count(decoded[0].small), .count(decoded[0].large), .duration(decoded[0].effort),
                .count(decoded[1].large), .duration(decoded[1].effort),
            ]
        }
        chapter.exhibits = [.table(table)]
        let sums = results.map { $0[0].effort + $0[1].effort }
        func name(_ index: Int) -> String { "'\(ways[index].name)' (\(TourValue.duration(sums[index]).text))" }
        let least = sums.indices.filter { sums[$0] == sums.min() }.map(name).joined(separator: " and ")
        let most = sums.indices.filter { sums[$0] == sums.max() }.map(name).joined(separator: " and ")
        chapter.answer =
            "Both traces together: the least time took \(least), the most \(most), and what Larder ships "
            + "\(name(ways.count - 1)). A picture is taken to cost 1 ms and 10 ns for each byte of pixels; the score is this effort divided by the "
            + "size. Real effort differs between pictures: Benchmarks/images/README.md has the comparison with measured times. Each way can be selected "
            + "(ImagePipeline.Memory)."
        return chapter
    }

    private struct ShownPicture {
        var key: Int
        var bytes: Int
        var isSmall: Bool { bytes < 1 << 20 }
    }

    /// Rows of a photo and a portrait, and after each thirty rows an album of twelve large pictures.
    private static func shownPictures() -> [ShownPicture] {
        var random = SeededGenerator(seed: 11)
        var shown: [ShownPicture] = []
        for row in 0..<300 {
            shown.append(ShownPicture(key: row, bytes: 750 * 563 * 4))
            // Some people write more often than others.
            let person = Int(pow(60, random.unit())) - 1
            shown.append(ShownPicture(key: 10_000 + person, bytes: 96 * 96 * 4))
            guard row % 30 == 29 else { continue }
            for page in 0..<12 { shown.append(ShownPicture(key: 20_000 + row * 12 + page, bytes: 1_500 * 1_125 * 4)) }
            // Back to the photos that were seen last.
            for back in 0..<4 { shown.append(ShownPicture(key: row - back, bytes: 750 * 563 * 4)) }
        }
        return shown
    }

    /// Six large pictures, which fit into 48 MB and not into 32, one after the other and again.
    private static func albumPictures() -> [ShownPicture] {
        (0..<60).map { ShownPicture(key: $0 % 6, bytes: 1_500 * 1_125 * 4) }
    }

    private struct DecodedPictures {
        var small = 0
        var large = 0
        var effort: Duration = .zero
    }

    /// Shows the pictures with these budgets; what was decoded more than once, and the pixels of all.
    private static func decoded(
        _ shown: [ShownPicture],
        _ budgets: SizeBudgets,
        _ policy: EvictionPolicy
    ) -> DecodedPictures {
        let tier = MemoryTier<Int, Int>(budgets, policy: policy)
        var seen: Set<Int> = []
        var decoded = DecodedPictures()
        for picture in shown where tier[picture.key] == nil {
            let effort = Duration.milliseconds(1) + .nanoseconds(10) * picture.bytes
            tier.store(
                picture.key,
                for: picture.key,
                cost: picture.bytes,
                score: effort / .nanoseconds(1) / Double(picture.bytes)
            )
            guard !seen.insert(picture.key).inserted else { continue }
            decoded.effort += effort
            if picture.isSmall { decoded.small += 1 } else { decoded.large += 1 }
        }
        return decoded
    }

    /// What happens to a picture between a request and the screen.
    static let path = TourFlow(
        title: "The path of a picture",
        steps: [
            .init(text: "A row asks for a picture (ListPrefetch)"),
            .init(text: "Pixels in memory, and fresh?", yes: "Shown at once"),
            .init(text: "Already being loaded?", yes: "Waits for the same download and decode"),
            .init(text: "A prefetch while prefetching is paused?", yes: "Waits; not even the disk is read"),
            .init(text: "Without a fresh file on disk: downloaded, or confirmed (304)"),
            .init(text: "The file is read"),
            .init(text: "Left the screen meanwhile?", yes: "Cancelled, if nobody else waits"),
            .init(text: "Decoded; when idle while a person scrolls"),
            .init(text: "Downsampled while decoding"),
            .init(text: "Stored in memory, shown to all that wait"),
        ]
    )

    /// What a feed shows first.
    static let coldStart = TourFlow(
        title: "A cold start",
        steps: [
            .init(text: "The feed opens in a new process"),
            .init(text: "Posts on disk are shown, with their age"),
            .init(text: "Are they fresh?", yes: "No request"),
            .init(text: "Offline?", yes: "They stay; a request follows the return"),
            .init(text: "The server is asked, with the validator"),
            .init(text: "Unchanged (304)?", yes: "Only the times are stored"),
            .init(text: "New posts are stored, then shown"),
        ]
    )

    /// What the memory guard does.
    static let warning = TourFlow(
        title: "Memory is short",
        steps: [
            .init(text: "The system reports pressure"),
            .init(text: "Bytes, requests and loads are counted"),
            .init(text: "The warning is reported with these figures"),
            .init(text: "Prefetching stops, fewer loads run at once"),
            .init(text: "Loads of pictures out of view are cancelled"),
            .init(text: "Half leave memory; all if it is critical"),
            .init(text: "After five quiet seconds limits grow in steps, prefetching last"),
        ]
    )

    /// Memory pressure while pictures are loaded, with cleared caches and with the guard.
    func pressure() async throws -> TourChapter {
        var chapter = begin(
            .pressure,
            "Pictures are prefetched while a person scrolls, and after five seconds the system reports that memory is critically short. One app "
                + "clears its caches; in the other the memory guard stops loads first, then clears, and lets both grow again step by step. How "
                + "much memory do pictures take?"
        )
        let ways: [(name: String, value: Bool)] = [("caches are cleared", false), ("memory guard", true)]
        let (table, results) = try await TourTable.measured(
            "After the report",
            columns: ["way", "2 s later", "most in 20 s", "loads cancelled"],
            ways
        ) { isGuarded in
            Self.scrolled(isGuarded)
        } row: {
            [.bytes($0.soon), .bytes($0.most), .count($0.cancelled)]
        }
        let curves = zip(ways, results).map { TourCurves.Curve(label: $0.name, points: $1.points) }
        chapter.exhibits = [
            .curves(TourCurves(title: "Pictures in memory", x: "s", y: "MB", curves: curves)), .table(table),
            .flow(Self.coldStart), .flow(Self.path), .flow(Self.warning),
        ]
        func size(_ bytes: Int) -> String { SizeText.text(Int64(bytes)) }
        chapter.answer =
            "Cleared caches were full again with what was being loaded: \(size(results[0].soon)) two seconds later, when the system may end the "
            + "app. The guard cancelled \(results[1].cancelled) loads and held \(size(results[1].soon)), and used the full budget again after "
            + "its recovery."
        return chapter
    }

    private struct Scrolled {
        var points: [(x: Double, y: Double)] = []
        var soon = 0
        var most = 0
        var cancelled = 0
    }

    /// A minute of scrolling in steps of a tenth of a second: a memory tier, and loads that take a second each.
    private static func scrolled(_ isGuarded: Bool) -> Scrolled {
        let (bytes, budget, concurrent) = (750 * 563 * 4, 96 << 20, 24)
        let clock = ManualClock()
        let source = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: source, clock: clock)
        defer { memory.close() }
        let tier = MemoryTier<Int, Int>(limits: .init(cost: budget))
        let loads = PictureLoads()
        let registration = memory.register(
            MemoryReaction(
                "pictures",
                stop: { limits in limits.cancelsLoads ? loads.cancelAll() : 0 },
                release: { limits in
                    let before = tier.cost
                    tier.setLimits(.init(cost: Int(Double(budget) * limits.cacheShare)))
                    return before - tier.cost
                }
            )
        )
        defer { _ = registration }
        var result = Scrolled()
        for step in 0..<600 {
            let limits = isGuarded ? memory.limits : .normal
            for key in loads.finished(at: step) { tier.store(key, for: key, cost: bytes) }
            let allowed = limits.allowsPrefetch ? Int(Double(concurrent) * limits.concurrencyFactor) : 1
            loads.begin(upTo: max(1, allowed), at: step)
            if step == 50 {
                if isGuarded { source.signal(.critical) } else { tier.removeAll() }
            }
            if step == 60, isGuarded { source.signal(.normal) }
            memory.tick()
            let held = tier.cost + loads.count * bytes
            result.points.append((Double(step) / 10, Double(held) / 1_048_576))
            if step == 70 { result.soon = held }
            if (51...250).contains(step) { result.most = max(result.most, held) }
            clock.advance(by: .milliseconds(100))
        }
        result.cancelled = loads.cancelled
        return result
    }
}

/// The loads of the scroll: each takes ten steps.
private final class PictureLoads: Sendable {
    private struct State {
        var running: [(key: Int, end: Int)] = []
        var next = 0
        var cancelled = 0
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.running.count } }
    var cancelled: Int { state.withLock { $0.cancelled } }

    func begin(upTo limit: Int, at step: Int) {
        state.withLock { state in
            while state.running.count < limit {
                state.running.append((state.next, step + 10))
                state.next += 1
            }
        }
    }

    func finished(at step: Int) -> [Int] {
        state.withLock { state in
            let keys = state.running.filter { $0.end <= step }.map(\.key)
            state.running.removeAll { $0.end <= step }
            return keys
        }
    }

    func cancelAll() -> Int {
        state.withLock { state in
            let count = state.running.count
            state.running = []
            state.cancelled += count
            return count
        }
    }
}
