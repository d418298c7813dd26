import Foundation
import Larder
import Measuring

/// Measures opening a cache, and the first list in a new process.
func measureStarts(_ directory: String) async throws {
    let clock = ContinuousClock()
    do {
        let larder = try LarderCache(directory: directory)
        for start in stride(from: 0, to: 100_000, by: 1_000) {
            try await larder.update { update in for number in start..<(start + 1_000) { update.put(post(number)) } }
        }
        _ = try await larder.value(feed("feed", from: 42_000))
        larder.close()
        larder.disk?.suspend()
    }
    var open = Samples()
    for _ in 0..<31 {
        let start = clock.now
        let larder = try LarderCache(directory: directory)
        open.add(clock.now - start, operations: 1)
        larder.close()
    }
    open.show("open a cache with 100,000 entities on disk", goal: "5 ms")
    var (inside, whole) = (Samples(), Samples())
    for _ in 0..<15 {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["cold", directory]
        process.standardOutput = pipe
        let start = clock.now
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        whole.add(clock.now - start, operations: 1)
        process.waitUntilExit()
        guard let time = Int64(String(decoding: output, as: UTF8.self)) else { continue }
        inside.add(.nanoseconds(time), operations: 1)
    }
    inside.show("cold process: open, first snapshot of a list of 50, from main", goal: "10 ms")
    whole.show("    with starting the process and loading libraries")
}

/// Runs in the child process: opens the cache, reads a list and prints the time in nanoseconds.
func coldStart(_ directory: String) async throws {
    let clock = ContinuousClock()
    let start = clock.now
    let larder = try LarderCache(directory: directory)
    let snapshot = try await larder.snapshot(feed("feed", from: 42_000), .cacheOnly)
    let time = clock.now - start
    precondition(snapshot.value?.items.count == 50, "The stored list is missing.")
    FileHandle.standardOutput.write(Data("\(time.nanosecondsOfAll)".utf8))
}

extension Duration {
    fileprivate var nanosecondsOfAll: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
