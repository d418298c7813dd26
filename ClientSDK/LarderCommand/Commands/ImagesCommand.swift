import Foundation
import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder images`: fetches the images of the feed and shows which tier served them.
struct ImagesCommand {
    let context: CommandContext
    private let counts = ImageCounts()
    private var terminal: Terminal { context.terminal }

    init(_ context: CommandContext) { self.context = context }

    /// A pipeline as that of the client, whose events are counted.
    private func pipeline() -> ImagePipeline {
        var configuration = context.client.images.configuration
        let (counts, telemetry) = (counts, context.recorder.telemetry)
        configuration.onEvent = { event in
            counts.note(event)
            telemetry.record(event)
        }
        return ImagePipeline(configuration)
    }

    private func request(_ path: String, side: Int) -> ImageRequest {
        // On a poor network a smaller rendition is requested.
        let width = context.monitor.behavior.pixels(side)
        let url = (path.hasPrefix("http") ? path : context.arguments.server + path) + "?width=\(width)"
        var request = ImageRequest(url: url, target: ImageTarget(width: width, height: width))
        if !context.connection.isOpen { request.cache = .onlyCached }
        return request
    }

    func run() async throws {
        let (feed, limit) = (context.client.feed, context.arguments.limit ?? 50)
        let (read, _) = try await context.read(feed.newest, feed.timeline, atMost: limit, called: "the feed")
        let posts = read.filter { $0.image != nil }
        let requests = posts.compactMap { post in
            post.image.map { request($0.url, side: context.arguments.width ?? 320) }
        }
        guard !requests.isEmpty else {
            if terminal.isJSON { return terminal.json(.members([("images", .integer(0))])) }
            return terminal.line("No post of the feed has an image.")
        }
        let pipeline = pipeline()
        let start = context.uptime.uptime
        let total = Set(requests.map(\.url)).count
        // All at once. None is kept here, so that they need no more memory than the pipeline may use.
        let failures = await withTaskGroup(of: (String, ImageError?).self) { group in
            for var request in requests {
                request.priority = .prefetch
                group.addTask { [request] in
                    do throws(ImageError) {
                        _ = try await pipeline.image(for: request)
                        return (request.url, nil)
                    } catch { return (request.url, error) }
                }
            }
            return await group.reduce(into: [String: ImageError]()) { $0[$1.0] = $1.1 }
        }
        let prefetched = (counts.totals, context.uptime.uptime - start)
        // Reads each image again, as a screen would: from memory.
        var shown = 0
        for request in requests {
            do throws(ImageError) {
                if let failure = failures[request.url] { throw failure }
                _ = try await pipeline.image(for: request)
                shown += 1
            } catch {
                // A failed download is reported below.
                let isReported = failures[request.url] != nil && error.code != .notCached
                if !isReported { terminal.note("\(request.url) cannot be shown: \(error.description)") }
            }
        }
        try report(posts.count, total, prefetched, counts.totals, shown, pipeline.memoryCost)
    }

    private func report(
        _ posts: Int,
        _ total: Int,
        _ prefetched: (totals: ImageCounts.Totals, time: Duration),
        _ after: ImageCounts.Totals,
        _ shown: Int,
        _ memory: Int
    ) throws {
        let totals = prefetched.totals
        let fromMemory = after.memory - totals.memory
        if terminal.isJSON {
            terminal.json(
                .members([
                    ("posts", .integer(Int64(posts))), ("images", .integer(Int64(total))),
                    ("fromDisk", .integer(Int64(totals.disk))), ("fromNetwork", .integer(Int64(totals.network))),
                    ("revalidated", .integer(Int64(totals.revalidated))),
                    ("failed", .integer(Int64(totals.failures.count))), ("bytes", .integer(Int64(totals.bytes))),
                    ("milliseconds", .integer(prefetched.time.nanosecondsSaturating / 1_000_000)),
                    ("shown", .integer(Int64(shown))), ("shownFromMemory", .integer(Int64(fromMemory))),
                    ("pixelBytes", .integer(Int64(memory))),
                ])
            )
        } else {
            show(posts, total, prefetched, fromMemory, memory)
        }
        guard totals.failures.count == total else { return }
        throw Failure("No image could be loaded. Check that \(context.arguments.server) answers (larder doctor).")
    }

    private func show(
        _ posts: Int,
        _ total: Int,
        _ prefetched: (totals: ImageCounts.Totals, time: Duration),
        _ fromMemory: Int,
        _ memory: Int
    ) {
        let totals = prefetched.totals
        terminal.line(
            "\(total - totals.failures.count) of \(total) images of \(posts) posts in \(TimeText.text(prefetched.time))"
        )
        terminal.line("  network  \(totals.network) (\(SizeText.text(Int64(totals.bytes))))")
        terminal.line("  disk     \(totals.disk)\(totals.revalidated > 0 ? ", \(totals.revalidated) revalidated" : "")")
        terminal.line("  memory   \(fromMemory) when shown (\(SizeText.text(Int64(memory))) of pixels)")
        guard let failure = totals.failures.first else { return }
        terminal.line(terminal.paint("  failed   \(totals.failures.count): \(failure)", .red))
    }
}
