import Foundation
import Larder
import LarderCoding

/// A chapter of the tour: a question, what was measured, and the answer that the measurements give.
struct TourChapter: Sendable {
    let name: String
    let title: String
    /// What the chapter asks, in one or two sentences.
    let question: String
    var exhibits: [TourExhibit] = []
    /// What was seen, made from the measured values.
    var answer = ""

    /// A chapter as JSON, for programs: what was measured, without the figures.
    var json: JSONValue {
        let tables = exhibits.compactMap { if case .table(let table) = $0 { table.json } else { nil } }
        return .members([
            ("name", .string(name)), ("title", .string(title)), ("question", .string(question)),
            ("answer", .string(answer)), ("tables", .array(tables)),
        ])
    }
}

/// What a chapter shows.
enum TourExhibit: Sendable {
    case table(TourTable)
    case bars(TourBars)
    case curves(TourCurves)
    case steps(TourSteps)
    case flow(TourFlow)
    case tryout(TourTryout)
}

/// A measured value.
enum TourValue: Sendable, Hashable {
    case text(String)
    case count(Int)
    case bytes(Int)
    case duration(Duration)
    /// Nothing was measured, because the case does not occur.
    case none

    var text: String {
        switch self {
        case .text(let text): text
        case .count(let count): "\(count)"
        case .bytes(let bytes): SizeText.text(Int64(bytes))
        case .duration(.zero): "0"
        case .duration(let duration):
            duration < .microseconds(1) ? "\(duration.nanosecondsSaturating) ns" : TimeText.text(duration)
        case .none: "–"
        }
    }

    /// Durations are nanoseconds.
    var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .count(let count), .bytes(let count): .integer(Int64(count))
        case .duration(let duration): .integer(duration.nanosecondsSaturating)
        case .none: .null
        }
    }
}

/// Rows of values under column titles.
struct TourTable: Sendable {
    let title: String
    let columns: [String]
    var rows: [[TourValue]]

    var json: JSONValue {
        .members([
            ("title", .string(title)), ("columns", .array(columns.map { .string($0) })),
            ("rows", .array(rows.map { .array($0.map(\.json)) })),
        ])
    }
}

/// One bar for each label.
struct TourBars: Sendable {
    let title: String
    /// Whether a bar's length is the logarithm of its value, for values of different orders of magnitude.
    var isLogarithmic = false
    var bars: [(label: String, value: TourValue)]

    var caption: String { title + (isLogarithmic ? " (logarithmic scale)" : "") }

    /// The lengths in 0...1. A value of zero has length 0; on a logarithmic scale the smallest other value has length 0.1.
    var lengths: [Double] {
        let values = bars.map { Double($0.value.json.integer ?? 0) }
        guard let longest = values.max(), longest > 0 else { return values.map { _ in 0 } }
        guard isLogarithmic, let least = values.filter({ $0 > 0 }).min(), least < longest else {
            return values.map { $0 / longest }
        }
        return values.map { $0 > 0 ? 0.1 + 0.9 * log($0 / least) / log(longest / least) : 0 }
    }
}

/// Values over time, as steps: a value holds until the next point.
struct TourCurves: Sendable {
    struct Curve: Sendable {
        let label: String
        var points: [(x: Double, y: Double)]
    }

    let title: String
    let x: String
    let y: String
    var curves: [Curve]
}

/// States that follow each other, to be shown one by one.
struct TourSteps: Sendable {
    /// What a box says about its content.
    enum Tone: String, Sendable {
        case neutral, good, warning, bad, absent
    }

    struct Box: Sendable {
        let label: String
        let text: String
        var tone = Tone.neutral
        /// The length of a bar in the box, in 0...1; nil for none.
        var share: Double?
    }

    struct Step: Sendable {
        let caption: String
        let boxes: [Box]
    }

    let title: String
    var steps: [Step]
}
