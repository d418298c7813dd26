import Foundation
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Memory control groups", .oneMinute)
struct MemoryCgroupTests {
    @Test func `the path of the group is found, and nonsense has none`() {
        #expect(MemoryCgroup.path("12:cpu,cpuacct:/a\n5:memory:/docker/abc\n0::/user.slice\n") == "/user.slice")
        for nonsense in ["", "\n\n", "memory", "5:memory:/a", "0::relative", "::::", "\u{0}\u{ff}"] {
            #expect(MemoryCgroup.path(nonsense) == nil, "\(nonsense)")
        }
    }

    @Test func `parent groups are read too, and nothing outside the tree`() {
        #expect(MemoryCgroup.lineage(of: "/a/b/c") == ["/a/b/c", "/a/b", "/a", ""])
        #expect(MemoryCgroup.lineage(of: "/") == [""] && MemoryCgroup.lineage(of: "") == [""])
        #expect(MemoryCgroup.lineage(of: "/../../etc") == [""] && MemoryCgroup.lineage(of: "/a/./b") == [""])
        #expect(MemoryCgroup.lineage(of: "//a//b//").first == "/a/b")
    }

    /// The files of an invented machine.
    private struct Machine {
        let directory = StoreDirectory()

        func write(_ files: [String: String]) throws {
            for (name, text) in files {
                let path = "\(directory.path)/\(name)"
                let parent = (path as NSString).deletingLastPathComponent
                try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            }
        }

        var source: LinuxMemorySource {
            var configuration = LinuxMemorySource.Configuration()
            configuration.proc = "\(directory.path)/proc"
            configuration.cgroups = "\(directory.path)/cgroup"
            configuration.interval = .milliseconds(100)
            return LinuxMemorySource(configuration)
        }

        /// The first report of a source, which reads at once if there are files.
        func first(_ source: LinuxMemorySource) async -> MemoryGuard.Signal? {
            let (stream, continuation) = AsyncStream.makeStream(of: MemoryGuard.Signal.self)
            let registration = source.observe { continuation.yield($0) }
            defer { _ = registration }
            for await signal in stream { return signal }
            return nil
        }
    }

    private static let calm = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"

    @Test(.oneMinute)
    func `the limit of a parent group counts if the process's own group has none`() async throws {
        let machine = Machine()
        try machine.write([
            "proc/self/cgroup": "0::/kube/pod/app\n", "proc/pressure/memory": Self.calm,
            "cgroup/kube/pod/app/memory.current": "100\n", "cgroup/kube/pod/app/memory.max": "max\n",
            "cgroup/kube/pod/memory.current": "900\n", "cgroup/kube/pod/memory.max": "1000\n",
            "cgroup/kube/memory.current": "900\n", "cgroup/kube/memory.max": "max\n",
            "cgroup/memory.current": "900\n",
        ])
        let source = machine.source
        #expect(source.isWatching && source.explanation.contains("cgroup/kube/pod,") != true)
        #expect(source.explanation.contains("cgroup/kube/pod.") && !source.explanation.contains("pod/app"))
        let signal = await machine.first(source)
        #expect(signal?.level == .warning && signal?.cause.contains("90 %") == true)
    }

    @Test(.oneMinute)
    func `inside a container the root of the mount is its own group`() async throws {
        let machine = Machine()
        // The kernel reports the group's path outside the container, which does not exist inside.
        try machine.write([
            "proc/self/cgroup": "0::/system.slice/docker-abc.scope\n", "cgroup/memory.current": "990\n",
            "cgroup/memory.max": "1000\n", "cgroup/memory.pressure": Self.calm,
        ])
        let source = machine.source
        #expect(await machine.first(source)?.level == .critical)
        #expect(source.explanation.contains("cgroup/memory.pressure"), "Its own stalls, not the machine's.")
    }

    @Test(arguments: [
        ["proc/self/cgroup": "0::/app\n", "cgroup/app/memory.current": "nonsense", "cgroup/app/memory.max": "10"],
        ["proc/self/cgroup": "0::/app\n", "cgroup/app/memory.current": "5\n", "cgroup/app/memory.max": "max\n"],
        ["proc/self/cgroup": "0::/app\n", "cgroup/app/memory.max": "10\n"],
        ["proc/self/cgroup": "\u{0}\u{1}\u{2}", "proc/pressure/memory": "avg10=banana"],
        ["proc/pressure/memory": ""], [:],
    ])
    func `missing, unlimited or invalid files are ignored, and the explanation names the alternative`(
        _ files: [String: String]
    ) throws {
        let machine = Machine()
        try machine.write(files)
        let source = machine.source
        #expect(!source.isWatching && source.explanation.contains("MemoryGuard.report"))
    }

    @Test(.oneMinute)
    func `files that vanish while observed cause no pressure, and observation continues`() async throws {
        let machine = Machine()
        try machine.write([
            "proc/self/cgroup": "0::/app\n", "cgroup/app/memory.current": "990\n",
            "cgroup/app/memory.max": "1000\n",
        ])
        let source = machine.source
        let (stream, continuation) = AsyncStream.makeStream(of: MemoryGuard.Signal.self)
        let registration = source.observe { continuation.yield($0) }
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.level == .critical)
        try FileManager.default.removeItem(atPath: "\(machine.directory.path)/cgroup/app")
        var level = MemoryLevel.critical
        while level == .critical { level = await iterator.next(isolation: nil)?.level ?? .warning }
        #expect(level == .normal)
        try machine.write(["cgroup/app/memory.current": "990\n", "cgroup/app/memory.max": "1000\n"])
        while level == .normal { level = await iterator.next(isolation: nil)?.level ?? .warning }
        #expect(level == .critical)
        withExtendedLifetime(registration) {}
    }
}
