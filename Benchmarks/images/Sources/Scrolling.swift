import Foundation
import Larder
import Synchronization

/// The reaction to memory pressure, which starts in the middle of the scroll and lasts until its end.
enum Reaction: String, CaseIterable {
    /// Nothing.
    case none
    /// Decoded images are released once.
    case clear
    /// A memory guard at the level `warning`.
    case warning
    /// A memory guard at the level `critical`.
    case critical
}

/// What a client does with its pictures under pressure, without its cache.
private func picturesReaction(_ pipeline: ImagePipeline) -> MemoryReaction {
    MemoryReaction(
        "images",
        stop: { allowed in
            if allowed.cancelsLoads { pipeline.cancelPending(below: .high) }
            pipeline.setQuality(allowed.qualityFactor)
            return 0
        },
        release: { allowed in
            pipeline.setMemoryShare(allowed.cacheShare)
            HeapTrim.trim()
            return 0
        }
    )
}

/// Scrolls through 300 images of a server in another process. Most leave the view before they are loaded.
///
/// Eight rows are visible, six more are prefetched. Every 30 rows the user waits until all visible images are loaded; every 50 rows the
/// user goes back by ten. The memory pressure starts at row 150. Runs on the main thread, as in an app.
@MainActor func scroll(_ fixtures: String, _ reaction: Reaction) async throws {
    let server = try ServerProcess(fixtures)
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-scroll-\(UUID().uuidString)")
    let counts = Counts()
    let disk = try DiskStore(DiskStore.Configuration(directory: directory.path))
    var configuration = ImagePipeline.Configuration(transport: SocketTransport(), disk: disk)
    let budget = 48 << 20
    configuration.memoryBytesMaximum = budget
    configuration.onEvent = { counts.add($0) }
    let pipeline = ImagePipeline(configuration)
    let source = MemoryGuard.ManualSource()
    let memory = MemoryGuard(source: source)
    let registration = reaction == .none || reaction == .clear ? nil : memory.register(picturesReaction(pipeline))

    let ids = try pictures(fixtures)
    func request(_ row: Int, _ priority: ImageRequest.Priority) -> ImageRequest {
        // A picture of its own for every row, though files come again.
        let url = "\(server.url)/v1/images/\(ids[row % ids.count])?width=1280&format=png&row=\(row)"
        return ImageRequest(url: url, target: ImageTarget(width: 750, height: 750), priority: priority)
    }

    forgetPeak()
    let before = memoryOf("VmRSS")
    var samples: [(row: Int, resident: Int, pixels: Int)] = []
    var missing = 0
    let start = ContinuousClock.now
    var view: [Int: ImageTask] = [:]
    var ahead: [Int: ImageTask] = [:]
    func show(_ first: Int) {
        let rows = max(0, first)..<min(300, first + 8)
        for row in rows where view[row] == nil { view[row] = pipeline.task(for: request(row, .high)) }
        // Rows that leave the view are cancelled.
        for row in view.keys where !rows.contains(row) { view.removeValue(forKey: row)?.cancel() }
        let next = rows.upperBound..<min(300, rows.upperBound + 6)
        for row in next where ahead[row] == nil { ahead[row] = pipeline.task(for: request(row, .prefetch)) }
        for row in ahead.keys where !next.contains(row) { ahead.removeValue(forKey: row)?.cancel() }
    }
    for row in 0..<300 {
        show(row)
        if row == 150 {
            samples.append((149, memoryOf("VmRSS"), pipeline.memoryCost >> 10))
            switch reaction {
            case .none: break
            case .clear: pipeline.clearMemory()
            case .warning: source.signal(.warning)
            case .critical: source.signal(.critical)
            }
        }
        // The pressure continues.
        if row > 150, row % 10 == 0, reaction == .warning || reaction == .critical {
            source.signal(reaction == .warning ? .warning : .critical)
        }
        if row % 30 == 29 {
            for number in view.keys.sorted() {
                guard let task = view[number] else { continue }
                do { _ = try await task.image } catch { missing += 1 }
            }
        } else {
            try await ContinuousClock().sleep(for: .milliseconds(8))
        }
        if row % 50 == 40 {
            for back in stride(from: row, to: row - 10, by: -1) { show(back) }
        }
        if [0, 50, 100, 150, 151, 175, 200, 225, 250, 275, 299].contains(row) {
            samples.append((row, memoryOf("VmRSS"), pipeline.memoryCost >> 10))
        }
    }
    let time = milliseconds(ContinuousClock.now - start)
    print(
        "\(reaction.rawValue): 300 rows of \(ids.count) pictures in \(shown(time)) ms; \(counts.text); \(missing) missing"
    )
    print(
        "  before \(before) kB, peak \(memoryOf("VmHWM")) kB (\(memoryOf("VmHWM") - before) more), budget \(budget >> 10) kB"
    )
    for sample in samples {
        print("  row \(sample.row): resident \(sample.resident) kB, pixels kept \(sample.pixels) kB")
    }
    let after = samples.filter { $0.row > 150 }
    print("  after the warning: \(after.map(\.resident).min() ?? 0) to \(after.map(\.resident).max() ?? 0) kB")
    _ = registration
    view = [:]
    ahead = [:]
    try server.stop()
    try FileManager.default.removeItem(at: directory)
}
