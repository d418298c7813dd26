import Foundation
import Larder
import LarderCoding
import LarderModels
import LarderTime

/// `larder images`: fetches a feed's pictures, tells where they came from, and draws one.
struct ImagesCommand {
    let kitchen: Kitchen
    private let tally = ImageTally()
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run(draw: String?) async throws {
        if let draw { try await self.draw(draw) } else { try await prefetch() }
    }

    private func pipeline() throws -> ImagePipeline {
        let disk = try DiskStore(DiskStore.Configuration(directory: kitchen.picturesDirectory))
        var configuration = ImagePipeline.Configuration(transport: kitchen.transport, disk: disk)
        let (tally, recorder) = (tally, kitchen.recorder)
        configuration.onEvent = { event in
            tally.note(event)
            recorder.note(event)
        }
        return ImagePipeline(configuration)
    }

    private func request(_ path: String, side: Int, _ placeholder: String = "") -> ImageRequest {
        // What the network is good for decides how large a rendition is worth its bytes.
        let width = kitchen.monitor.conduct.pixels(side)
        let url = (path.hasPrefix("http") ? path : kitchen.arguments.server + path) + "?width=\(width)"
        var request = ImageRequest(url: url, target: ImageTarget(width: width, height: width))
        request.placeholder = Self.bytes(ofDataURL: placeholder)
        if !kitchen.connection.isOpen { request.cache = .onlyCached }
        return request
    }

    private static func bytes(ofDataURL text: String) -> [UInt8] {
        guard text.hasPrefix("data:"), let comma = text.firstIndex(of: ",") else { return [] }
        return Base64.decode(String(text[text.index(after: comma)...])) ?? []
    }

    // MARK: Prefetching

    private func prefetch() async throws {
        let feed = try await kitchen.read(kitchen.client.feed.newest, called: "the feed")
        let pictured = (feed.snapshot.value?.items ?? []).filter { $0.image != nil }
        let posts = pictured.prefix(kitchen.arguments.limit ?? 50)
        let requests = posts.compactMap { post in
            post.image.map { request($0.url, side: kitchen.arguments.width ?? 320, $0.placeholder) }
        }
        guard !requests.isEmpty else {
            if terminal.isJSON { return terminal.json(.members([("pictures", .integer(0))])) }
            return terminal.line("No post of the feed has a picture.")
        }
        let pipeline = try pipeline()
        let start = kitchen.uptime.uptime
        let (steps, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        tally.onStep { continuation.yield($0) }
        let terminal = terminal
        let total = Set(requests.map(\.url)).count
        let drawing = Task {
            for await done in steps where terminal.isTerminal {
                terminal.write("\r" + terminal.paint(ProgressBar.text(done, of: total), .cyan) + "\u{1b}[K")
            }
        }
        _ = await pipeline.prefetch(requests).finish()
        continuation.finish()
        await drawing.value
        if terminal.isTerminal { terminal.write("\r\u{1b}[K") }
        let prefetched = (tally.totals, kitchen.uptime.uptime - start)
        // Now they are shown, as on a screen: nothing has to be loaded or decoded again.
        var shown = 0
        for request in requests {
            do {
                _ = try await pipeline.image(for: request)
                shown += 1
            } catch {
                // What failed when it was fetched is told of below, with all that did.
                if !error.isRemembered { terminal.note("\(request.url) cannot be shown: \(error.description)") }
            }
        }
        try tell(posts.count, total, prefetched, tally.totals, shown, pipeline.memoryCost)
    }

    private func tell(
        _ posts: Int,
        _ total: Int,
        _ prefetched: (totals: ImageTally.Totals, time: Duration),
        _ after: ImageTally.Totals,
        _ shown: Int,
        _ memory: Int
    ) throws {
        let totals = prefetched.totals
        let fromMemory = after.memory - totals.memory
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("posts", .integer(Int64(posts))), ("pictures", .integer(Int64(total))),
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
            terminal.paint(ProgressBar.text(total - totals.failures.count, of: total), .cyan)
                + "  pictures of \(posts) posts in \(Ages.text(prefetched.time))"
        )
        terminal.line("  network  \(totals.network) (\(Sizes.text(Int64(totals.bytes))))")
        terminal.line("  disk     \(totals.disk)\(totals.revalidated > 0 ? ", \(totals.revalidated) confirmed" : "")")
        terminal.line("  memory   \(fromMemory) when they were shown (\(Sizes.text(Int64(memory))) of pixels)")
        guard let failure = totals.failures.first else { return }
        terminal.line(terminal.paint("  failed   \(totals.failures.count): \(failure)", .red))
        if totals.failures.count == total {
            let server = kitchen.arguments.server
            throw Failure("No picture could be shown. Look whether \(server) answers (larder doctor).")
        }
    }

    // MARK: Drawing

    private func draw(_ name: String) async throws {
        var path = "/v1/images/\(HTTPSource.escape(name))"
        var words = name
        if name.hasPrefix("post_") {
            let post = try await kitchen.read(kitchen.client.feed.post(name), called: name).snapshot.value
            guard let image = post?.image else {
                throw Failure("\(name) has no picture. ▣ in larder feed marks those that do.")
            }
            path = image.url
            words = image.alt
        }
        let (columns, rows) = terminal.isTerminal ? terminal.size : (64, 32)
        let width = kitchen.arguments.width ?? columns
        var wanted = request(path, side: width)
        let height = kitchen.arguments.width == nil ? max(2, (rows - 3) * 2) : width * 2
        wanted.target = ImageTarget(width: width, height: height)
        wanted.priority = .highest
        let start = kitchen.uptime.uptime
        let image: DecodedImage
        do { image = try await pipeline().image(for: wanted) } catch let error as ImageError {
            throw Failure(
                error.code == .notCached
                    ? "The picture is not stored here. Ask \(kitchen.arguments.server) once, without --offline."
                    : error.description
            )
        }
        let time = kitchen.uptime.uptime - start
        let totals = tally.totals
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
        let lines = terminal.hasColour ? HalfBlocks.lines(image) : HalfBlocks.shades(image)
        for line in lines { terminal.line(line) }
        terminal.line(
            TextWidth.clean(words)
                + terminal.paint(
                    "  \(image.sourceWidth)×\(image.sourceHeight) shown at \(image.width)×\(image.height), "
                        + "from \(origin) in \(Ages.text(time))",
                    .dim
                )
        )
    }
}
