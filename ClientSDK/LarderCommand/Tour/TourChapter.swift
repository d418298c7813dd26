import Larder
import LarderCoding

/// A chapter of the tour: a question, what was measured, and the answer that the measurements give.
struct TourChapter: Sendable {
    let name: TourName
    /// What the chapter asks, in one or two sentences.
    let question: String
    let tables: [TourTable]
    /// What was seen, made from the measured values.
    let answer: String

    var json: JSONValue {
        .members([
            ("name", .string(name.rawValue)), ("title", .string(name.title)), ("question", .string(question)),
            ("answer", .string(answer)), ("tables", .array(tables.map(\.json))),
        ])
    }
}

/// A measured value.
enum TourValue: Sendable, Hashable {
    case text(String)
    case count(Int)
    case bytes(Int)
    case duration(Duration)
    /// Nothing was measured, because the case does not occur.
    case none

    init(_ duration: Duration?) { self = duration.map { .duration($0) } ?? .none }

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

    /// Measures cases and makes a row of each: its name, and what `row` makes of the result.
    ///
    /// - Returns: the table, and the results in the order of the cases.
    static func measured<Case, Result>(
        _ title: String,
        columns: [String],
        _ cases: [(name: String, value: Case)],
        _ measure: (Case) async throws -> Result,
        row: (Result) -> [TourValue]
    ) async throws -> (table: TourTable, results: [Result]) {
        var table = TourTable(title: title, columns: columns, rows: [])
        var results: [Result] = []
        for (name, value) in cases {
            let result = try await measure(value)
            results.append(result)
            table.rows.append([.text(name)] + row(result))
        }
        return (table, results)
    }
}
