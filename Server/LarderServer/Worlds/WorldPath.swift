import LarderEngine
import LarderHTTP

/// A path that addresses a world other than `main`, or the control plane.
struct WorldPath {
    /// The header field with the identifier of a request's world.
    static let worldField: StaticString = "larder-world"

    let worldID: String
    /// The length in bytes of the world's prefix in the path.
    let prefixLength: Int
    /// Whether the request is for the control plane: `/_larder` or a path below it.
    let isControl: Bool

    /// Nil for a request to `main` without a prefix.
    ///
    /// - Parameter readsPrefix: whether a path below `/w/` names a world.
    init?(_ request: Request, readsPrefix: Bool) {
        let path = request.path
        var worldID: String?
        var prefixLength = 0
        if readsPrefix, path.count > 3, path[path.startIndex + 1] == UInt8(ascii: "w"),
            path[path.startIndex + 2] == UInt8(ascii: "/")
        {
            let rest = path[(path.startIndex + 3)...]
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            worldID = String(decoding: rest[..<end], as: UTF8.self)
            prefixLength = end - path.startIndex
        } else if let range = request.fields.range(of: Self.worldField) {
            worldID = String(decoding: request.head[range], as: UTF8.self)
        }
        let inner = path[(path.startIndex + prefixLength)...]
        let rest = inner.dropFirst("/_larder".utf8.count)
        isControl = inner.starts(with: "/_larder".utf8) && (rest.isEmpty || rest.first == UInt8(ascii: "/"))
        guard worldID != nil || isControl else { return nil }
        self.worldID = worldID ?? World.mainID
        self.prefixLength = prefixLength
    }
}
