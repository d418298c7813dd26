import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder images`: fetches the images of the feed and shows which tier served them.
struct ImagesCommand {
    let context: CommandContext
    private var terminal: Terminal { context.terminal }
    private var images: ImagePipeline { context.client.images }

    func run() async throws {
        let (feed, limit) = (context.client.feed, context.arguments.limit ?? 50)
        let (posts, _) = try await context.read(feed.newest, feed.timeline, atMost: limit, called: "the feed")
        // On a poor network a smaller rendition is requested.
        let width = context.monitor.behavior.pixels(context.arguments.width ?? 320)
        let requests = posts.compactMap(\.image).map { image in
            var request = context.client.imageRequest(for: image, width: width)
            if !context.connection.isOpen { request.cache = .onlyCached }
            return request
        }
        guard !requests.isEmpty else {
            if terminal.isJSON { return terminal.json(.members([("images", .integer(0))])) }
            return terminal.line("No post of the feed has an image.")
        }
        let start = context.uptime.uptime
        let failures = await prefetch(requests)
        let time = context.uptime.uptime - start
        var shown = 0
        // Reads each image again, as a screen would: from memory.
        for request in requests {
            do throws(ImageError) {
                _ = try await images.image(for: request)
                shown += 1
            } catch {
                // Other failures are reported below.
                if failures[request.url] == nil {
                    terminal.note("\(request.url) cannot be shown: \(error.description)")
                }
            }
        }
        try report(requests, failures, time, shown: shown)
    }

    /// Loads the images at once. None is kept here, so that they need no more memory than the pipeline may use.
    private func prefetch(_ requests: [ImageRequest]) async -> [String: ImageError] {
        await withTaskGroup(of: (String, ImageError?).self) { group in
            for var request in requests {
                request.priority = .prefetch
                group.addTask { [request, images] in
                    do throws(ImageError) {
                        _ = try await images.image(for: request)
                        return (request.url, nil)
                    } catch { return (request.url, error) }
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private func report(_ requests: [ImageRequest], _ failures: [String: ImageError], _ time: Duration, shown: Int)
        throws
    {
        let features = context.recorder.telemetry.totals.features
        let (read, prefetched) = (features["images"], features["images.prefetch"])
        let total = Set(requests.map(\.url)).count
        let network = prefetched?.reads[.network]?.hits ?? 0
        let disk = prefetched?.reads[.disk]?.hits ?? 0
        let memory = read?.reads[.memory]?.hits ?? 0
        let (revalidated, bytes) = (read?.revalidations ?? 0, read?.bytesReceived ?? 0)
        if terminal.isJSON {
            terminal.json(
                .members([
                    ("posts", .integer(Int64(requests.count))), ("images", .integer(Int64(total))),
                    ("fromDisk", .integer(Int64(disk))), ("fromNetwork", .integer(Int64(network))),
                    ("revalidated", .integer(Int64(revalidated))), ("failed", .integer(Int64(failures.count))),
                    ("bytes", .integer(Int64(bytes))),
                    ("milliseconds", .integer(time.nanosecondsSaturating / 1_000_000)),
                    ("shown", .integer(Int64(shown))), ("shownFromMemory", .integer(Int64(memory))),
                    ("pixelBytes", .integer(Int64(images.memoryCost))),
                ])
            )
        } else {
            let loaded = total - failures.count
            terminal.line("\(loaded) of \(total) images of \(requests.count) posts in \(TimeText.text(time))")
            terminal.line("  network  \(network) (\(SizeText.text(Int64(bytes))))")
            terminal.line("  disk     \(disk)\(revalidated > 0 ? ", \(revalidated) revalidated" : "")")
            terminal.line("  memory   \(memory) when shown (\(SizeText.text(Int64(images.memoryCost))) of pixels)")
            if let (url, error) = failures.min(by: { $0.key < $1.key }) {
                let text = "  failed   \(failures.count): \(url): \(error.description)"
                terminal.line(terminal.paint(text, .red))
            }
        }
        guard failures.count == total else { return }
        throw Failure("No image could be loaded. Check that \(context.arguments.server) answers (larder doctor).")
    }
}
