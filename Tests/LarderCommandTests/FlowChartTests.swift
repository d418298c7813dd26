import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderCommand

/// What the documents draw, beside what the SDK does.
@Suite("Flow charts of the documents", .oneMinute)
struct FlowChartTests {
    /// The steps of a drawing in a document, each with what follows "yes".
    private func drawnSteps(of title: String, in document: String) throws -> [String] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Documentation/Larder.docc/\(document).md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let drawing = try #require(
            text.components(separatedBy: title).last?.components(separatedBy: "```").dropFirst().first
        )
        return drawing.split(separator: "\n").compactMap { line in
            let quoted = line.split(separator: "\"", omittingEmptySubsequences: false).enumerated().filter {
                $0.offset % 2 == 1
            }
            return quoted.isEmpty ? nil : quoted.map { String($0.element) }.joined(separator: " ")
        }
    }

    /// Notes the events of a pipeline, and holds decodes that may wait for an idle moment.
    private final class PictureWatch: Sendable {
        private let seen = Mutex<[String]>([])
        private let waiting = Mutex<[@Sendable () -> Void]>([])

        /// The number of held decodes.
        var waitingCount: Int { waiting.withLock { $0.count } }

        /// The events since the last call, sorted.
        func take() -> [String] {
            seen.withLock { seen in
                defer { seen = [] }
                return seen.sorted()
            }
        }

        func runWaiting() {
            let runs = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for run in runs { run() }
        }

        func hold(_ run: @escaping @Sendable () -> Void) { waiting.withLock { $0.append(run) } }

        func note(_ event: ImagePipeline.Event) {
            let word: String? =
                switch event {
                case .hit(_, let tier, _): "hit \(tier.rawValue)"
                case .mergedDownload, .mergedDecode: "merged"
                case .downloadStarted: "download"
                case .revalidated: "304"
                case .decoded(_, let width, _, _): "decoded \(width)"
                case .cancelled: "cancelled"
                default: nil
                }
            if let word { seen.withLock { $0.append(word) } }
        }
    }

    @Test func `the path of a picture is drawn as the pipeline takes it`() async throws {
        let directory = try ScratchDirectory()
        let (watch, clock, gate) = (PictureWatch(), ManualClock(), TransportGate())
        let png = Array(
            Data(
                base64Encoded:
                    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAACCAYAAAB/qH1jAAAAD0lEQVR42mPgRAMM7GgAABIyAQHOj9f0AAAAAElFTkSuQmCC"
            )
                ?? Data()
        )
        let transport = ScriptedTransport { request, _ in
            let fields: Fields = [.contentType: "image/png", .cacheControl: "max-age=60", .etag: "\"1\""]
            if request.fields[.ifNoneMatch] != nil { return .text("", status: .notModified, fields: fields) }
            let reply = ScriptedTransport.Reply(fields: fields, [.bytes(png)])
            return request.url.hasSuffix("slow") ? reply.held(by: gate) : reply
        }
        var configuration = ImagePipeline.Configuration(
            transport: transport,
            disk: try DiskStore(DiskStore.Configuration(directory: directory.path + "/images", clock: clock))
        )
        (configuration.clock, configuration.uptime) = (clock, clock)
        configuration.onEvent = { watch.note($0) }
        configuration.submitWhenIdle = { _, run in watch.hold(run) }
        let pictures = ImagePipeline(configuration)
        func request(_ name: String, _ priority: ImageRequest.Priority = .high) -> ImageRequest {
            ImageRequest(url: "http://h/\(name)", target: ImageTarget(width: 2, height: 1), priority: priority)
        }
        var seen: [String: [String]] = [:]
        // Nobody has it: downloaded, decoded at once because it is in view, downsampled, kept.
        _ = try await pictures.image(for: request("a"))
        seen["new"] = watch.take()
        _ = try await pictures.image(for: request("a"))
        seen["memory"] = watch.take()
        let first = pictures.task(for: request("slow"))
        let second = pictures.task(for: request("slow"))
        await gate.waitForHeld()
        gate.open()
        #expect(try await first.image == second.image)
        seen["merged"] = watch.take()
        pictures.clearMemory()
        pictures.pausePrefetch()
        let prefetch = pictures.task(for: request("a", .prefetch))
        _ = try await pictures.image(for: request("slow"))
        seen["paused"] = watch.take()
        pictures.resumePrefetch()
        await reached { watch.waitingCount == 1 }
        seen["prefetch from disk"] = watch.take()
        prefetch.cancel()
        seen["left"] = watch.take()
        watch.runWaiting()
        clock.advance(by: .seconds(61))
        let later = pictures.task(for: request("a", .normal))
        await reached { watch.waitingCount == 1 }
        seen["stale, scrolling"] = watch.take()
        watch.runWaiting()
        #expect(try await later.image.width == 2 && pictures.cachedImage(for: request("a")) != nil)
        seen["idle"] = watch.take()
        #expect(
            seen == [
                "new": ["decoded 2", "download"], "memory": ["hit memory"],
                "merged": ["decoded 2", "download", "merged"], "paused": ["decoded 2", "hit disk"],
                "prefetch from disk": ["hit disk"], "left": ["cancelled"], "stale, scrolling": ["304", "download"],
                "idle": ["decoded 2"],
            ]
        )
        // The questions in the order in which the pipeline asks them.
        #expect(
            try drawnSteps(of: "The path of a picture:", in: "Images") == [
                "A row asks for a picture (ListPrefetch)", "Pixels in memory, and fresh? Shown at once",
                "Already being loaded? Waits for the same download and decode",
                "A prefetch while prefetching is paused? Waits; not even the disk is read",
                "Without a fresh file on disk: downloaded, or confirmed (304)", "The file is read",
                "Left the screen meanwhile? Cancelled, if nobody else waits",
                "Decoded; when idle while a person scrolls", "Downsampled while decoding",
                "Stored in memory, shown to all that wait",
            ]
        )
    }

    @Test func `what is drawn of a cold start is what the feed does`() async throws {
        let directory = try ScratchDirectory()
        let clock = ManualClock()
        let isOnline = Mutex(true)
        @Sendable func page(_ posts: [Int]) -> String {
            let items = posts.map { number in
                """
                {"id":"post_\(number)","authorId":"user_1","text":"a","image":null,"createdAt":"2026-01-01T00:00:00Z",\
                "editedAt":null,"likeCount":0,"likedByMe":false,"version":1,"updatedAt":"2026-01-01T00:00:00Z"}
                """
            }
            return "{\"items\":[\(items.joined(separator: ","))],\"nextCursor\":null,\"previousCursor\":null}"
        }
        let transport = ScriptedTransport { request, number in
            let isNew = number > 2
            let fields: Fields = [.contentType: "application/json", .etag: isNew ? "\"2\"" : "\"1\""]
            if !isNew, request.fields[.ifNoneMatch] == "\"1\"" {
                return .text("", status: .notModified, fields: fields)
            }
            return .text(page(isNew ? [3, 2, 1] : [2, 1]), fields: fields)
        }
        func open() async throws -> LarderClient {
            var configuration = LarderClient.Configuration(transport: transport)
            configuration.services = .none
            configuration.followsLive = false
            (configuration.cache.wallClock, configuration.cache.monotonicClock) = (clock, clock)
            configuration.cache.mayUseNetwork = { isOnline.withLock { $0 } }
            return try await LarderClient(
                server: "http://test",
                account: "ana",
                directory: directory.path,
                configuration
            )
        }
        func text(_ snapshot: Snapshot<Timeline<Post>.List>) -> String {
            let age = snapshot.validatedAt.map { "\((clock.now - $0).components.seconds) s old" } ?? "no age"
            let state = snapshot.isFetching ? "asking" : "idle"
            return "\(snapshot.value?.items.count ?? 0) posts, \(age), \(state), \(transport.requests.count) requests"
        }
        let first = try await open()
        _ = try await first.cache.value(first.feed.newest)
        first.close()
        clock.advance(by: .seconds(30))
        // A new process, with fresh posts on disk.
        let second = try await open()
        let cold = try await second.cache.snapshot(second.feed.newest)
        #expect(cold.source == .disk && text(cold) == "2 posts, 30 s old, idle, 1 requests")
        second.close()
        clock.advance(by: .seconds(60))
        // Without a network they stay, and a request follows its return. It has the validator, and nothing has changed.
        isOnline.withLock { $0 = false }
        let third = try await open()
        let seen = SequenceRecorder(third.feed.snapshots())
        await seen.wait { $0.last?.refreshError?.code == .offline }
        #expect(seen.elements.last.map(text) == "2 posts, 90 s old, idle, 1 requests")
        isOnline.withLock { $0 = true }
        third.cache.networkReturned()
        await seen.wait { $0.last?.freshness == .fresh }
        #expect(seen.elements.last.map(text) == "2 posts, 0 s old, idle, 2 requests")
        #expect(transport.requests.last?.fields[.ifNoneMatch] == "\"1\"")
        seen.cancel()
        third.close()
        clock.advance(by: .seconds(61))
        // Stale posts are shown while the server is asked; new ones are stored, then shown.
        let fourth = try await open()
        let later = SequenceRecorder(fourth.feed.snapshots())
        await later.wait { $0.last?.value?.items.count == 3 }
        #expect(later.elements.first?.source == .disk && later.elements.first?.value?.items.count == 2)
        later.cancel()
        fourth.close()
        let fifth = try await open()
        #expect(text(try await fifth.cache.snapshot(fifth.feed.newest)) == "3 posts, 0 s old, idle, 3 requests")
        fifth.close()
        #expect(
            try drawnSteps(of: "A cold start of the demo's feed", in: "ReadsAndFreshness") == [
                "The feed opens in a new process", "Posts on disk are shown, with their age",
                "Are they fresh? No request", "Offline? They stay; a request follows the return",
                "The server is asked, with the validator", "Unchanged (304)? Only the times are stored",
                "New posts are stored, then shown",
            ]
        )
    }

    @Test func `what is drawn of a memory warning is what the guard does, in this order`() throws {
        let steps = Mutex<[String]>([])
        let clock = ManualClock()
        let source = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: source, clock: clock) { event in
            let word =
                switch event {
                case .level(let level, _, _): "level \(level)"
                case .usage(_, let usage): "report \(usage.cost) \(usage.requests) \(usage.loads)"
                case .reaction(_, let loads, _): "cancelled \(loads)"
                }
            steps.withLock { $0.append(word) }
        }
        defer { memory.close() }
        let registration = memory.register(
            MemoryReaction(
                "watch",
                measure: {
                    steps.withLock { $0.append("measure") }
                    return MemoryReaction.Usage(cost: 9, requests: 1, loads: 2)
                },
                stop: { limits in
                    steps.withLock {
                        $0.append("stop, prefetch \(limits.allowsPrefetch), cancels \(limits.cancelsLoads)")
                    }
                    return limits.cancelsLoads ? 2 : 0
                },
                release: { limits in
                    steps.withLock { $0.append("release to \(limits.cacheShare)") }
                    return 0
                }
            )
        )
        source.signal(.warning)
        source.signal(.critical)
        source.signal(.normal)
        clock.advance(by: .seconds(5))
        memory.tick()
        #expect(memory.limits.cacheShare == 0.25 && !memory.limits.allowsPrefetch)
        withExtendedLifetime(registration) {}
        #expect(
            steps.withLock { $0 } == [
                "level warning", "measure", "report 9 1 2", "stop, prefetch false, cancels true", "release to 0.5",
                "cancelled 2", "level critical", "measure", "report 9 1 2", "stop, prefetch false, cancels true",
                "release to 0.0", "cancelled 2", "level normal", "stop, prefetch false, cancels false",
                "release to 0.25",
            ]
        )
        #expect(
            try drawnSteps(of: "When memory is short:", in: "Images") == [
                "The system reports pressure", "Bytes, requests and loads are counted",
                "The warning is reported with these figures", "Prefetching stops, fewer loads run at once",
                "Loads of pictures out of view are cancelled",
                "Half leave memory; all if it is critical",
                "After five quiet seconds limits grow in steps, prefetching last",
            ]
        )
    }
}
