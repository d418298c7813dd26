/// Pressure-stall information in the format of /proc/pressure/memory and memory.pressure.
struct PressureStall: Sendable, Hashable {
    /// The share of the last ten seconds, in percent, in which at least one task waited for memory.
    var some: Double
    /// The share in which all tasks waited.
    var full: Double

    /// Nil if the text has another format.
    init?(_ text: String) {
        func average(_ word: String) -> Double? {
            let line = text.split(separator: "\n").first { $0.hasPrefix("\(word) ") }
            let field = line?.split(separator: " ").first { $0.hasPrefix("avg10=") }
            return field.flatMap { Double($0.dropFirst(6)) }
        }
        guard let some = average("some") else { return nil }
        self.some = some
        // Older kernels omit this line for some groups.
        full = average("full") ?? 0
    }
}
