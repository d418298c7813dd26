import Foundation
import Larder
import LarderDemo
import Measuring

/// Measures the time from the start of a process to 50 posts, without a network.
func measureColdStarts(_ stage: Stage) async throws {
    let client = try await stage.client("cold")
    _ = try await client.cache.value(client.feed.newest)
    client.close()
    client.cache.disk?.suspend()
    let clock = SystemMonotonicClock()
    var (inside, whole) = (Samples(), Samples())
    for _ in 0..<21 {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["cold", stage.directory]
        process.standardOutput = pipe
        let start = clock.uptime
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let times = String(decoding: output, as: UTF8.self).split(separator: " ").compactMap { Int64($0) }
        precondition(times.count == 2, "The child process has printed no times.")
        inside.add(.nanoseconds(times[1] - times[0]), operations: 1)
        whole.add(.nanoseconds(times[1] - start.nanoseconds), operations: 1)
    }
    whole.show("cold start offline: from the start of the process to 50 posts", goal: "15 ms")
    inside.show("    of which from main")
}

/// Runs in the child process: reads the feed and prints its start time and the time of the first 50 posts.
func coldStart(_ directory: String) async throws {
    let clock = SystemMonotonicClock()
    let start = clock.uptime
    var configuration = LarderClient.Configuration()
    configuration.followsLive = false
    configuration.cache.mayUseNetwork = { false }
    let client = try await LarderClient(
        server: "http://127.0.0.1:9",
        account: "cold",
        directory: directory,
        configuration
    )
    for await snapshot in client.feed.snapshots() {
        if snapshot.value?.items.count == 50 { break }
        precondition(snapshot.refreshError == nil, "Nothing is stored.")
    }
    let end = clock.uptime
    FileHandle.standardOutput.write(Data("\(start.nanoseconds) \(end.nanoseconds)".utf8))
    client.close()
}
