// Measures reads of the cache, from memory and from a cold start: `swift run -c release` in this directory.
//
// Prints the median, the best and the worst of many runs, because the speed of a shared machine varies.

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
