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

    /// A chapter as JSON, for programs.
    var json: JSONValue {
        .members([
            ("name", .string(name)), ("title", .string(title)), ("question", .string(question)),
            ("answer", .string(answer)), ("exhibits", .array(exhibits.map(\.json))),
        ])
    }
}

/// What a chapter shows.
enum TourExhibit: Sendable {
    case table(TourTable)
    case flow(TourFlow)
    case tryout(TourTryout)

    var json: JSONValue {
        switch self {
        case .table(let table): table.json
        // These are of the page.
        case .flow(let flow): .members(["kind": .string("flow"), "title": .string(flow.title)])
        case .tryout(let tryout): .members(["kind": .string("tryout"), "title": .string(tryout.title)])
        }
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
            ("kind", .string("table")), ("title", .string(title)), ("columns", .array(columns.map { .string($0) })),
            ("rows", .array(rows.map { .array($0.map(\.json)) })),
        ])
    }
}
