package import LarderCoding
import LarderHTTP

/// The body of a request as conditions and templates see it.
package enum RouteBody {
    /// The body as JSON, or a form as an object of texts; null for any other body.
    package static func value(of bytes: [UInt8], _ mediaType: String?) -> JSONValue {
        do { return try JSONParser.parse(bytes) } catch {
            // No JSON: it may be a form.
        }
        guard mediaType.flatMap({ MediaType(parsing: $0) })?.essence == "application/x-www-form-urlencoded",
            let form = QueryString(parsing: bytes)
        else { return .null }
        return .object(JSONObject(form.items.map { JSONObject.Member(name: $0.name, value: .string($0.value)) }))
    }
}
