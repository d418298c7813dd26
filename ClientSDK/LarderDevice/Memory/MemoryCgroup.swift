/// The memory use and limit of a control group of the process. A container is killed by its limit while the machine has plenty.
struct MemoryCgroup: Sendable, Hashable {
    /// The used bytes without the inactive part of the page cache, which can be dropped.
    var used: Int
    /// The limit from which the kernel throttles or kills; nil for none.
    var limit: Int?
    /// The number of times that the group was throttled.
    var highEvents: Int
    /// The number of times that the group hit its limit or a process was killed for it.
    var maxEvents: Int

    /// The used share of the limit; nil without a limit.
    var share: Double? { limit.map { $0 <= 0 ? 1 : Double(used) / Double($0) } }

    /// Parses the files memory.current, memory.high, memory.max, memory.stat and memory.events of version 2; nil if the first is
    /// not a number.
    init?(current: String?, high: String?, max: String?, stat: String?, events: String?) {
        guard let current = current.flatMap(Self.number) else { return nil }
        used = Swift.max(0, current - Self.value("inactive_file", stat))
        // "max" is not a number and means no limit.
        limit = [high, max].compactMap { $0.flatMap(Self.number) }.min()
        highEvents = Self.value("high", events)
        maxEvents = Self.value("max", events) + Self.value("oom", events) + Self.value("oom_kill", events)
    }

    /// Parses the files memory.usage_in_bytes, memory.limit_in_bytes, memory.stat, memory.failcnt and memory.oom_control of version
    /// 1; nil if the first is not a number.
    init?(usage: String?, limit: String?, stat: String?, failures: String?, control: String?) {
        guard let usage = usage.flatMap(Self.number) else { return nil }
        used = Swift.max(0, usage - Self.value("total_inactive_file", stat))
        let own = limit.flatMap(Self.number)
        // The statistics include limits of parent groups.
        let inherited = Self.value("hierarchical_memory_limit", stat)
        let limits = [own, inherited > 0 ? inherited : nil].compactMap(\.self)
        // Without a limit the file contains a number beyond any machine's memory.
        self.limit = limits.filter { $0 < 1 << 60 }.min()
        highEvents = 0
        maxEvents = (failures.flatMap(Self.number) ?? 0) &+ Self.value("oom_kill", control)
    }

    /// The path of the process's group of version 2 in /proc/self/cgroup; nil if there is none.
    static func path(_ text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        return line.map { String($0.dropFirst(3)) }
    }

    /// The path of the process's memory group of version 1 in /proc/self/cgroup; nil if there is none.
    static func pathOfVersion1(_ text: String) -> String? {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[1].split(separator: ",").contains("memory"), parts[2].hasPrefix("/") else {
                continue
            }
            return String(parts[2])
        }
        return nil
    }

    /// A path and its parents up to the root, which is empty: the limit of any of them applies to the process.
    ///
    /// Paths that lead out of the tree (`/../x`, written by the kernel for a group beyond a namespace) are skipped.
    static func lineage(of path: String) -> [String] {
        let names = path.split(separator: "/")
        guard !names.contains(".."), !names.contains(".") else { return [""] }
        return (0...names.count).reversed().map { names.prefix($0).map { "/" + $0 }.joined() }
    }

    private static func number(_ text: String) -> Int? {
        Int(text.filter { !$0.isWhitespace }).flatMap { $0 >= 0 ? $0 : nil }
    }

    private static func value(_ name: String, _ text: String?) -> Int {
        let line = text?.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        return line.flatMap { number(String($0.dropFirst(name.utf8.count + 1))) } ?? 0
    }
}
