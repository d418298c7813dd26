import Foundation

/// The times of several runs, in nanoseconds per operation.
public struct Samples {
    private var times: [Double] = []

    /// Without runs.
    public init() {}

    /// Adds a run of a number of operations.
    public mutating func add(_ time: Duration, operations: Int) {
        times.append(
            (Double(time.components.seconds) * 1e9 + Double(time.components.attoseconds) / 1e9) / Double(operations)
        )
    }

    /// Prints the median, the best and the worst.
    public func show(_ name: String, goal: String = "–") {
        let sorted = times.sorted()
        guard let best = sorted.first, let worst = sorted.last else { return }
        let spread = "\(Self.text(sorted[sorted.count / 2]))   best \(Self.text(best))   worst \(Self.text(worst))"
        say("\(name.padding(toLength: 66, withPad: " ", startingAt: 0)) \(spread)   goal \(goal)")
    }

    private static func text(_ nanoseconds: Double) -> String {
        switch nanoseconds {
        case ..<1_000: String(format: "%7.0f ns", nanoseconds)
        case ..<1_000_000: String(format: "%7.2f µs", nanoseconds / 1e3)
        default: String(format: "%7.2f ms", nanoseconds / 1e6)
        }
    }
}
