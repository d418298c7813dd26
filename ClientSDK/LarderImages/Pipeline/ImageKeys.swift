import LarderCoding
import LarderHTTP

/// Identifies a file: its identity, which is its URL unless the request says otherwise, and the request fields.
struct ImageSourceKey: Hashable, Sendable {
    /// Where it is requested. Not compared.
    let url: String
    let fields: Fields
    let identity: String

    init(url: String, fields: Fields, identity: String? = nil) {
        self.url = url
        self.fields = fields
        self.identity = identity ?? url
    }

    init(_ request: ImageRequest) {
        self.init(url: request.url, fields: request.fields, identity: request.identity)
    }

    static func == (left: ImageSourceKey, right: ImageSourceKey) -> Bool {
        left.identity == right.identity && left.fields == right.fields
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(identity)
        hasher.combine(fields)
    }

    /// A digest of identity and fields.
    var digest: String {
        var text = identity
        for field in fields { text += "\n\(field.name.canonical): \(field.value)" }
        return hexEncode(SHA256.hash(Array(text.utf8)))
    }
}

/// Identifies decoded pixels: file and size. A small picture is never used for a large one.
struct ImageResultKey: Hashable, Sendable {
    let source: ImageSourceKey
    let target: ImageTarget?

    init(_ request: ImageRequest, target: ImageTarget?) {
        source = ImageSourceKey(request)
        self.target = target
    }
}

/// Identifies a download that requests can share.
struct ImageLoadKey: Hashable, Sendable {
    let source: ImageSourceKey
    let options: ImageRequest.CacheOptions
    /// Requests after `removeAll` do not join work that began before it.
    let epoch: Int
}

/// Identifies a decode that requests can share.
struct ImageJobKey: Hashable, Sendable {
    let result: ImageResultKey
    let options: ImageRequest.CacheOptions
    let epoch: Int
}
