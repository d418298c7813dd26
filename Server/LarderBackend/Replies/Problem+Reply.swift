import LarderCoding
package import LarderEngine
package import LarderHTTP

extension Problem {
    /// The problem as a reply, with `no-store`: the next attempt may succeed.
    package var reply: Reply {
        var fields = fields
        fields.set(.contentType, "application/problem+json")
        fields.set(.cacheControl, "no-store")
        fields.set(.vary, "Authorization, Origin")
        return .response(Response(status: status, fields: fields, body: .bytes(encoded())))
    }
}
