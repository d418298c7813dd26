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
            case .bars(let bars): show(bars)
            case .curves(let curves): show(curves)
            case .steps(let steps): show(steps)
            case .flow(let flow): show(flow)
            case .tryout(let tryout): terminal.line(terminal.paint("\(tryout.title): in the page (--html FILE)", .dim))
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

    private func show(_ bars: TourBars) {
        terminal.line(terminal.paint(bars.caption, .dim))
        let labels = bars.bars.map { TextWidth.columns($0.label) }.max() ?? 0
        let room = max(10, width - labels - 16)
        for (bar, length) in zip(bars.bars, bars.lengths) {
            let drawn = String(repeating: "█", count: Int((Double(room) * length).rounded()))
            terminal.line("  \(TextWidth.pad(bar.label, labels))  \(terminal.paint(drawn, .cyan)) \(bar.value.text)")
        }
    }

    private func show(_ curves: TourCurves) {
        let all = curves.curves.flatMap(\.points)
        guard let right = all.map(\.x).max(), let top = all.map(\.y).max(), right > 0, top > 0 else { return }
        terminal.line(terminal.paint("\(curves.title): \(curves.y) over \(curves.x)", .dim))
        let labels = curves.curves.map { TextWidth.columns($0.label) }.max() ?? 0
        let room = max(20, width - labels - 4)
        let marks = Array(" ▁▂▃▄▅▆▇█")
        for curve in curves.curves {
            let line = (0..<room).map { column -> Character in
                let x = right * Double(column) / Double(room - 1)
                let y = curve.points.last { $0.x <= x }?.y ?? 0
                return marks[min(8, max(0, Int((8 * y / top).rounded(.up))))]
            }
            terminal.line("  \(TextWidth.pad(curve.label, labels))  \(terminal.paint(String(line), .cyan))")
        }
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
