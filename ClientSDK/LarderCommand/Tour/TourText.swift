import LarderCoding

/// The chapters of the tour as text.
struct TourText {
    let width: Int
    let paint: (String, Terminal.Color) -> String

    func lines(_ chapter: TourChapter) -> [String] {
        [paint(chapter.name.title, .bold) + paint("   larder tour \(chapter.name.rawValue)", .dim)]
            + wrapped(chapter.question) + chapter.tables.flatMap { [""] + lines($0) } + [""]
            + wrapped(chapter.answer).map { paint($0, .cyan) } + [""]
    }

    /// The text in lines of at most `width` columns, broken between words.
    func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, TextWidth.columns(line) + 1 + TextWidth.columns(String(word)) > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " \(word)"
        }
        return line.isEmpty ? lines : lines + [line]
    }

    private func lines(_ table: TourTable) -> [String] {
        let rows = table.rows.map { $0.map(\.text) }
        let widths = table.columns.indices.map { index in
            ([table.columns] + rows).map { TextWidth.columns($0[index]) }.max() ?? 0
        }
        func line(_ cells: [String], _ values: [TourValue]?) -> String {
            let padded = cells.indices.map { index in
                let space = String(repeating: " ", count: widths[index] - TextWidth.columns(cells[index]))
                let isNumber = values.map { if case .text = $0[index] { false } else { true } } ?? false
                return isNumber ? space + cells[index] : cells[index] + space
            }
            let text = "  " + padded.joined(separator: "  ")
            return String(text.dropLast(text.reversed().prefix { $0 == " " }.count))
        }
        return [paint(table.title, .dim), paint(line(table.columns, nil), .dim)]
            + zip(rows, table.rows).map { line($0, $1) }
    }
}
