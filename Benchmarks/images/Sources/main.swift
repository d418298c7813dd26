import Foundation
import Larder
import Synchronization

let decoders: [any ImageDecoder] = [PNGDecoder(), JPEGDecoder()]

/// Prints the time of each decode in milliseconds, and the peak of memory.
func decode(_ path: String, _ width: Int, _ height: Int, _ rounds: Int) throws {
    let bytes = try read(path)
    let target = width > 0 ? ImageTarget(width: width, height: height) : nil
    forgetPeak()
    let before = memoryOf("VmRSS")
    var times: [Double] = []
    var size = ""
    for _ in 0..<rounds {
        let start = ContinuousClock.now
        let image = try decoders.decoder(for: bytes)
            .decode(bytes, into: target, limits: DecodedImage.Limits())
        times.append(milliseconds(ContinuousClock.now - start))
        size = "\(image.width)x\(image.height)"
    }
    let peak = memoryOf("VmHWM")
    print("\(size): \(times.map(shown).joined(separator: " ")) ms")
    print("peak \(peak) kB, \(peak - before) kB more than with the file alone (\(bytes.count / 1_024) kB)")
}

/// Measures memory hits of the pipeline.
func hits(_ directory: String) async throws {
    let pipeline = ImagePipeline(ImagePipeline.Configuration(transport: FileTransport(directory: directory)))
    let requests = (0..<20).map {
        ImageRequest(url: "http://127.0.0.1/ridges-80.png?\($0)", target: ImageTarget(width: 40, height: 30))
    }
    for request in requests { _ = try await pipeline.image(for: request) }
    let count = 100_000
    var sum = 0
    for _ in 0..<3 {
        var start = ContinuousClock.now
        for index in 0..<count { sum += try await pipeline.image(for: requests[index % 20]).width }
        let awaited = milliseconds(ContinuousClock.now - start) * 1e6 / Double(count)
        start = ContinuousClock.now
        for index in 0..<count { sum += pipeline.cachedImage(for: requests[index % 20])?.width ?? 0 }
        let direct = milliseconds(ContinuousClock.now - start) * 1e6 / Double(count)
        print("hit: image(for:) \(shown(awaited)) ns, cachedImage(for:) \(shown(direct)) ns")
    }
    precondition(sum == 3 * 2 * count * 40)
}

/// Compares 1,000 requests for one URL with one request.
func shared(_ directory: String) async throws {
    for count in [1, 1_000, 1, 1_000, 1, 1_000] {
        let counts = Counts()
        var configuration = ImagePipeline.Configuration(transport: FileTransport(directory: directory))
        configuration.onEvent = { counts.add($0) }
        let pipeline = ImagePipeline(configuration)
        let request = ImageRequest(
            url: "http://127.0.0.1/ridges-1280.png",
            target: ImageTarget(width: 320, height: 240)
        )
        let start = ContinuousClock.now
        let tasks = (0..<count).map { _ in pipeline.task(for: request) }
        for task in tasks { _ = try await task.image }
        print("\(count) requests: \(shown(milliseconds(ContinuousClock.now - start))) ms, \(counts.text)")
    }
}

/// Counts the events of a pipeline.
final class Counts: Sendable {
    private struct State {
        var downloads = 0
        var finished = 0
        var bytes = 0
        var decodes = 0
        var merged = 0
        var running = 0
        var waiting = 0
        var memory = 0
        var disk = 0
        var evicted = 0
        var failed = 0
        var finishedURLs: [String] = []
    }

    private let state = Mutex(State())

    func add(_ event: ImagePipeline.Event) {
        state.withLock { state in
            switch event {
            case .downloadStarted: state.downloads += 1
            case .decoded: state.decodes += 1
            case .downloadFinished(let url, let bytes, _, _):
                state.finished += 1
                state.bytes += bytes
                state.finishedURLs.append(url)
            case .mergedDecode, .mergedDownload: state.merged += 1
            case .cancelled(_, let wasRunning, _):
                if wasRunning { state.running += 1 } else { state.waiting += 1 }
            case .hit(_, .memory, _): state.memory += 1
            case .hit(_, .disk, _): state.disk += 1
            case .evicted: state.evicted += 1
            case .failed: state.failed += 1
            default: break
            }
        }
    }

    var decodes: Int { state.withLock { $0.decodes } }

    /// The URL of each complete download.
    var finishedURLs: [String] { state.withLock { $0.finishedURLs } }

    var text: String {
        let counts = state.withLock { $0 }
        return
            "\(counts.downloads) downloads started, \(counts.finished) finished (\(counts.bytes >> 10) kB), "
            + "\(counts.decodes) decodes, \(counts.merged) merged, \(counts.running) cancelled while running and "
            + "\(counts.waiting) waiting, hits \(counts.memory) in memory and \(counts.disk) on disk, "
            + "\(counts.evicted) evicted, \(counts.failed) failed"
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
switch (arguments.first, arguments.count) {
case ("decode", 5):
    try decode(arguments[1], Int(arguments[2]) ?? 0, Int(arguments[3]) ?? 0, Int(arguments[4]) ?? 1)
case ("hits", 2): try await hits(arguments[1])
case ("shared", 2): try await shared(arguments[1])
case ("budgets", 2): try compareBudgets(arguments[1])
case ("scroll", 2): try await compareEffects(arguments[1], rounds: 1)
case ("stages", 3): try await stages(arguments[1], arguments[2])
case ("scroll", 3): try await scroll(arguments[1], Reaction(rawValue: arguments[2]) ?? .none)
case ("serve", 2...3): try serve(arguments[1], arguments.count > 2 ? arguments[2] : nil)
default:
    print(
        """
        images decode FILE WIDTH HEIGHT ROUNDS   decoding a file into a size (0 0: as it is), and the memory for it
        images hits DIRECTORY                    a hit in memory through the pipeline
        images budgets DIRECTORY                 ways to keep decoded pictures, on three traces
        images shared DIRECTORY                  a thousand requests for one URL
        images scroll FIXTURES                   a feed scrolled over 3g, with idle scheduling, merging and cancellation off
        images stages FIXTURES JOURNEY           the previews of JPEG files that arrive over a network such as 3g
        images scroll FIXTURES REACTION          three hundred pictures scrolled by, from a server in a process of its own;
                                                 in the middle memory is short: none, clear, warning, critical
        DIRECTORY is Fixtures/images, FIXTURES is Fixtures. `bench.py` measures decoding beside Pillow, which reads with libpng.
        """
    )
}
