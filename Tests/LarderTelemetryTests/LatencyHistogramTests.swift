import LarderTelemetry
import LarderTime
import TestSupport
import Testing

@Suite("Latency histogram", .oneMinute)
struct LatencyHistogramTests {
    @Test func `a percentile is never too low and at most 1/32 too high`() {
        for seed in UInt64(1)...40 {
            var generator = SeededGenerator(seed: seed)
            var histogram = TelemetryTotals.Histogram()
            var values: [Int64] = []
            for _ in 0..<generator.uniform(in: 1..<600) {
                // The same number of short and long durations.
                let value = Int64(generator.next() >> UInt64(generator.uniform(in: 2..<64)))
                values.append(value)
                histogram.record(.nanoseconds(value))
            }
            values.sort()
            for share in [0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
                let rank = max(1, Int((share * Double(values.count)).rounded(.up)))
                let exact = values[rank - 1]
                let found = histogram.percentile(share)?.nanosecondsSaturating ?? -1
                #expect(found >= exact, "seed \(seed), share \(share)")
                #expect(Double(found) <= Double(exact) * (1 + 1.0 / 32) + 1, "seed \(seed), share \(share)")
            }
            #expect(histogram.count == UInt64(values.count))
            #expect(histogram.minimum == .nanoseconds(values[0]))
            #expect(histogram.maximum == .nanoseconds(values[values.count - 1]))
        }
    }

    @Test func `merging is the same as counting everything in one, in any order`() {
        for seed in UInt64(1)...20 {
            var generator = SeededGenerator(seed: seed)
            var parts = [TelemetryTotals.Histogram](repeating: TelemetryTotals.Histogram(), count: 3)
            var whole = TelemetryTotals.Histogram()
            for _ in 0..<200 {
                let value = Duration.nanoseconds(Int64(generator.next() >> UInt64(generator.uniform(in: 20..<60))))
                parts[generator.uniform(in: 0..<3)].record(value)
                whole.record(value)
            }
            var forward = TelemetryTotals.Histogram()
            for part in parts { forward.merge(part) }
            var backward = TelemetryTotals.Histogram()
            for part in parts.reversed() { backward.merge(part) }
            #expect(forward == whole, "seed \(seed)")
            #expect(backward == whole, "seed \(seed)")
        }
    }

    @Test func `zero, negative and extreme durations are counted without a trap`() {
        var histogram = TelemetryTotals.Histogram()
        #expect(histogram.percentile(0.5) == nil && histogram.mean == nil && histogram.minimum == nil)
        var longest = TelemetryTotals.Histogram()
        longest.record(.nanoseconds(Int64.max))
        #expect(longest.mean == .nanoseconds(Int64.max))
        histogram.record(.seconds(-5))
        histogram.record(.nanoseconds(Int64.max))
        histogram.record(.nanoseconds(Int64.max))
        #expect(histogram.minimum == .zero)
        #expect(histogram.maximum == .nanoseconds(Int64.max))
        #expect(histogram.sum == .nanoseconds(Int64.max))
        #expect(histogram.percentile(.nan) == histogram.maximum)
        #expect(histogram.percentile(-3) == .zero || histogram.percentile(-3) == .nanoseconds(1))
    }
}
