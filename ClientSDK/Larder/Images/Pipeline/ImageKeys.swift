import LarderCoding
import LarderHTTP

/// Which bytes are meant.
struct ImageSourceKey: Hashable, Sendable {
    let url: String
    let fields: Fields

    init(_ request: ImageRequest) {
        url = request.url
        fields = request.fields
    }

    /// What the bytes are called on disk: a digest, so that neither URLs nor tokens in fields lie open.
    var diskKey: String {
        var text = url
        for field in fields { text += "\n\(field.name.canonical): \(field.value)" }
        return "image/" + hexEncode(SHA256.hash(Array(text.utf8)))
    }
}

/// Which pixels are meant: the bytes, the size, and what is done to them. A small picture can never pass for the large one.
struct ImageResultKey: Hashable, Sendable {
    let source: ImageSourceKey
    let target: ImageTarget?
    let processors: [String]

    init(_ request: ImageRequest, target: ImageTarget?) {
        source = ImageSourceKey(request)
        self.target = target
        processors = request.processors.isEmpty ? [] : request.processors.map(\.identifier)
    }
}

/// A download that requests share.
struct ImageLoadKey: Hashable, Sendable {
    let source: ImageSourceKey
    let options: ImageCacheOptions
    /// What is asked for after everything was erased does not join what was begun before.
    let epoch: Int
}

/// A decoded picture that requests share.
struct ImageJobKey: Hashable, Sendable {
    let result: ImageResultKey
    let options: ImageCacheOptions
    let epoch: Int
}
