import Foundation
import Larder

/// What is switched off in a scroll.
enum SwitchedOff: String, CaseIterable {
    case nothing
    /// Decoding of what is not visible does not wait for an idle moment.
    case idle
    /// Requests for the same picture do not share a download.
    case merging
    /// What leaves the window is loaded to its end.
    case cancellation
}

/// Flings through a feed of 300 rows, each with a photo of its own and the avatar of one of twenty authors, over the journey `3g`.
///
/// Eight rows are visible. A fling passes thirty rows at 25 ms each; then the user looks for 600 ms, and after every third fling goes
/// back by fifteen rows first.
@MainActor final class Feed {
    private static let rowCount = 300
    private static let visibleCount = 8

    private let pipeline: ImagePipeline
    private let transport: CountingTransport
    private let idle = IdleScheduler()
    private let counts = Counts()
    private let off: SwitchedOff
    private let list: ImagePipeline.ListPrefetch
    private let request: @Sendable (Int) -> ImageRequest

    private var view: [Int: (since: ContinuousClock.Instant, task: ImageTask, wait: Task<Void, Never>)] = [:]
    private var kept: [Int: ImageTask] = [:]
    private var appearances = 0
    private let shown = Shows()

    /// When pictures were shown. On the main actor.
    @MainActor final class Shows {
        var times: [Double] = []
        var items: Set<Int> = []
    }

    init(_ url: String, _ ids: [String], without off: SwitchedOff) {
        self.off = off
        transport = CountingTransport(SocketTransport())
        var configuration = ImagePipeline.Configuration(transport: transport)
        let (counts, idle) = (counts, idle)
        configuration.onEvent = { counts.add($0) }
        if off != .idle { configuration.submitWhenIdle = { idle.submit(isWanted: $0, run: $1) } }
        pipeline = ImagePipeline(configuration)
        request = { item in
            let (row, isAvatar) = (item / 2, item % 2 == 1)
            let author = row * 7_919 % 20
            var request =
                isAvatar
                ? ImageRequest(
                    url: "\(url)/v1/images/\(ids[author % ids.count])?width=80&author=\(author)",
                    target: ImageTarget(width: 80, height: 80)
                )
                : ImageRequest(
                    url: "\(url)/v1/images/\(ids[row % ids.count])?width=1280&format=jpeg&row=\(row)",
                    target: ImageTarget(width: 750, height: 563)
                )
            // Requests with other options share what is in memory, but no download.
            if off == .merging { request.cache = ImageRequest.CacheOptions(rawValue: (item + 1) << 20) }
            return request
        }
        list = ImagePipeline.ListPrefetch(pipeline, request: request)
    }

    /// Shows the rows from one on.
    private func show(_ first: Int) {
        let rows = max(0, first)..<min(Self.rowCount, first + Self.visibleCount)
        let items = (rows.lowerBound * 2)..<(rows.upperBound * 2)
        idle.interacted()
        list.show(items, of: Self.rowCount * 2)
        if off == .cancellation {
            for item in items.lowerBound..<min(Self.rowCount * 2, items.upperBound + 12) where kept[item] == nil {
                var request = request(item)
                request.priority = .prefetch
                kept[item] = pipeline.task(for: request)
            }
        }
        for item in view.keys where !items.contains(item) {
            let left = view.removeValue(forKey: item)
            left?.wait.cancel()
            left?.task.cancel()
        }
        for item in items where view[item] == nil {
            appearances += 1
            var request = request(item)
            request.priority = .high
            if off == .merging { request.cache = ImageRequest.CacheOptions(rawValue: (appearances + 10_000) << 20) }
            let (task, since, shown) = (pipeline.task(for: request), ContinuousClock.now, shown)
            let wait = Task { @MainActor in
                guard (try? await task.image) != nil, !Task.isCancelled else { return }
                shown.times.append(milliseconds(ContinuousClock.now - since))
                shown.items.insert(item)
            }
            view[item] = (since, task, wait)
        }
    }

    /// Scrolls through the feed and prints what it took.
    func scroll() async throws {
        var late: [Double] = []
        var (visible, blank) = (0, 0)
        var row = 0
        func step(_ row: Int) async throws {
            let before = ContinuousClock.now
            show(row)
            try await ContinuousClock().sleep(until: before + .milliseconds(25))
            late.append(milliseconds(ContinuousClock.now - before) - 25)
        }
        for fling in 1...10 {
            if fling % 3 == 0 { for back in 0..<15 { try await step(row - back) } }
            if fling % 3 == 0 { row -= 15 }
            for _ in 0..<30 {
                try await step(row)
                row = min(row + 1, Self.rowCount - Self.visibleCount)
            }
            try await ContinuousClock().sleep(for: .milliseconds(600))
            visible += view.count
            blank += view.keys.count { !shown.items.contains($0) }
        }
        let finished = counts.finishedURLs
        let seen = Set(shown.items.map { request($0).url })
        let wasted = finished.filter { !seen.contains($0) }.count + finished.count - Set(finished).count
        let times = shown.times.sorted()
        late.sort()
        func at(_ part: Int, of sorted: [Double]) -> String {
            sorted.isEmpty ? "–" : shownTime(sorted[(sorted.count - 1) * part / 100])
        }
        print(
            "\(off.rawValue): \(transport.requests) requests, \(transport.bytes / 1_000) KB,",
            "wasted \(wasted) of \(finished.count) downloads, \(counts.decodes) decodes,",
            "shown \(times.count) after \(at(50, of: times)), 95 % \(at(95, of: times)),",
            "blank after a pause \(blank) of \(visible), late frames: 99 % \(at(99, of: late)), max. \(at(100, of: late))"
        )
        for (_, entry) in view { entry.task.cancel() }
        view = [:]
        kept = [:]
        list.cancel()
    }
}

private func shownTime(_ milliseconds: Double) -> String { "\(milliseconds.rounded(.toNearestOrEven)) ms" }

/// Compares scrolls with one mechanism switched off each.
@MainActor func compareEffects(_ fixtures: String, rounds: Int) async throws {
    let server = try ServerProcess(fixtures, "3g")
    let ids = try pictures(fixtures, type: "image/jpeg")
    for _ in 0..<rounds {
        for off in SwitchedOff.allCases {
            let feed = Feed(server.url, ids, without: off)
            try await feed.scroll()
        }
    }
    try server.stop()
}
