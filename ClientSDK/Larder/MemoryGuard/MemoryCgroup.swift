/// What a control group of the process's says of its memory: where a container is killed, the machine may have plenty.
struct MemoryCgroup: Sendable, Hashable {
    /// What is used and cannot simply be dropped: without the inactive part of the page cache.
    var used: Int
    /// Where the kernel begins to hold the group back, or kills in it; nil where there is no limit.
    var limit: Int?
    /// How often the group was held back.
    var highEvents: Int
    /// How often it hit its limit, or something was killed for that.
    var maxEvents: Int

    /// The share of the limit that is used; nil where there is no limit.
    var share: Double? { limit.map { $0 <= 0 ? 1 : Double(used) / Double($0) } }

    /// Of version 2, from the texts of memory.current, memory.high, memory.max, memory.stat and memory.events; nil where the first
    /// is no number.
    init?(current: String?, high: String?, max: String?, stat: String?, events: String?) {
        guard let current = current.flatMap(Self.number) else { return nil }
        used = Swift.max(0, current - Self.value("inactive_file", stat))
        // "max" is no number: there is no limit then.
        limit = [high, max].compactMap { $0.flatMap(Self.number) }.min()
        highEvents = Self.value("high", events)
        maxEvents = Self.value("max", events) + Self.value("oom", events) + Self.value("oom_kill", events)
    }

    /// Of version 1, from the texts of memory.usage_in_bytes, memory.limit_in_bytes, memory.stat, memory.failcnt and
    /// memory.oom_control; nil where the first is no number.
    init?(usage: String?, limit: String?, stat: String?, failures: String?, control: String?) {
        guard let usage = usage.flatMap(Self.number) else { return nil }
        used = Swift.max(0, usage - Self.value("total_inactive_file", stat))
        let own = limit.flatMap(Self.number)
        // The kernel writes the limit that it got from a group above into the statistics.
        let inherited = Self.value("hierarchical_memory_limit", stat)
        let limits = [own, inherited > 0 ? inherited : nil].compactMap(\.self)
        // No limit is a number of pages beyond any machine.
        self.limit = limits.filter { $0 < 1 << 60 }.min()
        highEvents = 0
        maxEvents = (failures.flatMap(Self.number) ?? 0) &+ Self.value("oom_kill", control)
    }

    /// The path of the process's group of version 2, from the text of /proc/self/cgroup; nil where there is none.
    static func path(_ text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        return line.map { String($0.dropFirst(3)) }
    }

    /// The path of the process's memory group of version 1, from the text of /proc/self/cgroup; nil where there is none.
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

    /// A path and those above it, up to the root, which is empty: a limit of any of them is one of the process's.
    ///
    /// What leads out of the tree (`/../x`, as the kernel writes for a group beyond a namespace) is left out.
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
