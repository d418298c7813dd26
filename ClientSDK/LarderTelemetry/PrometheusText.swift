import LarderTime

/// Writes metrics in Prometheus' text format, version 0.0.4.
struct PrometheusText {
    enum Kind: String {
        case counter
        case gauge
        case histogram
    }

    private(set) var text = ""
    private var name = ""

    /// Starts a metric; its samples follow.
    mutating func metric(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        text += "# HELP \(name) \(Self.escaped(help, quotes: false))\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Writes a sample of the current metric.
    mutating func sample(_ labels: [(String, String)] = [], _ value: String, suffix: String = "") {
        text += name + suffix
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.0)=\"\(Self.escaped($0.1, quotes: true))\"" }.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    mutating func sample(_ labels: [(String, String)] = [], _ value: Int) { sample(labels, "\(value)") }

    /// Writes a histogram in seconds, with a bucket for each factor of four from 1 µs to 69 s: exact, because these are powers of
    /// two nanoseconds.
    mutating func histogram(_ labels: [(String, String)], _ histogram: TelemetryTotals.Histogram) {
        for exponent in stride(from: 10, through: 36, by: 2) {
            let bound = Double(1 << exponent) / 1e9
            let count = histogram.count(upToPowerOfTwo: exponent)
            sample(labels + [("le", "\(bound)")], "\(count)", suffix: "_bucket")
        }
        sample(labels + [("le", "+Inf")], "\(histogram.count)", suffix: "_bucket")
        sample(labels, "\(Double(histogram.sum.nanosecondsSaturating) / 1e9)", suffix: "_sum")
        sample(labels, "\(histogram.count)", suffix: "_count")
    }

    /// In a label's value, backslash, quote and line feed are escaped; in help texts the quote is not.
    private static func escaped(_ value: String, quotes: Bool) -> String {
        guard value.utf8.contains(where: { $0 == 0x0A || $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "\"") }) else {
            return value
        }
        // By scalars: a carriage return and a line feed are one character, which would split the line.
        return value.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\n": result += "\\n"
            case "\\": result += "\\\\"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
