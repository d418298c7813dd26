// Measures reads of the cache, from memory and from a cold start: `swift run -c release` in this directory;
// `swift run -c release cache-benchmark lists` measures changes of lists alone, also in lists ten times as long;
// with `main`, calls on the main actor alone.
//
// Prints the median, the best and the worst of many runs, because the speed of a shared machine varies.

import Foundation
import Larder
import Synchronization

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "cold" {
    try await coldStart(CommandLine.arguments[2])
} else {
    let scratch = NSTemporaryDirectory() + "larder-cache-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    let isOfMain = CommandLine.arguments.last == "main"
    if CommandLine.arguments.last != "lists", !isOfMain {
        try await measureReads()
        try await measureCrowd()
        try await measureTaps(nil)
        try await measureTaps(scratch + "/taps")
        try await measureStarts(scratch + "/store")
    }
    if !isOfMain { try await measureEdits(scratch) }
    try await measureMainActor(scratch + "/main")
    if !isOfMain { try await measureDrain(scratch + "/drain", factor: 1) }
    if CommandLine.arguments.last == "lists" { try await measureDrain(scratch + "/long", factor: 10) }
}
