import LarderEngine
import LarderHTTP

/// The result of an operation of the API.
enum Answer {
    /// The current representation of the requested resource. The request's conditions decide whether it is sent whole or as a
    /// 304.
    case representation(Representation)
    /// A complete reply.
    case reply(Reply)
    /// The operation keeps the exchange and completes it later.
    case later
}

extension Answer {
    /// A JSON reply with `Cache-Control: no-store`, or an empty one.
    static func json(_ status: Status, _ body: [UInt8], fields: Fields = Fields(), cacheControl: StaticString)
        -> Answer
    {
        var fields = fields
        fields.set(.cacheControl, cacheControl.description)
        fields.set(.contentType, "application/json")
        return .reply(.response(Response(status: status, fields: fields, body: .bytes(body))))
    }

    /// 204 No Content.
    static let noContent = Answer.reply(
        .response(Response(status: .noContent, fields: [.cacheControl: "no-store"], body: .empty))
    )
}
