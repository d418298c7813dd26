import LarderCoding
import LarderServer

/// One request to the control plane.
struct ControlRequest {
    let method: String
    private let segments: [String]
    private let query: String?
    let body: [UInt8]?
    let accept: String

    /// - Parameters:
    ///   - segments: the path inside the control plane of a world, not yet percent-encoded.
    ///   - query: the query as it is sent.
    init(
        _ method: String,
        _ segments: String...,
        query: String? = nil,
        body: [UInt8]? = nil,
        accept: String = "application/json"
    ) {
        self.method = method
        self.segments = segments
        self.query = query
        self.body = body
        self.accept = accept
    }

    /// A request with a JSON object; members that are nil are left out.
    init(_ method: String, _ segments: String..., json: KeyValuePairs<String, JSONValue?>) {
        self.method = method
        self.segments = segments
        query = nil
        body = JSONValue.members(json).encoded
        accept = "application/json"
    }

    /// Path and query for a world; nil for `main`.
    func target(in world: String?) -> String {
        let path = (["_larder"] + (world.map { ["worlds", $0] } ?? []) + segments).map { "/" + Self.encoded($0) }
            .joined()
        return query.map { "\(path)?\($0)" } ?? path
    }

    /// A path segment in which every byte but the unreserved ones is percent-encoded (RFC 3986 §2.3).
    private static func encoded(_ segment: String) -> String {
        var encoded = ""
        for byte in segment.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default: encoded += (byte < 0x10 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}
