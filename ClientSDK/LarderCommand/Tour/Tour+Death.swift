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
        let directory = directory + "/death"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try await killChild(directory)
        let cache = try LarderCache(directory: directory)
        defer { cache.close() }
        cache.outbox.register(TourDeath.like)
        let article = cache.stored(TourDeath.article)
        let code = cache.stored(TourDeath.code)
        let likes = cache.outbox.entries.count
        let next = try await cache.snapshot(TourDeath.code)
        func cell(_ value: String?) -> TourValue { .text(value ?? "gone") }
        let (before, unsent) = ("an article, read an hour ago", "1 like to send")
        chapter.exhibits = [
            .table(
                TourTable(
                    title: "What is left",
                    columns: ["", "article (disk)", "code (memory only)", "outbox (disk)"],
                    rows: [
                        [.text("before the kill"), .text(before), .text("a one-time code"), .text(unsent)],
                        [
                            .text("in a new process"), cell(article?.value), cell(code?.value),
                            cell(likes > 0 ? "\(likes) like to send" : nil),
                        ],
                        [.text("the code is read again"), .none, cell(next.value), .none],
                    ]
                )
            )
        ]
        chapter.answer =
            "The article \(article == nil ? "was lost" : "was left"), the code \(code == nil ? "was gone" : "was left"), and \(likes) unsent "
            + "like was kept: what a person has done is never only in memory."
        return chapter
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
