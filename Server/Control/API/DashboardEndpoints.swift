import LarderEngine
import LarderHTTP

/// The dashboard: a page that shows a world and steers it, by the control API alone.
enum DashboardEndpoints {
    /// Where the page is, below the server or below a world (`/w/blue/_larder/`). `/_larder` without a slash is the API's.
    private static let paths: Set<String> = ["/_larder/", "/_larder/dashboard"]

    static func isDashboard(_ request: Request) -> Bool { paths.contains(request.pathText) }

    /// - Throws: what the guard says of the request, and `method-not-allowed`.
    static func answer(_ request: Request, _ guardian: ControlGuard) throws(Problem) -> Reply {
        try guardian.checkPage(request)
        guard request.method == .get || request.method == .head else { throw ControlEndpoints.wrongMethod("GET, HEAD") }
        let document = DashboardDocument.shared
        var fields: Fields = [.contentType: "text/html; charset=utf-8", .cacheControl: "no-store"]
        for (name, value) in [
            ("Content-Security-Policy", document.policy), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "same-origin"),
            ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
        ] {
            if let name = FieldName(name) { fields.set(name, value) }
        }
        return .response(Response(status: .ok, fields: fields, body: .bytes(document.bytes)))
    }
}
