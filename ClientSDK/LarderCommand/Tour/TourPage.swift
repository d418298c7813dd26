import Foundation
import Larder

/// The chapters of the tour as one HTML page that needs no other file.
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
            <script>\(TourTryout.script)</script></body></html>

            """
    }

    private func section(_ chapter: TourChapter) -> String {
        let exhibits = chapter.exhibits.map { exhibit in
            switch exhibit {
            case .table(let table): Self.html(table)
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

    // MARK: Style

    private static let style = """
        :root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--soft:#5b6675;--rule:#d8dee6;--a:#2563eb;--good:#d9f2e3;--warning:#fdf0cf;--neutral:#e8eef7}
        @media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#12161c;--soft:#98a3b3;--rule:#2c3440;--a:#6ea0ff;--good:#12402b;--warning:#4a3a0d;--neutral:#1f2a3a}}
        *{box-sizing:border-box}body{margin:0 auto;max-width:900px;padding:16px;font:16px/1.5 system-ui,sans-serif;\
        color:var(--ink);background:var(--paper)}
        nav{display:flex;flex-wrap:wrap;gap:6px 16px}a{color:var(--a)}section{border-top:1px solid var(--rule);margin-top:32px}
        figure{margin:16px 0}figcaption{color:var(--soft);font-size:14px;margin-bottom:6px}
        table{border-collapse:collapse;font-size:14px}th,td{padding:4px 16px 4px 0;text-align:left;vertical-align:bottom;\
        border-bottom:1px solid var(--rule)}.number{text-align:right;font-variant-numeric:tabular-nums}td.number{white-space:nowrap}
        ul,ol{list-style:none;margin:0;padding:0;font-size:14px}
        .box{border:1px solid var(--rule);border-radius:6px;padding:8px 12px;overflow-wrap:anywhere}\
        .neutral{background:var(--neutral)}.good{background:var(--good)}.warning{background:var(--warning)}
        .flow li{display:grid;grid-template-columns:1fr 34px 1fr;align-items:center;margin-bottom:18px;position:relative}\
        .flow li:not(:last-child)::after{content:"";position:absolute;left:20px;top:100%;height:18px;border-left:1px solid var(--soft)}\
        .flow .asks:not(:last-child)::before{content:"no";position:absolute;left:28px;top:100%;font-size:12px;line-height:18px}\
        .answer-word{font-size:12px;text-align:center}.answer{border-left:4px solid var(--a);padding-left:12px}
        .fields{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center}button{font:inherit;padding:8px 18px}\
        input,select{font:inherit;max-width:100%}
        @media(max-width:640px){.wide,.wide tbody{display:block}.wide thead{display:none}.wide tr{display:grid;\
        grid-template-columns:repeat(auto-fill,minmax(130px,1fr));padding:6px 0;border-bottom:1px solid var(--rule)}\
        .wide td:empty{display:none}.wide td{border:0;padding:2px 8px 2px 0;text-align:left;white-space:normal}.wide td::before{content:attr(data-label);\
        display:block;color:var(--soft);font-size:12px}th,td{padding-right:10px}.flow li{grid-template-columns:1fr}.flow .asks{grid-template-columns:24px 1fr}\
        .flow .asks>:first-child{grid-column:1/-1}.asks .answer-word{text-align:right;padding-right:6px}}
        """
}
