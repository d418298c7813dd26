public import LarderHTTP

/// What an attempt's outcome says about another attempt.
public enum RetryVerdict: Sendable, Hashable {
    /// It has what it asked for, or a redirection: there is nothing to repeat.
    case answered
    /// The same again may well succeed.
    case transient
    /// Nothing has reached the server, so the same again does nothing twice, whatever it asks for.
    case unsent
    /// The server has understood and refused: the same again is refused again.
    case permanent
    /// Somebody on the way has answered in the server's place, as captive portals and proxies do.
    case foreign

    /// Judges a reply.
    ///
    /// | status | verdict |
    /// | --- | --- |
    /// | 1xx, 2xx, 3xx | answered |
    /// | 408, 425, 429 | transient |
    /// | 501, 505, 506, 508, 510, 511 | permanent |
    /// | any other 5xx, known or not (520 … 599) | transient |
    /// | any other 4xx | permanent |
    /// | any, in HTML although the request's `Accept` does not take HTML | foreign |
    public init(status: Status, fields: Fields, to request: TransportRequest) {
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

    /// Judges a failure.
    public init(_ error: TransportError) {
        switch error.code {
        case .unreachable: self = .unsent
        case .interrupted, .timedOut: self = .transient
        default: self = .permanent
        }
    }

    /// HTML where something else was asked for. A request that takes anything cannot tell, and is believed.
    private static func isForeign(_ fields: Fields, _ request: TransportRequest) -> Bool {
        guard let accept = request.fields.combined(.accept)?.lowercased(), let type = fields[.contentType]?.lowercased()
        else { return false }
        let isHTML = type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
        return isHTML && !accept.contains("html") && !accept.contains("*/*") && !accept.contains("text/*")
    }
}
