import Foundation
import LarderEvents
import LarderTime

extension TelemetryTotals {
    /// The totals as a JSON object, with sorted names and durations in nanoseconds: equal totals are equal texts.
    public var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do { return String(decoding: try encoder.encode(self), as: UTF8.self) } catch {
            preconditionFailure("Totals consist of numbers and texts, which can always be encoded: \(error)")
        }
    }
}

extension TelemetryEvent.ImageStage: Encodable, CodingKeyRepresentable {}

extension TelemetryTotals.Histogram: Encodable {
    private enum Member: String, CodingKey {
        case count, mean, minimum, p50, p90, p99, maximum
    }

    /// Encodes the summary: count, mean, extremes and percentiles, in nanoseconds.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Member.self)
        try container.encode(count, forKey: .count)
        let durations: [(Member, Duration?)] = [
            (.mean, mean), (.minimum, minimum), (.p50, percentile(0.5)), (.p90, percentile(0.9)),
            (.p99, percentile(0.99)),
            (.maximum, maximum),
        ]
        for (member, duration) in durations {
            try container.encodeIfPresent(duration?.nanosecondsSaturating, forKey: member)
        }
    }
}
