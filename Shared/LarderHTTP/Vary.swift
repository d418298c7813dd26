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
    /// Lists of the negotiation fields lose the space around their members and the case that means nothing; where order means
    /// nothing either (`Accept-Encoding`, `Accept-Charset`) they are sorted. Other fields are compared as they are, their
    /// lines joined (RFC 9110 §5.3).
    package static func normalized(_ name: FieldName, in fields: Fields) -> String? {
        let values = fields.values(of: name)
        guard !values.isEmpty else { return nil }
        guard let form = forms[name.canonical] else { return values.map(FieldList.trimmed).joined(separator: ", ") }
        var members = values.flatMap(FieldList.members).map { member in
            FieldList.split(member, at: UInt8(ascii: ";")).joined(separator: ";")
        }
        if form.ignoresCase { members = members.map { $0.lowercased() } }
        if form.ignoresOrder { members.sort() }
        return members.joined(separator: ",")
    }

    private static let forms: [String: (ignoresCase: Bool, ignoresOrder: Bool)] = [
        "accept": (false, false),
        "accept-charset": (true, true),
        "accept-encoding": (true, true),
        // The order of languages is priority to some (RFC 9110 §12.5.4).
        "accept-language": (true, false),
        "prefer": (false, false),
    ]
}
