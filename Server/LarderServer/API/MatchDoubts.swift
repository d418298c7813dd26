import LarderBackend
import LarderCoding

extension FaultMatch {
    /// Why no caller can match in the world as it is; nil if one can. The state may change later, so that it is a warning.
    func reasonNobodyMatches(in world: World) -> String? {
        guard let user else { return nil }
        // A store that cannot be read says nothing about the user.
        guard let isKnown = try? world.hasPerson(user) else { return nil }
        return isKnown ? nil : "Nobody in the world has the handle '\(user)'."
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
