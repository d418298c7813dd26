import LarderCoding

/// The dashboard as one self-contained document: the files in `Dashboard`, combined on first use. The page names an empty icon: otherwise a
/// browser requests one, and the journal records that.
struct DashboardDocument: Sendable {
    /// The HTML, in UTF-8.
    let bytes: [UInt8]
    /// The `Content-Security-Policy` of the document: it allows exactly this style and script, and requests to the same server
    /// only.
    let policy: String

    static let shared = DashboardDocument()

    private init() {
        let (style, script) = (EmbeddedDocument.dashboardStyle.bytes, EmbeddedDocument.dashboardScript.bytes)
        bytes = EmbeddedDocument.dashboardPage.bytes.replacing(Array("{{style}}".utf8), with: style)
            .replacing(Array("{{script}}".utf8), with: script)
        policy = [
            "default-src 'none'", "script-src '\(Self.digest(script))'", "style-src '\(Self.digest(style))'",
            "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        ].joined(separator: "; ")
    }

    private static func digest(_ bytes: [UInt8]) -> String { "sha256-" + Base64.encode(SHA256.hash(bytes)) }
}
