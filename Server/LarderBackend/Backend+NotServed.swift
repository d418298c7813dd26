package import LarderHTTP

extension Backend {
    /// Why the API of a world never serves a request; nil if it may.
    ///
    /// - Parameters:
    ///   - method: nil for any method.
    ///   - path: a path, or a pattern of `larder-server`'s faults with `*` as a segment. Of a pattern, only the collection is
    ///     checked.
    package func reasonNotServed(_ method: Method?, _ path: String, in world: World) -> String? {
        let isPattern = path.utf8.contains(UInt8(ascii: "*"))
        if world.hasCollections, let name = path.split(separator: "/").first.map({ String($0) }),
            name != "openapi.json",
            !name.utf8.contains(UInt8(ascii: "*")), !CollectionNames.reserved.contains(name),
            !world.collections.contains(name)
        {
            return CollectionNames.reasonMissing(name, in: world)
        }
        guard !isPattern else { return nil }
        switch router(of: world).match(method ?? .get, path: Array(path.utf8)[...]) {
        case .route: return nil
        case .otherMethods(let others):
            guard let method, method != .head, method != .options else { return nil }
            return "\(path) takes \(others.map { $0.rawValue }.joined(separator: ", ")), not \(method.rawValue)."
        case .none: return path.hasPrefix("/v1/") ? "The API has nothing at \(path)." : nil
        }
    }
}
