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
    /// §12.5). Other fields are compared as they are, their lines joined (RFC 9110 §5.3).
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
        default: return values.map(FieldList.trimmed).joined(separator: ", ")
        }
    }
}
