import LarderEngine
import LarderHTTP

/// The dashboard: a page that shows and controls a world through the control API.
enum DashboardEndpoints {
    /// The page is below the server or below a world (`/w/blue/_larder/`). `/_larder` without a slash belongs to the API.
    static func isDashboard(_ request: Request) -> Bool { request.pathText == "/_larder/" }

    /// - Throws: the guard's errors, and `method-not-allowed`.
    static func answer(_ request: Request, _ controlGuard: ControlGuard) throws(Problem) -> Reply {
        try controlGuard.checkPage(request)
        guard request.method == .get || request.method == .head else { throw ControlEndpoints.wrongMethod([.get]) }
        let document = DashboardDocument.shared
        var fields: Fields = [.contentType: "text/html; charset=utf-8", .cacheControl: "no-store"]
        for (name, value) in [
            ("Content-Security-Policy", document.policy), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "same-origin"),
            ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
        ] {
            if let name = FieldName(name) { fields.set(name, value) }
        }
        return Reply(status: .ok, fields: fields, body: .bytes(document.bytes))
    }
}
