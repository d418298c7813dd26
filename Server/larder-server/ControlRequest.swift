import LarderCoding
import LarderHTTP
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
        let path = (["_larder"] + (world.map { ["worlds", $0] } ?? []) + segments).map {
            "/" + QueryString.percentEncoded($0)
        }
        .joined()
        return query.map { "\(path)?\($0)" } ?? path
    }
}
