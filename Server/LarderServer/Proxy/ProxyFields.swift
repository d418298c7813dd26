import LarderEngine
import LarderHTTP

/// Selects the fields of a message that a proxy passes on. Bytes of values are not changed.
struct ProxyFields {
    private let fields: FieldLines
    /// The fields that `Connection` names, in lower case.
    private let options: [String]

    /// The fields that concern one connection only (RFC 9110 §7.6.1).
    private static let hopByHop: [StaticString] = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade", "expect",
    ]

    init(_ fields: FieldLines) {
        self.fields = fields
        options =
            fields.range(of: "connection") == nil
            ? [] : FieldList.members(of: fields.combined(.connection)?.lowercased() ?? "")
    }

    /// Appends the lines that are passed on, each with its CRLF, and `Via` (RFC 9110 §7.6.3).
    ///
    /// - Parameters:
    ///   - omitted: the names of further fields that are not passed on, in lower case.
    ///   - minorVersion: the version of the message.
    ///   - location: translates `Location` and `Content-Location`; nil leaves them as they are.
    func append(
        to head: inout [UInt8],
        omitting omitted: [StaticString],
        minorVersion: Int,
        location: ProxyLocation? = nil
    ) {
        var via: [UInt8] = []
        for line in fields.lines {
            if fields.isNamed(line, "via") {
                via.append(contentsOf: fields.value(of: line))
                via.append(contentsOf: ", ".utf8)
            } else if !isAny(of: Self.hopByHop, line), !isAny(of: omitted, line), !isOption(line) {
                append(line, to: &head, location)
                head.append(contentsOf: "\r\n".utf8)
            }
        }
        head.append(contentsOf: "Via: ".utf8)
        head.append(contentsOf: via)
        head.append(contentsOf: minorVersion == 1 ? "1.1 larder\r\n".utf8 : "1.0 larder\r\n".utf8)
    }

    private func append(_ line: FieldLines.Line, to head: inout [UInt8], _ location: ProxyLocation?) {
        guard let location, fields.isNamed(line, "location") || fields.isNamed(line, "content-location"),
            let translated = location.translate(fields.value(of: line))
        else { return head.append(contentsOf: fields.bytes(of: line)) }
        head.append(contentsOf: "\(fields.text(line.name)): ".utf8)
        head.append(contentsOf: translated)
    }

    private func isAny(of names: [StaticString], _ line: FieldLines.Line) -> Bool {
        for name in names where fields.isNamed(line, name) { return true }
        return false
    }

    private func isOption(_ line: FieldLines.Line) -> Bool {
        !options.isEmpty && options.contains(fields.text(line.name).lowercased())
    }
}
