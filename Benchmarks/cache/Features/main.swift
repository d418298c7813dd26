// Measures the demo client against a backend in this process: `swift run -c release features-benchmark` in this directory.
//
// Prints the median, the best and the worst of many runs, because the speed of a shared machine varies.

import Foundation
import Larder

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "cold" {
    try await coldStart(CommandLine.arguments[2])
} else {
    let scratch = NSTemporaryDirectory() + "larder-features-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    let stage = try Stage(scratch)
    try await measureFeed(stage)
    try await measureTaps(stage)
    try await measureBacklog(stage)
    try await measureColdStarts(stage)
    await stage.backend.stop()
}
