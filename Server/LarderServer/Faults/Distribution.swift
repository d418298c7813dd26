import Glibc
import LarderCoding
import LarderTime

/// A random duration.
public enum Distribution: Sendable, Hashable {
    case fixed(Duration)
    case uniform(Duration, Duration)
    /// The median, the standard deviation of the logarithm, and a bound above which values are drawn again.
    case logNormal(median: Duration, sigma: Double, maximum: Duration?)
    /// Recorded values, by ordinal, repeated from the beginning.
    case trace([Duration])

    /// Draws a value. The same generator and ordinal give the same value.
    func draw(_ generator: inout SeededGenerator, ordinal: Int) -> Duration {
        switch self {
        case .fixed(let duration): return duration
        case .uniform(let low, let high):
            let (low, high) = (low.nanosecondsSaturating, high.nanosecondsSaturating)
            return .nanoseconds(low + Int64(Double(max(0, high - low)) * generator.unit()))
        case .logNormal(let median, let sigma, let maximum):
            for _ in 0..<64 {
                let value = Double(median.nanosecondsSaturating) * exp(min(sigma * Self.normal(&generator), 40))
                let duration = Duration.nanoseconds(Int64(min(value, 9e18)))
                if maximum.map({ duration <= $0 }) ?? true { return duration }
            }
            return maximum ?? median
        case .trace(let durations):
            return durations.isEmpty ? .zero : durations[(ordinal - 1) % durations.count]
        }
    }

    /// A standard normal number as a sum of uniform ones (Irwin–Hall): exact enough for delays.
    private static func normal(_ generator: inout SeededGenerator) -> Double {
        var sum = 0.0
        for _ in 0..<12 { sum += generator.unit() }
        return sum - 6
    }

    // MARK: JSON

    /// Reads `0.3`, `{"uniform": [0.1, 0.5]}`, `{"logNormal": {"median": 0.2, "sigma": 0.5}}` or `{"trace": […]}`; all in seconds.
    static func read(_ name: String, _ parent: BodyReader) -> Distribution? {
        guard let value = parent.value(name) else { return nil }
        if value.double != nil { return parent.seconds(name, maximum: 86_400).map { .fixed($0) } }
        guard value.object != nil, let reader = parent.child(name) else {
            parent.fail(name, "must be a number of seconds, or an object such as {\"uniform\": [0.1, 2]}")
            return nil
        }
        if let bounds = reader.array("uniform", count: 0...2) {
            let values = bounds.compactMap { $0.value.double }
            guard values.count == 2, values[0] >= 0, values[0] <= values[1], values[1] <= 86_400 else {
                reader.fail("uniform", "must be two numbers of seconds, the lower one first")
                return nil
            }
            return .uniform(.seconds(values[0]), .seconds(values[1]))
        }
        if let normal = reader.child("logNormal") {
            let median = normal.seconds("median", maximum: 86_400)
            let sigma = normal.number("sigma", in: 0...5)
            let maximum = normal.seconds("maximum", maximum: 86_400)
            guard let median, let sigma else {
                normal.failMissing(anyOf: ["median", "sigma"], "and `sigma` must be given")
                return nil
            }
            return .logNormal(median: median, sigma: sigma, maximum: maximum)
        }
        if let trace = reader.array("trace") {
            let values = trace.compactMap { $0.value.double }.filter { (0...86_400).contains($0) }
            guard values.count == trace.count, !values.isEmpty else {
                reader.fail("trace", "must be numbers of seconds")
                return nil
            }
            return .trace(values.map { .seconds($0) })
        }
        parent.failMissing(name, "must be a number of seconds, or one of uniform, logNormal, trace")
        return nil
    }

    var json: JSONValue {
        switch self {
        case .fixed(let duration): .seconds(duration)
        case .uniform(let low, let high): .members(["uniform": .array([.seconds(low), .seconds(high)])])
        case .logNormal(let median, let sigma, let maximum):
            .members([
                "logNormal": .members([
                    "median": .seconds(median), "sigma": .number(sigma), "maximum": maximum.map { .seconds($0) },
                ])
            ])
        case .trace(let durations): .members(["trace": .array(durations.map { .seconds($0) })])
        }
    }
}
