/// Which fields of a request chose a response (RFC 9110 §12.5.5, RFC 9111 §4.1).
public enum Vary: Sendable, Hashable {
    /// Something that is not in the request: no stored response can be chosen by it.
    case any
    /// These fields, each once, sorted; none where the response suits every request.
    case fields([FieldName])

    /// Reads the `Vary` of a response. A member that is no field name counts as `*`: what it meant cannot be compared.
    public init(_ fields: Fields) {
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

    /// The value by which requests are compared, in the form that all spellings of the same meaning have; nil where the field
    /// is absent, which is the same as absent only.
    ///
    /// Lists of the negotiation fields lose the space around their members and the case that means nothing; where order means
    /// nothing either (`Accept-Encoding`, `Accept-Charset`) they are sorted. Other fields are compared as they are, their
    /// lines joined (RFC 9110 §5.3).
    public static func normalized(_ name: FieldName, in fields: Fields) -> String? {
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
