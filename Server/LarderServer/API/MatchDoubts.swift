import LarderCoding
import LarderHTTP

extension FaultMatch {
    /// Why no caller can match in the world as it is; nil if one can. The state may change later, so that it is a warning.
    ///
    /// - Parameter readsWorldPaths: whether a path below `/w/` names a world.
    func whyNobodyMatches(in world: World, readsWorldPaths: Bool) -> String? {
        if let host, host.contains("*") { return "`host` is no pattern: '\(host)'. Omit it for every host." }
        if let host, let colon = host.lastIndex(of: ":"), host.firstIndex(of: ":") == colon {
            return "`host` has no port: use '\(host[..<colon])'."
        }
        if let path, let mark = path.firstIndex(of: "?") {
            return "`path` has no query: use `query` and '\(path[..<mark])'."
        }
        if let path, readsWorldPaths, path.hasPrefix("/w/"), let rest = path.dropFirst(3).firstIndex(of: "/") {
            return "`path` is that inside of the world: use '\(path[rest...])' in the world that it names."
        }
        guard let user else { return nil }
        // A store that cannot be read says nothing about the user.
        guard let isKnown = try? world.hasPerson(user) else { return nil }
        return isKnown ? nil : "Nobody in the world has the handle '\(user)'."
    }
}

extension ControlPlane {
    /// Why a gate or an actor may have no effect: nobody can match, or the API does not serve what matches; nil if it may have one.
    func doubt(about match: FaultMatch, in world: World) -> String? {
        if let reason = match.whyNobodyMatches(in: world, readsWorldPaths: readsWorldPaths) { return reason }
        guard hasDomain, let path = match.path, PathPattern(path) != nil else { return nil }
        return backend.reasonNotServed(match.method.map { Method($0) }, path, in: world)
    }
}

extension Fault {
    /// Why the fault only matches requests that the world's API does not serve; nil if the API serves them or the fault itself
    /// replies. Such a fault applies like any other, but the path may be misspelled.
    func whyNotServed(by backend: Backend, in world: World) -> String? {
        if action.effect is CannedReply { return nil }
        guard let path = match.path, PathPattern(path) != nil else { return nil }
        return backend.reasonNotServed(match.method.map { Method($0) }, path, in: world)
    }
}

extension JSONValue {
    /// The object with a list of warnings; unchanged without one.
    func warning(_ text: String?) -> JSONValue {
        guard let text, var object else { return self }
        object["warnings"] = .array([.string(text)])
        return .object(object)
    }
}
