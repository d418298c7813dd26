import LarderCoding
package import LarderHTTP

extension Backend {
    /// Why the API of a world never serves a request; nil if it may.
    ///
    /// - Parameters:
    ///   - method: nil for any method.
    ///   - path: a path, or a pattern of `larder-server`'s faults with `*` as a segment. Of a pattern, only the collection is
    ///     checked.
    package func reasonNotServed(_ method: Method?, _ path: String, in world: World) -> String? {
        let bytes = Array(path.utf8)[...]
        // A fault's pattern may match what any route serves.
        let own = customRoutes.routes.matches(bytes)
        guard (method.map { own.accepting($0) } ?? own).isEmpty else { return nil }
        if let reason = reasonNoCollection(method ?? .get, path, in: world) { return reason }
        guard !path.utf8.contains(UInt8(ascii: "*")) else { return nil }
        let matches = routes(of: world).matches(bytes)
        guard matches.isEmpty else {
            let methods = methods(of: matches, in: world)
            guard let method, method != .head, method != .options, !methods.contains(method) else { return nil }
            return "\(path) takes \(methods.map(\.rawValue).joined(separator: ", ")), not \(method.rawValue)."
        }
        return DocumentationEndpoints.mayHave(path) ? nil : reasonMissing(method ?? .get, path, in: world)
    }

    /// The methods that a path of a world takes. The same path is that of a list or of one document.
    func methods(of matches: [RouteMatch], in world: World) -> [Method] {
        let match = matches.first { ["/{collection}", "/{collection}/{id}/{children}"].contains($0.route.template) }
        guard let match, let name = match.parameters.last else { return matches.methods }
        do {
            switch try world.read({ try $0.collections.find(name)?.isSingular }) {
            case true?: return match.parameters.count == 1 ? [.get, .put, .patch] : [.get]
            case false?: return [.get, .post]
            case nil: return matches.methods
            }
        } catch {
            // Each request of a world that cannot be read is answered with this error: that is no reason of the route.
            return matches.methods
        }
    }

    package func isChannel(_ path: String, in world: World) -> Bool {
        let paths = world.hasCollections ? ["/live"] : ["/v1/live", "/v1/live/events"]
        return paths.contains(path) && !customRoutes.accept(.get, Array(path.utf8)[...])
    }

    /// That a world of collections has none at a path, with the most similar one or the most similar route; nil if it has one.
    func reasonNoCollection(_ method: Method, _ path: String, in world: World) -> String? {
        guard world.hasCollections, let name = PathTemplate.segments(Array(path.utf8)[...])?.first, !name.isEmpty,
            !name.contains("*"), !CollectionEndpoints.reserved.contains(name), !world.collections.contains(name)
        else { return nil }
        return CollectionEndpoints.reasonMissing(
            name,
            in: world,
            or: Self.nearest(to: method, path, customRoutes.names)
        )
    }

    /// That nothing is at a path of a world, with the most similar route.
    func reasonMissing(_ method: Method, _ path: String, in world: World) -> String {
        let known = (customRoutes.routes + routes(of: world)).map(\.name)
        let nearest = Self.nearest(to: method, path, known)
        return "There is no route for \(Self.name(method, path))." + (nearest.map { " Did you mean \($0)?" } ?? "")
    }

    private static func name(_ method: Method, _ path: String) -> String {
        // A reply to HEAD has the fields of that to GET.
        "\(method == .head ? .get : method) \(path.prefix(200))"
    }

    /// The most similar one of some routes, of those of the method if one is similar. A parameter is as similar as it can be.
    private static func nearest(to method: Method, _ path: String, _ routes: [String]) -> String? {
        let name = name(method, path)
        for takesAnyMethod in [false, true] {
            let filled = routes.map { Self.filled($0, name, takesAnyMethod: takesAnyMethod) }
            let similar = NearestName.similar(to: name, in: filled).first
            if let index = similar.flatMap({ filled.firstIndex(of: $0) }) { return routes[index] }
        }
        return nil
    }

    /// The name of a route with the method and the segments of a request where it takes any.
    private static func filled(_ route: String, _ request: String, takesAnyMethod: Bool) -> String {
        var parts = route.split(separator: "/", omittingEmptySubsequences: false)
        let wanted = request.split(separator: "/", omittingEmptySubsequences: false)
        if takesAnyMethod || parts[0] == "* " { parts[0] = wanted[0] }
        guard parts.count == wanted.count else { return parts.joined(separator: "/") }
        return zip(parts, wanted).map { $0.hasPrefix("{") ? $1 : $0 }.joined(separator: "/")
    }
}
