/// The request fields that select a response (RFC 9110 §12.5.5, RFC 9111 §4.1).
package enum Vary: Sendable, Hashable {
    /// `*`: no stored response can be selected.
    case any
    /// These fields, unique and sorted; empty: the response matches every request.
    case fields([FieldName])

    /// Parses the `Vary` of a response. A member that is not a field name counts as `*`.
    package init(_ fields: Fields) {
        var names: Set<FieldName> = []
        for member in fields.values(of: .vary).flatMap(FieldList.members) {
            guard member != "*", let name = FieldName(member) else {
                self = .any
                return
            }
            names.insert(name)
        }
        self = .fields(names.sorted { $0.canonical < $1.canonical })
    }

    /// Returns the normalised value for the comparison of requests; nil if the field is missing.
    ///
    /// Values of the negotiation fields that mean the same become equal (RFC 9111 §4.1): space around members and
    /// parameters, the order of members, the case of names and the notation of weights have no meaning there (RFC 9110
    /// §12.5). Fields that are known to hold one value are compared as they are, their lines joined (RFC 9110 §5.3). In
    /// all other fields, space around a comma outside of quoted strings has no meaning either: a comma within a value is
    /// to be quoted there (RFC 9110 §5.5), so it separates members.
    package static func normalized(_ name: FieldName, in fields: Fields) -> String? {
        let values = fields.values(of: name)
        guard !values.isEmpty else { return nil }
        switch name.canonical {
        case "accept", "accept-charset", "accept-encoding", "accept-language":
            let choices = values.flatMap(FieldList.members).map { Negotiation.Choice($0).description }
            return choices.sorted().joined(separator: ",")
        case "prefer":
            let members = values.flatMap(FieldList.members).map { member in
                FieldList.split(member, at: UInt8(ascii: ";")).joined(separator: ";")
            }
            return members.joined(separator: ",")
        case let known where singletons.contains(known):
            return values.map(FieldList.trimmed).joined(separator: ", ")
        default:
            return values.flatMap { FieldList.split($0, at: UInt8(ascii: ",")) }.joined(separator: ",")
        }
    }

    /// Fields that are no lists and whose values may have a comma.
    private static let singletons: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "date", "from", "if-modified-since", "if-range",
        "if-unmodified-since", "referer", "user-agent",
    ]
}
