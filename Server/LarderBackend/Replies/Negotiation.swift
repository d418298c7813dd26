import LarderCoding
import LarderEngine
import LarderHTTP

/// Content negotiation (RFC 9110 §12.5.1, §12.5.3).
enum Negotiation {
    /// The content coding that the client prefers; nil for none, and without the system's zlib.
    static func coding(_ request: Request, zlib: Result<Zlib, InflateError> = Zlib.system) -> ContentCoding? {
        guard case .success = zlib, request.fields.range(of: "accept-encoding") != nil,
            let value = request.fields.combined(.acceptEncoding)
        else { return nil }
        return ContentCoding.negotiated(value)
    }

    static func acceptsJSON(_ request: Request) -> Bool {
        guard let accept = request.fields.combined(.accept) else { return true }
        // What nearly every client sends needs no parsing.
        if accept == "*/*" || accept == "application/json" { return true }
        return Accept(parsing: accept).accepts("application/json")
    }

    /// - Throws: `not-acceptable` if the client does not accept JSON. For replies that are not cached representations.
    static func requireJSON(_ request: Request) throws(Problem) {
        guard acceptsJSON(request) else { throw ProblemType.notAcceptable("The resource is application/json.") }
    }
}
