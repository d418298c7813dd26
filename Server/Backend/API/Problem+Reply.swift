import LarderCoding
import LarderEngine
import LarderHTTP

extension Problem {
    /// The problem as a reply. Problems are never cached: the next try may well succeed.
    var reply: Reply {
        var fields = fields
        fields.set(.contentType, "application/problem+json")
        fields.set(.cacheControl, "no-store")
        fields.set(.vary, "Authorization, Origin")
        return .response(Response(status: status, fields: fields, body: .bytes(encoded())))
    }
}
