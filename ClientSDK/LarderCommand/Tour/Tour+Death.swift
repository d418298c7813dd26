import Foundation
import Glibc
import Larder

/// The values of the chapter about a killed process. A child process of the tour stores them.
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
    /// Three things in two tiers, and the death of their process.
    func death() async throws -> TourChapter {
        var chapter = begin(
            .death,
            "Another process stores an article, a one-time code that must not reach the disk, and a like that was not sent yet. It is killed "
                + "with SIGKILL. What does the next process find?"
        )
        let cache = try await cacheAfterKill("death")
        defer { cache.close() }
        cache.outbox.register(TourDeath.like)
        let article = cache.stored(TourDeath.article)
        let code = cache.stored(TourDeath.code)
        let likes = cache.outbox.entries.count
        let next = try await cache.snapshot(TourDeath.code)
        func box(_ label: String, _ value: String?) -> TourSteps.Box {
            TourSteps.Box(label: label, text: value ?? "gone", tone: value == nil ? .absent : .good)
        }
        chapter.exhibits = [
            .steps(
                TourSteps(
                    title: "What is left",
                    steps: [
                        TourSteps.Step(
                            caption: "Before the kill",
                            boxes: [
                                box("article (disk)", "an article, read …"),
                                box("code (memory only)", "a one-time code"),
                                box("outbox (disk)", "1 like to send"),
                            ]
                        ),
                        TourSteps.Step(
                            caption: "After the kill, in a new process, before any request",
                            boxes: [
                                box("article (disk)", article?.value.map { String($0.prefix(16)) + " …" }),
                                box("code (memory only)", code?.value),
                                box("outbox (disk)", likes > 0 ? "\(likes) like to send" : nil),
                            ]
                        ),
                        TourSteps.Step(
                            caption: "The next read of the code asks the server",
                            boxes: [box("code (\(next.source?.rawValue ?? "none"))", next.value)]
                        ),
                    ]
                )
            )
        ]
        chapter.answer =
            "The article \(article == nil ? "was lost" : "was left"), the code \(code == nil ? "was gone" : "was left"), and \(likes) unsent "
            + "like was kept: what a person has done is never only in memory."
        return chapter
    }

    /// The cache in which a child process has stored three things before it was killed.
    func cacheAfterKill(_ name: String) async throws -> LarderCache {
        let directory = directory + "/" + name
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
