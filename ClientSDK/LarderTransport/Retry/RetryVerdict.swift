package import LarderHTTP

/// Classifies the outcome of an attempt for a retry.
package enum RetryVerdict: Sendable, Hashable {
    /// A success or a redirect: no retry.
    case answered
    /// A retry may succeed.
    case transient
    /// Nothing reached the server, so that even a request that is not idempotent may be retried.
    case unsent
    /// The server rejected the request and would reject it again.
    case permanent
    /// Another server answered, such as a captive portal or a proxy.
    case foreign

    /// Classifies a response.
    ///
    /// | status | verdict |
    /// | --- | --- |
    /// | 1xx, 2xx, 3xx | answered |
    /// | 408, 425, 429 | transient |
    /// | 501, 505, 506, 508, 510, 511 | permanent |
    /// | any other 5xx, known or not (520 … 599) | transient |
    /// | any other 4xx | permanent |
    /// | any, in HTML although the request's `Accept` does not take HTML | foreign |
    package init(status: Status, fields: Fields, to request: TransportRequest) {
        if Self.isForeign(fields, request) {
            self = .foreign
            return
        }
        switch status.code {
        case ..<400: self = .answered
        case 408, 425, 429: self = .transient
        case 501, 505, 506, 508, 510, 511: self = .permanent
        case 500...: self = .transient
        default: self = .permanent
        }
    }

    /// Classifies a failure.
    package init(_ error: TransportError) {
        switch error.code {
        case .unreachable: self = .unsent
        case .interrupted, .timedOut: self = .transient
        default: self = .permanent
        }
    }

    /// Whether the response is HTML although the request's `Accept` excludes HTML.
    private static func isForeign(_ fields: Fields, _ request: TransportRequest) -> Bool {
        guard let accept = request.fields.combined(.accept)?.lowercased(), let type = fields[.contentType]?.lowercased()
        else { return false }
        let isHTML = type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
        return isHTML && !accept.contains("html") && !accept.contains("*/*") && !accept.contains("text/*")
    }
}
