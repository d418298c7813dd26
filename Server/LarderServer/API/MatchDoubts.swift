import LarderCoding
import LarderHTTP

extension FaultMatch {
    /// Why no caller can match in the world as it is; nil if one can. The state may change later, so that it is a warning.
    func whyNobodyMatches(in world: World) -> String? {
        guard let user else { return nil }
        // A store that cannot be read says nothing about the user.
        guard let isKnown = try? world.hasPerson(user) else { return nil }
        return isKnown ? nil : "Nobody in the world has the handle '\(user)'."
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
