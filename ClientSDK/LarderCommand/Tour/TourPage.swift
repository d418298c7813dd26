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
            case .bars(let bars): Self.figure(bars.caption, Self.html(bars))
            case .curves(let curves): Self.figure("\(curves.title): \(curves.y) over \(curves.x)", Self.html(curves))
            case .steps(let steps): Self.html(steps)
            case .flow(let flow): Self.figure(flow.title, flow.html)
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

    /// A table, whose rows are blocks of labelled values where there is no room for its columns.
    private static func html(_ table: TourTable) -> String {
        let numbers = table.columns.indices.map { column in
            table.rows.contains { if case .text = $0[column] { false } else { true } }
        }
        func attributes(_ column: Int) -> String { numbers[column] ? " class=\"number\"" : "" }
        let head = table.columns.indices.map { "<th\(attributes($0))>\(escaped(table.columns[$0]))</th>" }
        let rows = table.rows.map { row in
            let cells = row.indices.map { column in
                let label = " data-label=\"\(escaped(table.columns[column]))\""
                return "<td\(attributes(column))\(label)>\(escaped(row[column].text))</td>"
            }
            return "<tr>\(cells.joined())</tr>"
        }
        let body = "<thead><tr>\(head.joined())</tr></thead><tbody>\(rows.joined())</tbody>"
        let isWide = table.columns.count > 5
        return figure(table.title, "<table\(isWide ? " class=\"wide\"" : "")>\(body)</table>")
    }

    private static func html(_ bars: TourBars) -> String {
        let rows = zip(bars.bars, bars.lengths).map { bar, length in
            "<li><span>\(escaped(bar.label))</span><span class=\"bar\"><i style=\"width:\(number(70 * length))%\"></i> "
                + "\(escaped(bar.value.text))</span></li>"
        }
        return "<ul class=\"bars\">\(rows.joined())</ul>"
    }

    /// The curves in a drawing of 600 × 230, and what each color means below.
    private static func html(_ curves: TourCurves) -> String {
        let all = curves.curves.flatMap(\.points)
        guard let right = all.map(\.x).max(), let top = all.map(\.y).max(), right > 0, top > 0 else { return "" }
        var text = "<svg viewBox=\"0 0 600 230\" role=\"img\"><path class=\"axis\" d=\"M50 10V200H590\"/>"
        text += "<text x=\"44\" y=\"20\" text-anchor=\"end\">\(Int(top.rounded()))</text>"
        text += "<text x=\"44\" y=\"200\" text-anchor=\"end\">0</text>"
        text += "<text x=\"590\" y=\"222\" text-anchor=\"end\">\(Int(right.rounded())) \(escaped(curves.x))</text>"
        var legend = ""
        for (index, curve) in curves.curves.enumerated() {
            var path = ""
            for point in curve.points {
                let x = number(50 + 540 * point.x / right)
                let y = number(200 - 190 * point.y / top)
                path += path.isEmpty ? "M\(x) \(y)" : "H\(x)V\(y)"
            }
            text += "<path class=\"line line\(index % 4)\" d=\"\(path)\"/>"
            legend += "<li><i class=\"series\(index % 4)\"></i> \(escaped(curve.label))</li>"
        }
        return text + "</svg><ul class=\"legend\">\(legend)</ul>"
    }

    private static func html(_ steps: TourSteps) -> String {
        let count = steps.steps.count
        let pages = steps.steps.enumerated().map { index, step in
            let boxes = step.boxes.map { box in
                let bar = box.share.map { share in
                    "<span class=\"rest\"><i style=\"width:\(number(100 * min(1, max(0, share))))%\"></i></span>"
                }
                return
                    "<div class=\"box \(box.tone.rawValue)\"><b>\(escaped(box.label))</b><span>\(escaped(box.text))</span>"
                    + "\(bar ?? "")</div>"
            }
            return """
                <div class="step"><p>\(index + 1) of \(count): \(escaped(step.caption))</p>
                <div class="boxes by\(boxes.count % 3 == 0 ? 3 : 4)">\(boxes.joined())</div></div>
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
        *{box-sizing:border-box}body{margin:0 auto;max-width:900px;padding:16px;font:16px/1.5 system-ui,sans-serif;\
        color:var(--ink);background:var(--paper)}
        nav{display:flex;flex-wrap:wrap;gap:6px 16px}a{color:var(--a)}section{border-top:1px solid var(--rule);margin-top:32px}
        figure{margin:16px 0}figcaption{color:var(--soft);font-size:14px;margin-bottom:6px}
        table{border-collapse:collapse;font-size:14px}th,td{padding:4px 16px 4px 0;text-align:left;vertical-align:bottom;\
        border-bottom:1px solid var(--rule)}.number{text-align:right;font-variant-numeric:tabular-nums}td.number{white-space:nowrap}
        ul,ol{list-style:none;margin:0;padding:0;font-size:14px}i{display:inline-block}
        svg{display:block;width:100%;max-width:720px;height:auto;font-size:14px}svg text{fill:var(--ink)}
        .axis{fill:none;stroke:var(--soft)}.line{fill:none;stroke-width:2}.line0{stroke:var(--a)}.line1{stroke:var(--b)}\
        .line2{stroke:var(--c)}.line3{stroke:var(--d)}.series0{background:var(--a)}.series1{background:var(--b)}\
        .series2{background:var(--c)}.series3{background:var(--d)}.legend i{width:12px;height:12px}
        .bars li{display:grid;grid-template-columns:minmax(90px,220px) 1fr;gap:10px;align-items:center;margin:4px 0}\
        .bars li>:first-child{text-align:right}.bar i{height:18px;background:var(--a);vertical-align:middle}
        .box{border:1px solid var(--rule);border-radius:6px;padding:8px 12px;overflow-wrap:anywhere}.box b,.box span{display:block}\
        .neutral{background:var(--neutral)}.good{background:var(--good)}.warning{background:var(--warning)}.bad{background:var(--bad)}\
        .absent{background:var(--absent)}.rest{height:4px;margin-top:6px;background:var(--rule)}.rest i{height:4px;background:var(--a);\
        vertical-align:top}.boxes{display:grid;gap:8px;font-size:14px}.by3{grid-template-columns:repeat(3,1fr)}.by4{grid-template-columns:repeat(4,1fr)}
        .flow li{display:grid;grid-template-columns:1fr 44px 1fr;align-items:center;margin-bottom:18px;position:relative}\
        .flow li:not(:last-child)::after{content:"";position:absolute;left:20px;top:100%;height:18px;border-left:1px solid var(--soft)}\
        .flow .asks:not(:last-child)::before{content:"no";position:absolute;left:28px;top:100%;font-size:12px;line-height:18px}\
        .answer-word{font-size:12px;text-align:center}.answer{border-left:4px solid var(--a);padding-left:12px}
        .fields{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center}button{font:inherit;padding:8px 18px}\
        input,select{font:inherit;max-width:100%}
        @media(max-width:640px){.by4{grid-template-columns:repeat(2,1fr)}.wide,.wide tbody{display:block}.wide thead{display:none}.wide tr{display:grid;\
        grid-template-columns:repeat(auto-fill,minmax(130px,1fr));padding:6px 0;border-bottom:1px solid var(--rule)}\
        .wide td:empty{display:none}.wide td{border:0;padding:2px 8px 2px 0;text-align:left;white-space:normal}.wide td::before{content:attr(data-label);\
        display:block;color:var(--soft);font-size:12px}th,td{padding-right:10px}.flow li{grid-template-columns:1fr}.flow .asks{grid-template-columns:44px 1fr}\
        .flow .asks>:first-child{grid-column:1/-1}.asks .answer-word{text-align:right;padding-right:6px}}
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
