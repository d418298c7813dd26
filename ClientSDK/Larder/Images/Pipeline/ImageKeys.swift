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

    /// Under what the responses of the URL lie on disk: a digest, so that URLs do not lie open. What varies between them is in
    /// their selectors.
    var place: String { hexEncode(SHA256.hash(Array(url.utf8))) }

    /// What a part of the file is called on disk: a digest of all that was asked, so that no two are ever put together.
    var digest: String {
        var text = url
        for field in fields { text += "\n\(field.name.canonical): \(field.value)" }
        return hexEncode(SHA256.hash(Array(text.utf8)))
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
