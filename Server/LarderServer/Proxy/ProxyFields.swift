import LarderEngine
import LarderHTTP

/// Names of fields, in lower case.
struct NameSet: Sendable, ExpressibleByArrayLiteral {
    private let names: [StaticString]
    /// A bit for the length of each name: most lines are rejected by it alone.
    private let lengths: UInt64

    init(arrayLiteral names: StaticString...) {
        self.names = names
        lengths = names.reduce(0) { $0 | 1 << UInt64($1.utf8CodeUnitCount) }
    }

    func contains(_ line: FieldLines.Line, of fields: FieldLines) -> Bool {
        guard lengths & 1 << UInt64(line.name.count) != 0 else { return false }
        for name in names where fields.isNamed(line, name) { return true }
        return false
    }
}

/// Selects the fields of a message that a proxy passes on. Bytes of values are not changed.
struct ProxyFields {
    private let fields: FieldLines
    /// The fields that `Connection` names, in lower case.
    private let options: [String]

    /// The fields that concern one connection only (RFC 9110 §7.6.1).
    private static let hopByHop: NameSet = [
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
        omitting omitted: NameSet,
        minorVersion: Int,
        name: String = "larder",
        location: ProxyLocation? = nil
    ) {
        var via: [UInt8] = []
        // Consecutive lines that are passed on are copied together, with the line ends between them.
        var run: Range<Int>?
        for line in fields.lines {
            let isVia = fields.isNamed(line, "via")
            if !isVia, location == nil || !isLocation(line), !Self.hopByHop.contains(line, of: fields),
                !omitted.contains(line, of: fields),
                !isOption(line)
            {
                run = (run?.lowerBound ?? Int(line.name.lowerBound))..<Int(line.value.upperBound)
                continue
            }
            copy(run, to: &head)
            run = nil
            if isVia {
                via.append(contentsOf: fields.value(of: line))
                via.append(", ")
            } else if let location, isLocation(line), !omitted.contains(line, of: fields), !isOption(line) {
                append(line, to: &head, location)
            }
        }
        copy(run, to: &head)
        head.append("Via: ")
        head.append(contentsOf: via)
        head.append(minorVersion == 1 ? "1.1 " : "1.0 ")
        head.append(contentsOf: name.utf8)
        head.append("\r\n")
    }

    private func copy(_ run: Range<Int>?, to head: inout [UInt8]) {
        guard let run else { return }
        head.append(contentsOf: fields.head[run])
        head.append("\r\n")
    }

    private func isLocation(_ line: FieldLines.Line) -> Bool {
        fields.isNamed(line, "location") || fields.isNamed(line, "content-location")
    }

    /// Appends a line whose value is a URL.
    private func append(_ line: FieldLines.Line, to head: inout [UInt8], _ location: ProxyLocation) {
        if let translated = location.translate(fields.value(of: line)) {
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
