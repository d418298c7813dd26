import Foundation
import Glibc
import Larder
import LarderDemo
import LarderServer

/// What a child process of the tour stores before it is killed.
enum TourDeath {
    static let article = Resource<String>("article") { _ in .value("an article of the server") }
    static let code: Resource<String> = {
        var code = Resource<String>("code") { _ in .value("a new code of the server") }
        code.isMemoryOnly = true
        return code
    }()
    static let like = WriteBehind<String, Bool>(
        "tour-like",
        scope: { $0 },
        changes: { _, _ in },
        send: { attempts in attempts.map { _ in .accepted(true) } }
    )

    /// The child: stores three things, says so, and waits to be killed.
    static func child(_ directory: String, _ terminal: Terminal) async throws {
        let cache = try LarderCache(directory: directory)
        cache.outbox.register(like)
        try await cache.put("an article, read an hour ago", for: article)
        try await cache.put("a one-time code", for: code)
        try cache.enqueue("post_1", like)
        terminal.line("stored")
        // Ends with the pipe of the parent at the latest.
        while readLine() != nil {}
    }
}

extension TourScene {
    /// One value from memory, disk and network, and what is left of three after the death of their process.
    func tiers() async throws -> TourChapter {
        let world = try world()
        let client = try await client(world)
        defer { client.close() }
        let resource = client.profiles.resource("user_3")
        let first = try await cost(world) { try await client.cache.value(resource) }
        let size = try JSONEncoder().encode(first.value).count
        let memory = try await times(200, calls: 200) { _ = try await client.cache.value(resource) }
        var seen: Set<String> = []
        let disk = try await times(200) {
            client.cache.trimMemory(toBytes: 0)
            seen.insert(try await client.cache.snapshot(resource, .cacheOnly).source?.rawValue ?? "none")
        }
        guard seen == ["disk"] else { throw Failure("A read after a trim of memory came from \(seen.sorted()).") }
        let local = try await times(50) { _ = try await client.cache.snapshot(resource, .networkOnly) }
        try world.set(.threeG)
        let mobile = try await times(8) { _ = try await client.cache.snapshot(resource, .networkOnly) }
        let times = [("memory", memory), ("disk", disk), ("server on this machine", local), ("server over 3g", mobile)]
        let left = try await cacheAfterKill()
        defer { left.close() }
        left.outbox.register(TourDeath.like)
        let article = left.stored(TourDeath.article) == nil ? "no" : "yes"
        let code = left.stored(TourDeath.code) == nil ? "no" : "yes"
        let likes = left.outbox.entries.count
        /// With two figures: more are different at each run.
        func factor(_ times: TelemetryTotals.Histogram) -> String {
            let least = Duration.nanoseconds(1)
            let exact = (mobile.percentile(0.5) ?? least) / max(times.percentile(0.5) ?? least, least)
            let unit = pow(10, max(0, log10(max(1, exact)).rounded(.down) - 1))
            let factor = Int((exact / unit).rounded() * unit)
            return factor < 10_000 ? "\(factor)" : "\(factor / 1_000) thousand"
        }
        return TourChapter(
            name: .tiers,
            question:
                "One profile is read from memory, from disk and from the server. How long does each take? Another process stores an "
                + "article, a one-time code that must not reach the disk, and a like that was not sent yet, and is killed with SIGKILL. What "
                + "does the next process find?",
            tables: [
                TourTable(
                    title: "One profile of \(size) bytes",
                    columns: ["from", "median", "10 %", "90 %"],
                    rows: times.map { name, times in
                        [.text(name)] + [0.5, 0.1, 0.9].map { TourValue(times.percentile($0)) }
                    }
                ),
                TourTable(
                    title: "After SIGKILL, before any request",
                    columns: ["what", "tier", "left"],
                    rows: [
                        [.text("article"), .text("disk"), .text(article)],
                        [.text("code"), .text("memory"), .text(code)],
                        [.text("unsent like"), .text("outbox, on disk"), .text(likes == 1 ? "yes" : "no")],
                    ]
                ),
            ],
            answer:
                "A memory hit is some \(factor(memory)) times as fast as the server over 3g, a disk hit \(factor(disk)) times. After the "
                + "kill the article was \(article == "yes" ? "left" : "lost"), the code was \(code == "yes" ? "left" : "gone"), and \(likes) "
                + "unsent like was kept: what a person has done is never only in memory."
        )
    }

    /// The cache in which a child process has stored three things before it was killed.
    private func cacheAfterKill() async throws -> LarderCache {
        let directory = directory + "/killed"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try await killChild(directory)
        return try LarderCache(directory: directory)
    }

    /// Starts the child, waits until it has stored its values, and kills it.
    private func killChild(_ directory: String) async throws {
        let child = Process()
        child.executableURL = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        child.arguments = ["tour", "--child", directory]
        let (input, output) = (Pipe(), Pipe())
        child.standardInput = input
        child.standardOutput = output
        try child.run()
        let said = output.fileHandleForReading.availableData
        kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()
        guard String(decoding: said, as: UTF8.self).contains("stored"), child.terminationReason == .uncaughtSignal
        else {
            throw Failure(
                "The child process of the tour ended with status \(child.terminationStatus) before it was killed."
            )
        }
    }
}
