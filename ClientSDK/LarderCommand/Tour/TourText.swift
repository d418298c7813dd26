import Foundation
import Larder

/// Shows the chapters of the tour in a terminal.
struct TourText {
    let terminal: Terminal

    func show(_ chapter: TourChapter) {
        terminal.line(terminal.paint(chapter.title, .bold) + terminal.paint("   larder tour \(chapter.name)", .dim))
        for line in Self.wrapped(chapter.question, width) { terminal.line(line) }
        for exhibit in chapter.exhibits {
            terminal.line()
            switch exhibit {
            case .table(let table): show(table)
            case .steps(let steps): show(steps)
            case .flow(let flow): show(flow)
            case .bars(let bars): inPage(bars.title)
            case .curves(let curves): inPage(curves.title)
            case .tryout(let tryout): inPage(tryout.title)
            }
        }
        terminal.line()
        for line in Self.wrapped(chapter.answer, width) { terminal.line(terminal.paint(line, .cyan)) }
        terminal.line()
    }

    private var width: Int { min(100, terminal.size.columns) }

    static func wrapped(_ text: String, _ width: Int) -> [String] {
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

    private func show(_ table: TourTable) {
        terminal.line(terminal.paint(table.title, .dim))
        let rows = table.rows.map { $0.map(\.text) }
        let widths = table.columns.indices.map { index in
            ([table.columns] + rows).map { index < $0.count ? TextWidth.columns($0[index]) : 0 }.max() ?? 0
        }
        func line(_ cells: [String], _ values: [TourValue]?) -> String {
            let padded = cells.indices.map { index in
                let space = String(repeating: " ", count: max(0, widths[index] - TextWidth.columns(cells[index])))
                let isNumber = values.map { if case .text = $0[index] { false } else { true } } ?? false
                return isNumber ? space + cells[index] : cells[index] + space
            }
            let text = "  " + padded.joined(separator: "  ")
            return String(text.dropLast(text.reversed().prefix { $0 == " " }.count))
        }
        terminal.line(terminal.paint(line(table.columns, nil), .dim))
        for (row, cells) in zip(table.rows, rows) { terminal.line(line(cells, row)) }
    }

    /// A figure that only the page has.
    private func inPage(_ title: String) {
        terminal.line(terminal.paint("\(title): in the page (--html FILE)", .dim))
    }

    private func show(_ flow: TourFlow) {
        terminal.line(terminal.paint(flow.title, .dim))
        for step in flow.steps {
            terminal.line("  " + step.text + (step.yes.map { "  yes → \($0)" } ?? ""))
        }
    }

    private func show(_ steps: TourSteps) {
        terminal.line(terminal.paint(steps.title, .dim))
        for (number, step) in steps.steps.enumerated() {
            terminal.line("  \(number + 1). \(step.caption)")
            let boxes = step.boxes.map { box in
                let text = "\(box.label): \(box.text)"
                switch box.tone {
                case .neutral: return text
                case .good: return terminal.paint(text, .green)
                case .warning: return terminal.paint(text, .yellow)
                case .bad: return terminal.paint(text, .red)
                case .absent: return terminal.paint(text, .dim)
                }
            }
            terminal.line("     " + boxes.joined(separator: "   "))
        }
    }
}
