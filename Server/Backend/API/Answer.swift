import LarderEngine
import LarderHTTP

/// What an operation gives back.
enum Answer {
    /// The current representation of what a GET named: sent whole, or as a 304, as the request's conditions have it.
    case representation(Representation)
    /// A reply that is ready.
    case reply(Reply)
    /// The exchange was kept and will be completed later.
    case later
}

extension Answer {
    /// A JSON reply that no cache keeps, or an empty one.
    static func json(_ status: Status, _ body: [UInt8], fields: Fields = Fields(), cacheControl: StaticString) -> Answer
    {
        var fields = fields
        fields.set(.cacheControl, cacheControl.description)
        fields.set(.contentType, "application/json")
        return .reply(.response(Response(status: status, fields: fields, body: .bytes(body))))
    }

    /// Success with nothing to say.
    static let noContent = Answer.reply(
        .response(Response(status: .noContent, fields: [.cacheControl: "no-store"], body: .empty))
    )
}
