import LarderCoding

/// The dashboard as one self-contained document: the files in `Dashboard`, combined on first use.
struct DashboardDocument: Sendable {
    /// The HTML, in UTF-8.
    let bytes: [UInt8]
    /// The `Content-Security-Policy` of the document: it allows exactly this style and script, and requests to the same server
    /// only.
    let policy: String

    static let shared = DashboardDocument(
        page: EmbeddedDocument.dashboardPage.bytes,
        style: EmbeddedDocument.dashboardStyle.bytes,
        script: EmbeddedDocument.dashboardScript.bytes
    )

    init(page: [UInt8], style: [UInt8], script: [UInt8]) {
        var bytes = Array("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n".utf8)
        bytes += Array("<title>Larder</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n".utf8)
        bytes += Array("<meta name=\"color-scheme\" content=\"light dark\">\n".utf8)
        // Without an icon a browser requests one, and the journal would record that.
        bytes += Array("<link rel=\"icon\" href=\"data:,\">\n<style>".utf8)
        bytes += style
        bytes += Array("</style>\n</head>\n".utf8)
        bytes += page
        bytes += Array("<script type=\"module\">".utf8)
        bytes += script
        bytes += Array("</script>\n</html>\n".utf8)
        self.bytes = bytes
        policy = [
            "default-src 'none'", "script-src '\(Self.digest(script))'", "style-src '\(Self.digest(style))'",
            "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        ].joined(separator: "; ")
    }

    private static func digest(_ bytes: [UInt8]) -> String { "sha256-" + Base64.encode(SHA256.hash(bytes)) }
}
