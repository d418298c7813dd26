/// The memory use and limit of a control group of the process. A container is killed by its limit while the machine has plenty.
struct MemoryCgroup: Sendable, Hashable {
    /// The used bytes without the inactive part of the page cache, which can be dropped.
    var used: Int
    /// The limit from which the kernel throttles or kills; nil for none.
    var limit: Int?
    /// How often memory could not be had, or a process was killed for it. Charges that met the limit and were served by dropping page cache
    /// are no pressure.
    var outOfMemoryEvents: Int

    /// The used share of the limit; nil without a limit.
    var share: Double? { limit.map { $0 <= 0 ? 1 : Double(used) / Double($0) } }

    /// Parses the files memory.current, memory.high, memory.max, memory.stat and memory.events of version 2; nil if the first is
    /// not a number.
    init?(current: String?, high: String?, max: String?, stat: String?, events: String?) {
        guard let current = current.flatMap(Self.number) else { return nil }
        used = Swift.max(0, current - Self.value("inactive_file", stat))
        // "max" is not a number and means no limit.
        limit = [high, max].compactMap { $0.flatMap(Self.number) }.min()
        outOfMemoryEvents = Self.value("oom", events) + Self.value("oom_kill", events)
    }

    /// The path of the process's group of version 2 in /proc/self/cgroup; nil if there is none.
    static func path(_ text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        return line.map { String($0.dropFirst(3)) }
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
