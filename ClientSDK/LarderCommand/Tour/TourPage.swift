import Foundation
import Larder

/// The chapters of the tour as one HTML page that needs no other file: tables, and drawings as SVG. Steps are shown one by one with
/// buttons, the arrow keys, Home and End; without scripts all are shown.
struct TourPage {
    let chapters: [TourChapter]
    /// The date and the machine, for the reader of the page.
    let conditions: String

    var html: String {
        let links = chapters.map { "<a href=\"#\($0.name)\">\(Self.escaped($0.title))</a>" }.joined(separator: "\n")
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Larder: a measured tour</title><style>\(Self.style)</style></head><body>
            <header><h1>Larder: a measured tour</h1><p>\(Self.escaped(conditions))</p><nav>\(links)</nav></header>
            <main>\(chapters.map(section).joined(separator: "\n"))</main>
            <script>\(Self.script)
            \(TourTryout.script)</script></body></html>

            """
    }

    private func section(_ chapter: TourChapter) -> String {
        let exhibits = chapter.exhibits.map { exhibit in
            switch exhibit {
            case .table(let table): Self.html(table)
            case .bars(let bars): Self.figure(bars.caption, Self.drawing(Self.svg(bars)))
            case .curves(let curves):
                Self.figure("\(curves.title): \(curves.y) over \(curves.x)", Self.drawing(Self.svg(curves)))
            case .steps(let steps): Self.html(steps)
            case .flow(let flow): Self.figure(flow.title, Self.drawing(flow.svg))
            case .tryout(let tryout): Self.figure(tryout.title, tryout.html)
            }
        }
        return """
            <section id="\(chapter.name)"><h2>\(Self.escaped(chapter.title))</h2>
            <p>\(Self.escaped(chapter.question))</p>\(exhibits.joined())
            <p class="answer">\(Self.escaped(chapter.answer))</p></section>
            """
    }

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
    }

    // MARK: Exhibits

    private static func figure(_ title: String, _ content: String) -> String {
        "<figure><figcaption>\(escaped(title))</figcaption>\(content)</figure>"
    }

    /// A drawing that is scrolled where it would become too small to read.
    private static func drawing(_ svg: String) -> String { "<div class=\"scroll\">\(svg)</div>" }

    private static func html(_ table: TourTable) -> String {
        let head = table.columns.map { "<th>\(escaped($0))</th>" }.joined()
        let rows = table.rows.map { row in
            let cells = row.map { value in
                if case .text(let text) = value { return "<td>\(escaped(text))</td>" }
                return "<td class=\"number\">\(escaped(value.text))</td>"
            }
            return "<tr>\(cells.joined())</tr>"
        }
        return figure(
            table.title,
            "<div class=\"scroll\"><table><thead><tr>\(head)</tr></thead><tbody>\(rows.joined())</tbody></table></div>"
        )
    }

    private static func svg(_ bars: TourBars) -> String {
        var lines = "<svg viewBox=\"0 0 760 \(bars.bars.count * 26)\" role=\"img\">"
        for (index, (bar, length)) in zip(bars.bars, bars.lengths).enumerated() {
            let y = index * 26
            let width = number(400 * length)
            lines += "<text x=\"220\" y=\"\(y + 17)\" text-anchor=\"end\">\(escaped(bar.label))</text>"
            lines += "<rect x=\"228\" y=\"\(y + 4)\" width=\"\(width)\" height=\"18\" class=\"series0\"/>"
            lines += "<text x=\"\(number(236 + 400 * length))\" y=\"\(y + 17)\">\(escaped(bar.value.text))</text>"
        }
        return lines + "</svg>"
    }

    private static func svg(_ curves: TourCurves) -> String {
        let all = curves.curves.flatMap(\.points)
        guard let right = all.map(\.x).max(), let top = all.map(\.y).max(), right > 0, top > 0 else { return "" }
        let height = 230 + curves.curves.count * 22
        var text = "<svg viewBox=\"0 0 760 \(height)\" role=\"img\"><path class=\"axis\" d=\"M50 10V200H740\"/>"
        text += "<text x=\"44\" y=\"20\" text-anchor=\"end\">\(Int(top.rounded()))</text>"
        text += "<text x=\"44\" y=\"200\" text-anchor=\"end\">0</text>"
        text += "<text x=\"740\" y=\"218\" text-anchor=\"end\">\(Int(right.rounded())) \(escaped(curves.x))</text>"
        for (index, curve) in curves.curves.enumerated() {
            var path = ""
            for point in curve.points {
                let x = number(50 + 690 * point.x / right)
                let y = number(200 - 190 * point.y / top)
                path += path.isEmpty ? "M\(x) \(y)" : "H\(x)V\(y)"
            }
            text += "<path class=\"line line\(index % 4)\" d=\"\(path)\"/>"
            let y = 240 + index * 22
            text += "<rect x=\"50\" y=\"\(y - 11)\" width=\"12\" height=\"12\" class=\"series\(index % 4)\"/>"
            text += "<text x=\"70\" y=\"\(y)\">\(escaped(curve.label))</text>"
        }
        return text + "</svg>"
    }

    private static func html(_ steps: TourSteps) -> String {
        let count = steps.steps.count
        let pages = steps.steps.enumerated().map { index, step in
            let boxes = step.boxes.map { box in
                let bar = box.share.map { share in
                    let width = number(220 * min(1, max(0, share)))
                    return "<rect x=\"12\" y=\"60\" width=\"220\" height=\"4\" class=\"rest\"/>"
                        + "<rect x=\"12\" y=\"60\" width=\"\(width)\" height=\"4\" class=\"series0\"/>"
                }
                return """
                    <svg viewBox="0 0 244 72" role="img"><rect x="1" y="1" width="242" height="70" rx="6" \
                    class="box \(box.tone.rawValue)"/><text x="12" y="24" class="label">\(escaped(box.label))</text>
                    <text x="12" y="48">\(escaped(box.text))</text>\(bar ?? "")</svg>
                    """
            }
            return """
                <div class="step"><p>\(index + 1) of \(count): \(escaped(step.caption))</p>
                <div class="boxes">\(boxes.joined())</div></div>
                """
        }
        let buttons = "<button class=\"back\">Back</button> <button class=\"next\">Next</button>"
        return figure(
            steps.title,
            "<div class=\"steps\" tabindex=\"0\" role=\"group\" aria-label=\"\(escaped(steps.title))\" aria-live=\"polite\">"
                + "<p class=\"buttons\" hidden>\(buttons)</p>\(pages.joined())</div>"
        )
    }

    /// A number with at most two decimals.
    private static func number(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        if hundredths % 100 == 0 { return "\(hundredths / 100)" }
        return "\(hundredths < 0 ? "-" : "")\(abs(hundredths) / 100).\(String("0\(abs(hundredths) % 100)".suffix(2)))"
    }

    // MARK: Style and script

    private static let style = """
        :root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--soft:#5b6675;--rule:#d8dee6;--a:#2563eb;--b:#d97706;\
        --c:#059669;--d:#9333ea;--good:#d9f2e3;--warning:#fdf0cf;--bad:#fadcd9;--neutral:#e8eef7;--absent:#f3f4f6}
        @media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#12161c;--soft:#98a3b3;--rule:#2c3440;--a:#6ea0ff;\
        --b:#f0a542;--c:#3fc391;--d:#c084fc;--good:#12402b;--warning:#4a3a0d;--bad:#501f1b;--neutral:#1f2a3a;--absent:#1a1f27}}
        body{margin:0 auto;max-width:820px;padding:16px;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
        nav{display:flex;flex-wrap:wrap;gap:6px 16px}a{color:var(--a)}section{border-top:1px solid var(--rule);margin-top:32px}
        figure{margin:16px 0}figcaption{color:var(--soft);font-size:14px;margin-bottom:6px}.scroll{overflow-x:auto}
        table{border-collapse:collapse;font-size:14px}th,td{padding:4px 12px 4px 0;text-align:left;white-space:nowrap;\
        border-bottom:1px solid var(--rule)}td.number{text-align:right;font-variant-numeric:tabular-nums}
        svg{width:100%;min-width:560px;height:auto;font-size:14px}svg text{fill:var(--ink)}.label{font-weight:600}.axis{fill:none;stroke:var(--soft)}
        .line{fill:none;stroke-width:2}.line0{stroke:var(--a)}.line1{stroke:var(--b)}.line2{stroke:var(--c)}.line3{stroke:var(--d)}
        .series0{fill:var(--a)}.series1{fill:var(--b)}.series2{fill:var(--c)}.series3{fill:var(--d)}
        .box{stroke:var(--rule)}.neutral{fill:var(--neutral)}.good{fill:var(--good)}.warning{fill:var(--warning)}
        .bad{fill:var(--bad)}.absent{fill:var(--absent)}.answer{border-left:4px solid var(--a);padding-left:12px}
        .rest{fill:var(--rule)}.boxes{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:8px}
        .boxes svg{min-width:0;max-width:300px}button{font:inherit;padding:8px 18px}\
        input,select{font:inherit;max-width:100%}.answer-word{font-size:12px}
        """

    private static let script = """
        for (const figure of document.querySelectorAll('.steps')) {
          const steps = [...figure.querySelectorAll('.step')];
          const [back, next] = [figure.querySelector('.back'), figure.querySelector('.next')];
          let at = 0;
          const show = by => {
            at = Math.min(steps.length - 1, Math.max(0, at + by));
            steps.forEach((step, index) => { step.hidden = index !== at; });
            back.disabled = at === 0;
            next.disabled = at === steps.length - 1;
          };
          figure.querySelector('.buttons').hidden = false;
          back.onclick = () => show(-1);
          next.onclick = () => show(1);
          figure.onkeydown = event => {
            const by = { ArrowLeft: -1, ArrowRight: 1, Home: -at, End: steps.length - 1 - at }[event.key];
            if (by) { event.preventDefault(); show(by); }
          };
          show(0);
        }
        """
}
