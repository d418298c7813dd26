import LarderHTTP

/// Replies of another server than the API's, such as a captive portal or a proxy.
enum ForeignReply {
    /// Whether the response is HTML although the request's `Accept` excludes HTML.
    static func isForeign(_ fields: Fields, to request: TransportRequest) -> Bool {
        guard let accept = request.fields.combined(.accept)?.lowercased(), let type = fields[.contentType]?.lowercased()
        else { return false }
        let isHTML = type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
        return isHTML && !accept.contains("html") && !accept.contains("*/*") && !accept.contains("text/*")
    }
}
