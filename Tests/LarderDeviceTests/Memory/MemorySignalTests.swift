import Foundation
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Memory signals", .oneMinute)
struct MemorySignalTests {
    @Test func `pressure-stall information is parsed`() {
        let text = """
            some avg10=12.34 avg60=1.00 avg300=0.50 total=123456
            full avg10=3.20 avg60=0.10 avg300=0.00 total=99

            """
        #expect(PressureStall(text).map { [$0.some, $0.full] } == [12.34, 3.2])
        #expect(PressureStall("some avg10=0.00 avg60=0.00 avg300=0.00 total=0").map(\.full) == 0)
        for bad in ["", "some", "full avg10=1.00", "some avg10=abc", "\u{0}\u{1}"] {
            #expect(PressureStall(bad) == nil, "\(bad)")
        }
    }

    @Test func `a control group's use excludes the inactive page cache`() {
        let group = MemoryCgroup(
            current: "900000\n",
            high: "max\n",
            max: "1000000\n",
            stat: "anon 500000\ninactive_file 300000\n",
            events: "low 0\nhigh 4\nmax 2\noom 1\noom_kill 0\n"
        )
        #expect(group?.used == 600_000 && group?.limit == 1_000_000 && group?.share == 0.6)
        #expect(group?.outOfMemoryEvents == 1)
        let unlimited = MemoryCgroup(current: "5", high: "max", max: "max", stat: nil, events: nil)
        #expect(unlimited?.limit == nil && unlimited?.share == nil)
        #expect(MemoryCgroup(current: nil, high: nil, max: nil, stat: nil, events: nil) == nil)
        #expect(MemoryCgroup(current: "x", high: nil, max: nil, stat: nil, events: nil) == nil)
        let lower = MemoryCgroup(current: "5", high: "50", max: "100", stat: nil, events: nil)
        #expect(lower?.limit == 50, "Where it is held back, it is not quick any more.")
    }

    @Test func `the path of a version 2 group is found`() {
        #expect(MemoryCgroup.path("0::/user.slice/app.scope\n") == "/user.slice/app.scope")
        #expect(MemoryCgroup.path("5:devices:/\n4:memory:/docker/abc\n0::/\n") == "/")
        #expect(MemoryCgroup.path("4:memory:/docker/abc\n") == nil)
    }

    @Test func `levels follow from figures and from events since the last look`() {
        let rules = MemoryPressureRules.self
        func group(_ used: Int, max: Int = 0, oom: Int = 0) -> MemoryCgroup? {
            MemoryCgroup(
                current: "\(used)",
                high: nil,
                max: "100",
                stat: nil,
                events: "high 5\nmax \(max)\noom \(oom)\n"
            )
        }
        #expect(group(84).map { rules.level($0, since: nil) } == .normal)
        #expect(group(85).map { rules.level($0, since: nil) } == .warning)
        #expect(group(95).map { rules.level($0, since: nil) } == .critical)
        #expect(group(10, oom: 1).map { rules.level($0, since: group(10)) } == .critical)
        #expect(group(10, oom: 1).map { rules.level($0, since: group(10, oom: 1)) } == .normal)
        // Page cache has met the limit.
        #expect(group(10, max: 9).map { rules.level($0, since: group(10)) } == .normal)
        #expect(PressureStall("some avg10=9.9").map { rules.level($0) } == .normal)
        #expect(PressureStall("some avg10=10").map { rules.level($0) } == .warning)
        #expect(PressureStall("some avg10=80\nfull avg10=10").map { rules.level($0) } == .critical)
    }

    /// Files in the kernel's format.
    private final class Kernel: Sendable {
        let directory = StoreDirectory()

        func write(_ name: String, _ text: String) throws {
            let path = "\(directory.path)/\(name)"
            let parent = (path as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
            // In place, as the kernel's files change.
            if !FileManager.default.fileExists(atPath: path) {
                _ = FileManager.default.createFile(atPath: path, contents: nil)
            }
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try handle.write(contentsOf: Data(text.utf8))
            try handle.truncate(atOffset: UInt64(text.utf8.count))
            try handle.close()
        }

        var configuration: LinuxMemorySource.Configuration {
            var configuration = LinuxMemorySource.Configuration()
            configuration.proc = "\(directory.path)/proc"
            configuration.cgroups = "\(directory.path)/cgroup"
            configuration.interval = .milliseconds(100)
            return configuration
        }
    }

    /// The reports of a source.
    private func listen(_ source: LinuxMemorySource) -> (AsyncStream<MemoryGuard.Signal>, EventRegistration) {
        let (stream, continuation) = AsyncStream.makeStream(of: MemoryGuard.Signal.self)
        return (stream, source.observe { continuation.yield($0) })
    }

    @Test(.oneMinute)
    func `a container near its limit gets a warning while the machine has plenty`() async throws {
        let kernel = Kernel()
        try kernel.write("proc/self/cgroup", "0::/app.slice\n")
        try kernel.write("cgroup/app.slice/memory.current", "990\n")
        try kernel.write("cgroup/app.slice/memory.max", "1000\n")
        try kernel.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        let source = LinuxMemorySource(kernel.configuration)
        #expect(source.isWatching && source.explanation.contains("with a limit, whose use is read"))
        #expect(source.explanation.contains("app.slice"))
        #expect(
            source.explanation.contains("refused"),
            "An ordinary file takes no triggers: \(source.explanation)"
        )
        let (signals, registration) = listen(source)
        var iterator = signals.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.level == .critical)
        try kernel.write("cgroup/app.slice/memory.current", "100\n")
        var level = MemoryLevel.critical
        while level == .critical { level = await iterator.next(isolation: nil)?.level ?? .warning }
        #expect(level == .normal, "The end is told of too.")
        withExtendedLifetime(registration) {}
    }

    @Test(.oneMinute)
    func `without groups and triggers the average is read, and the explanation tells why`() async throws {
        let kernel = Kernel()
        try kernel.write("proc/self/cgroup", "4:cpu:/x\n")
        try kernel.write("proc/pressure/memory", "some avg10=25.00 avg60=0.00 avg300=0.00 total=0\n")
        var configuration = kernel.configuration
        configuration.usesTriggers = false
        let source = LinuxMemorySource(configuration)
        #expect(source.explanation.contains("No control group has a limit"))
        #expect(source.explanation.contains("triggers are turned off"))
        let (signals, registration) = listen(source)
        var iterator = signals.makeAsyncIterator()
        let signal = await iterator.next(isolation: nil)
        #expect(signal?.level == .warning && signal?.cause.contains("25.0 %") == true)
        withExtendedLifetime(registration) {}
    }

    @Test func `without any signal the explanation says so, and no thread runs`() {
        let source = LinuxMemorySource(Kernel().configuration)
        #expect(!source.isWatching && source.explanation.contains("MemoryGuard.report"))
    }

    @Test func `the sources of this machine start and stop`() {
        for _ in 0..<20 { _ = LinuxMemorySource() }
        let source = LinuxMemorySource()
        #expect(!source.explanation.isEmpty)
    }
}
