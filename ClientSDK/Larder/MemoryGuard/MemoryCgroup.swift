/// What the process's control group (version 2) says of its memory: where a container is killed, the machine may have plenty.
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

    /// From the texts of memory.current, memory.high, memory.max, memory.stat and memory.events; nil where the first is none.
    init?(current: String?, high: String?, max: String?, stat: String?, events: String?) {
        guard let current = current.flatMap(Self.number) else { return nil }
        used = Swift.max(0, current - Self.value("inactive_file", stat))
        // "max" is no number: there is no limit then.
        limit = [high, max].compactMap { $0.flatMap(Self.number) }.min()
        highEvents = Self.value("high", events)
        maxEvents = Self.value("max", events) + Self.value("oom", events) + Self.value("oom_kill", events)
    }

    /// The path of the process's group, from the text of /proc/self/cgroup; nil in version 1.
    static func path(_ text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        return line.map { String($0.dropFirst(3)) }
    }

    private static func number(_ text: String) -> Int? { Int(text.filter { !$0.isWhitespace }) }

    private static func value(_ name: String, _ text: String?) -> Int {
        let line = text?.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        return line.flatMap { Int($0.dropFirst(name.utf8.count + 1)) } ?? 0
    }
}
