import LarderCoding
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
    ///   - omitted: further fields that are not passed on.
    ///   - minorVersion: the version of the message.
    ///   - name: the name of the proxy in `Via`.
    ///   - location: translates `Location` and `Content-Location`; nil leaves them as they are.
    func append(
        to head: inout [UInt8],
        omitting omitted: [StaticString],
        minorVersion: Int,
        name: String = "larder",
        location: ProxyLocation? = nil
    ) {
        var via: [UInt8] = []
        let dropped = Self.hopByHop + omitted
        for line in fields.lines {
            if fields.isNamed(line, "via") {
                via += fields.value(of: line) + Array(", ".utf8)
            } else if !isOption(line), !dropped.contains(where: { fields.isNamed(line, $0) }) {
                append(line, to: &head, location)
            }
        }
        head.append("Via: ")
        head.append(contentsOf: via)
        head.append(minorVersion == 1 ? "1.1 " : "1.0 ")
        head.append(contentsOf: name.utf8)
        head.append("\r\n")
    }

    /// Appends a line; a URL is translated.
    private func append(_ line: FieldLines.Line, to head: inout [UInt8], _ location: ProxyLocation?) {
        let isLocation = fields.isNamed(line, "location") || fields.isNamed(line, "content-location")
        if isLocation, let translated = location?.translate(fields.value(of: line)) {
            head.append(contentsOf: "\(fields.text(line.name)): ".utf8)
            head.append(contentsOf: translated)
        } else {
            head.append(contentsOf: fields.bytes(of: line))
        }
        head.append("\r\n")
    }

    private func isOption(_ line: FieldLines.Line) -> Bool {
        !options.isEmpty && options.contains(fields.text(line.name).lowercased())
    }
}
