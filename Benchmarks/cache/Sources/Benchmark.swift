// Measures reads of the cache, from memory and from a cold start: `swift run -c release` in this directory;
// `swift run -c release cache-benchmark lists` measures changes of lists alone, also in lists ten times as long;
// with `main`, calls on the main actor alone.
//
// Prints the median, the best and the worst of many runs, because the speed of a shared machine varies.

import Foundation
import Larder
import Measuring
import Synchronization

@main
enum Benchmark {
    /// Runs the main actor in the main thread's run loop, as an application with windows does: the thread of an asynchronous `main`
    /// may change at each suspension.
    static func main() {
        Task { @MainActor in
            do {
                try await measure()
                exit(0)
            } catch {
                say("failed: \(error)")
                exit(1)
            }
        }
        while true { RunLoop.main.run(until: .distantFuture) }
    }

    @MainActor
    private static func measure() async throws {
        if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "cold" {
            return try await coldStart(CommandLine.arguments[2])
        }
        let scratch = NSTemporaryDirectory() + "larder-cache-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: scratch) }
        let isOfMain = CommandLine.arguments.last == "main"
        if CommandLine.arguments.last == "queries" {
            try await measureQueries(scratch + "/queries")
            try await measureIndexing(scratch + "/indexing")
            return try await measureScope(scratch + "/scope")
        }
        if CommandLine.arguments.last != "lists", !isOfMain {
            try await measureReads()
            try await measureCrowd()
            try await measureTaps(nil)
            try await measureTaps(scratch + "/taps")
            try await measureStarts(scratch + "/store")
            try await measureQueries(scratch + "/queries")
            try await measureIndexing(scratch + "/indexing")
            try await measureScope(scratch + "/scope")
        }
        if !isOfMain { try await measureEdits(scratch) }
        try await measureMainActor(scratch + "/main")
        if !isOfMain { try await measureDrain(scratch + "/drain", factor: 1) }
        if CommandLine.arguments.last == "lists" { try await measureDrain(scratch + "/long", factor: 10) }
    }
}
