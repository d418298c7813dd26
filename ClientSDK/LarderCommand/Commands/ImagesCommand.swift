import Foundation
import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder images`: fetches the images of the feed and shows which tier served them, or draws one.
struct ImagesCommand {
    let context: CommandContext
    private let counts = ImageCounts()
    private var terminal: Terminal { context.terminal }

    init(_ context: CommandContext) { self.context = context }

    func run(draw: String?) async throws {
        if let draw { try await self.draw(draw) } else { try await prefetch() }
    }

    private func pipeline() throws -> ImagePipeline {
        let disk = try DiskStore(DiskStore.Configuration(directory: context.imagesDirectory))
        var configuration = ImagePipeline.Configuration(transport: context.transport, disk: disk)
        let (counts, telemetry) = (counts, context.recorder.telemetry)
        configuration.onEvent = { event in
            counts.note(event)
            telemetry.record(event)
        }
        return ImagePipeline(configuration)
    }

    private func request(_ path: String, side: Int, _ placeholder: String = "") -> ImageRequest {
        // On a poor network a smaller rendition is requested.
        let width = context.monitor.behavior.pixels(side)
        let url = (path.hasPrefix("http") ? path : context.arguments.server + path) + "?width=\(width)"
        var request = ImageRequest(url: url, target: ImageTarget(width: width, height: width))
        request.placeholder = Self.bytes(ofDataURL: placeholder)
        if !context.connection.isOpen { request.cache = .onlyCached }
        return request
    }

    private static func bytes(ofDataURL text: String) -> [UInt8] {
        guard text.hasPrefix("data:"), let comma = text.firstIndex(of: ",") else { return [] }
        return Base64.decode(String(text[text.index(after: comma)...])) ?? []
    }

    // MARK: Prefetching

    private func prefetch() async throws {
        let feed = try await context.read(context.client.feed.newest, called: "the feed")
        let postsWithImage = (feed.snapshot.value?.items ?? []).filter { $0.image != nil }
        let posts = postsWithImage.prefix(context.arguments.limit ?? 50)
        let requests = posts.compactMap { post in
            post.image.map { request($0.url, side: context.arguments.width ?? 320, $0.placeholder) }
        }
        guard !requests.isEmpty else {
            if terminal.isJSON { return terminal.json(.members([("images", .integer(0))])) }
            return terminal.line("No post of the feed has an image.")
        }
        let pipeline = try pipeline()
        let start = context.uptime.uptime
        let total = Set(requests.map(\.url)).count
        _ = await pipeline.prefetch(requests).finish()
        let prefetched = (counts.totals, context.uptime.uptime - start)
        // Reads each image again, as a screen would: from memory.
        var shown = 0
        for request in requests {
            do {
                _ = try await pipeline.image(for: request)
                shown += 1
            } catch {
                // A failure of the prefetch is reported below.
                if !error.isRemembered { terminal.note("\(request.url) cannot be shown: \(error.description)") }
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
            return terminal.json(
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
        }
        terminal.line(
            "\(total - totals.failures.count) of \(total) images of \(posts) posts in \(TimeText.text(prefetched.time))"
        )
        terminal.line("  network  \(totals.network) (\(SizeText.text(Int64(totals.bytes))))")
        terminal.line("  disk     \(totals.disk)\(totals.revalidated > 0 ? ", \(totals.revalidated) revalidated" : "")")
        terminal.line("  memory   \(fromMemory) when shown (\(SizeText.text(Int64(memory))) of pixels)")
        guard let failure = totals.failures.first else { return }
        terminal.line(terminal.paint("  failed   \(totals.failures.count): \(failure)", .red))
        if totals.failures.count == total {
            let server = context.arguments.server
            throw Failure("No image could be loaded. Check that \(server) answers (larder doctor).")
        }
    }

    // MARK: Drawing

    /// The size in pixels at which an image is drawn: the width of the terminal, or `--width` columns.
    private var target: ImageTarget {
        let (columns, rows) = terminal.isTerminal ? terminal.size : (64, 32)
        let width = context.arguments.width ?? columns
        // A cell is about twice as high as it is wide.
        let height = context.arguments.width == nil ? max(1, rows - 3) : width
        return ImageTarget(width: width, height: height * 2)
    }

    private func draw(_ name: String) async throws {
        var path = "/v1/images/\(HTTPSource.escape(name))"
        var title = name
        if name.hasPrefix("post_") {
            let post = try await context.read(context.client.feed.post(name), called: name).snapshot.value
            guard let image = post?.image else {
                throw Failure("\(name) has no image. 'larder feed' marks posts with an image by ▣.")
            }
            path = image.url
            title = image.alt
        }
        let target = target
        var wanted = request(path, side: target.width)
        wanted.target = target
        wanted.priority = .highest
        let start = context.uptime.uptime
        let image: DecodedImage
        do { image = try await pipeline().image(for: wanted) } catch let error as ImageError {
            throw Failure(
                error.code == .notCached
                    ? "The image is not stored. Run once without --offline to ask \(context.arguments.server)."
                    : error.description
            )
        }
        let time = context.uptime.uptime - start
        let totals = counts.totals
        let origin = totals.network > 0 ? "network" : totals.disk > 0 ? "disk" : "memory"
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("width", .integer(Int64(image.width))), ("height", .integer(Int64(image.height))),
                    ("sourceWidth", .integer(Int64(image.sourceWidth))),
                    ("sourceHeight", .integer(Int64(image.sourceHeight))), ("source", .string(origin)),
                    ("rgba", .string(Base64.encode(image.pixels))),
                ])
            )
        }
        for line in terminal.hasColor ? HalfBlocks.lines(image) : HalfBlocks.shades(image) { terminal.line(line) }
        terminal.line(
            TextWidth.clean(title)
                + terminal.paint(
                    "  \(image.sourceWidth)×\(image.sourceHeight) shown at \(image.width)×\(image.height), "
                        + "from \(origin) in \(TimeText.text(time))",
                    .dim
                )
        )
    }
}
