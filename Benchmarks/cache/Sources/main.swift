// Reads of the cache, from memory and from a cold start: `swift run -c release` in this directory.
//
// Medians of many runs, with the best and the worst: a shared machine is not equally fast for long.

import Foundation
import Larder
import Synchronization

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "cold" {
    try await coldStart(CommandLine.arguments[2])
} else {
    try await measureReads()
    try await measureCrowd()
    let scratch = NSTemporaryDirectory() + "larder-cache-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    try await measureTaps(nil)
    try await measureTaps(scratch + "/taps")
    try await measureStarts(scratch + "/store")
}
