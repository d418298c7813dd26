import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Endpoints about the server itself: health, OpenAPI description, problem types and front page.
enum DocumentationEndpoints {
    /// The answer if the path is one of these; otherwise nil.
    ///
    /// - Parameter describesDemo: whether the front page and the description of the demo API are served.
    static func answer(_ request: Request, now: WallTime, describesDemo: Bool) throws(Problem) -> Reply? {
        let path = request.pathText
        // `OPTIONS *` applies to the server and not to a resource (RFC 9110 §9.3.7).
        if path == "*" {
            return try CrossOrigin.options(APIRoutes.all.compactMap(\.method), request)
        }
        if !describesDemo, path == "/" || path == "/openapi.json" { return nil }
        guard let answer = document(path, request, now) else { return nil }
        guard request.method == .get || request.method == .head else {
            return try CrossOrigin.options([.get], request)
        }
        return answer
    }

    /// Whether a path is that of one of these documents, or may be.
    static func mayHave(_ path: String) -> Bool {
        ["", "healthz", "openapi.json", "problems"].contains(path.split(separator: "/").first ?? "")
    }

    private static func document(_ path: String, _ request: Request, _ now: WallTime) -> Reply? {
        let representation: Representation
        switch path {
        case "/healthz": return .json(.ok, Array("{\"status\":\"ok\"}".utf8), fields: [.vary: "Origin"])
        case "/openapi.json": representation = description
        case "/problems":
            let items = JSONValue.array(ProblemType.allCases.map { json($0) })
            representation = document(JSONValue.members(["items": items]).encoded)
        case "/": representation = document(frontPage(), html)
        default:
            guard path.hasPrefix("/problems/"),
                let type = ProblemType(rawValue: String(path.dropFirst("/problems/".count)))
            else { return nil }
            representation = wantsPage(request) ? document(page(type), html) : document(json(type).encoded)
        }
        return representation.reply(to: request, now: now)
    }

    private static let html = "text/html; charset=utf-8"
    private static let description = document(EmbeddedDocument.openapi.bytes)

    private static func document(_ body: [UInt8], _ mediaType: String = "application/json") -> Representation {
        Representation(
            body: body,
            mediaType: mediaType,
            cacheControl: CachePolicy.documentation,
            vary: "Accept, Origin"
        )
    }

    /// Whether the client prefers HTML, as browsers do.
    private static func wantsPage(_ request: Request) -> Bool {
        guard let accept = request.fields.combined(.accept).map({ Accept(parsing: $0) }) else { return false }
        return accept.quality(of: "text/html") > accept.quality(of: "application/json")
    }

    private static func json(_ type: ProblemType) -> JSONValue {
        .members([
            "type": .string("/problems/\(type.name)"), "title": .string(type.title),
            "status": .integer(Int64(type.status.code)), "explanation": .string(type.explanation),
        ])
    }

    private static let style = """
        <style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color:#222}\
        code{background:#f3f1ec;padding:.1em .3em;border-radius:3px}h1{font-size:1.5rem}li{margin:.3em 0}</style>
        """

    private static func page(_ type: ProblemType) -> [UInt8] {
        let html = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>\(escape(type.title))</title>\(style)</head>
            <body><p><code>\(type.status.code)</code> <code>/problems/\(type.name)</code></p>
            <h1>\(escape(type.title))</h1><p>\(escape(type.explanation))</p><p><a href="/">Larder</a></p></body></html>
            """
        return Array(html.utf8)
    }

    private static func frontPage() -> [UInt8] {
        let links = [
            ("/v1/feed?limit=5&include=profiles", "the feed"), ("/v1/profiles", "people"),
            ("/v1/changes?limit=5", "the change feed"), ("/v1/live/events", "changes in real time (event stream)"),
            ("/_larder/", "the dashboard: requests and faults"),
            ("/openapi.json", "the API, as OpenAPI 3.1"), ("/problems", "all problem types"),
            ("/healthz", "health"),
        ]
        let items = links.map { "<li><a href=\"\($0.0)\"><code>\($0.0)</code></a> — \($0.1)</li>" }.joined(
            separator: "\n"
        )
        let html = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>Larder</title>\(style)</head>
            <body><h1>Larder is serving.</h1><ul>\(items)</ul>
            <p>Personal parts need <code>Authorization: Bearer dev-ana</code>.</p></body></html>
            """
        return Array(html.utf8)
    }

    private static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }
}
