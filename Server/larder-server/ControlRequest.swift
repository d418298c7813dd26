import LarderArguments
import LarderCoding
import LarderHTTP
import LarderServer

/// One request to the control plane.
struct ControlRequest {
    /// The forms of the commands, each with its method, its path and its body. A word in capitals stands for one of the user, also in the
    /// path, and as a text in the body. `N`, `NUMBER`, `FACTOR` and `SECONDS` are numbers, `JSON` is a document, and `JSON+ID` one
    /// whose member `id` is the word `ID`.
    private static let forms: [(words: String, request: String)] =
        items("actors") + items("faults") + items("gates") + clients + [
            ("act JSON", "POST act JSON"), ("verify JSON", "POST verify JSON"), ("wait JSON", "POST wait JSON"),
            ("clock", "GET clock"), ("clock real", #"PUT clock {"mode":"real"}"#),
            ("clock freeze", #"PUT clock {"mode":"frozen"}"#),
            ("clock freeze TIME", #"PUT clock {"mode":"frozen","time":"TIME"}"#),
            ("clock set TIME", #"PUT clock {"time":"TIME"}"#),
            ("clock run", #"PUT clock {"mode":"running","factor":1}"#),
            ("clock run FACTOR", #"PUT clock {"mode":"running","factor":"FACTOR"}"#),
            ("clock advance SECONDS", #"POST clock/advance {"seconds":"SECONDS"}"#),
            ("clock next", #"POST clock/advance {"toNextTimer":true}"#),
            ("conduct", "GET conduct"), ("faults script JSON", "POST script JSON"),
            ("files", "GET files"), ("files write", "POST files"), ("gates release ID", "POST gates/ID/release"),
            ("held", "GET held"), ("held ID release", "POST held/ID/release"),
            ("held ID answer JSON", "POST held/ID/answer JSON"),
            ("journal", "GET journal?limit=10000"), ("journal clear", "DELETE journal"),
            ("journal har", "GET journal/har"), ("journal har FILE", "GET journal/har"),
            ("journal N", "GET journal/N"), ("journal N curl", "GET journal/N/curl"),
            ("journey", "GET journeys"), ("journey NAME", "POST journeys/NAME"),
            ("journey NAME off", "DELETE journeys/NAME"),
            ("ledger", "GET oracles/ledger"), ("metrics", "GET metrics"),
            ("recording start", #"POST recording {"record":true}"#), ("recording save FILE", "GET recording"),
            ("recording stop", "DELETE recording"),
            ("worlds", "GET worlds"), ("worlds create", "POST worlds {}"),
            ("worlds create ID", #"POST worlds {"id":"ID"}"#), ("worlds create ID JSON", "POST worlds JSON+ID"),
            ("worlds fork ID", #"POST worlds {"from":{"fork":"ID"}}"#),
            ("worlds fork ID NEW", #"POST worlds {"from":{"fork":"ID"},"id":"NEW"}"#),
            ("worlds destroy ID", "DELETE worlds/ID"), ("worlds reset", "POST reset"),
            ("worlds reset ID", "POST worlds/ID/reset"), ("worlds snapshot ID", #"POST snapshots {"name":"ID"}"#),
            ("worlds restore ID", "POST snapshots/ID/restore"),
        ]

    /// What connected clients are asked to do.
    private static let clients: [(words: String, request: String)] =
        [("clients", "GET clients"), ("clients ID drop NUMBER", #"POST clients/ID/drop {"operation":"NUMBER"}"#)]
        + ["offline", "online"].map { ("clients ID \($0)", "POST clients/ID/\($0)") }
        + ["show", "hide", "invalidate", "refresh"].map {
            ("clients ID \($0) KEY", #"POST clients/ID/\#($0) {"key":"KEY"}"#)
        }

    private static func items(_ name: String) -> [(words: String, request: String)] {
        [
            (name, "GET \(name)"), ("\(name) add JSON", "POST \(name) JSON"),
            ("\(name) remove ID", "DELETE \(name)/ID"), ("\(name) clear", "DELETE \(name)"),
        ]
    }

    let method: String
    /// The path in the control plane of a world, and the query.
    private let path: String
    let body: [UInt8]?
    let accept: String
    /// Whether the reply is printed as it is: a text, or a document for other programs.
    let isRaw: Bool
    /// The file for the reply instead of the terminal; nil for none.
    let file: String?

    /// The request of a command; nil if its words have none of the forms.
    ///
    /// - Throws: if a document cannot be read.
    init?(_ words: [String]) throws(UsageError) {
        for form in Self.forms {
            let names = form.words.split(separator: " ").map { String($0) }
            guard names.count == words.count else { continue }
            var values: [String: JSONValue] = [:]
            for (name, word) in zip(names, words) where name.first?.isUppercase ?? false {
                values[name] = Self.value(word, of: name)
            }
            guard zip(names, words).allSatisfy({ $0 == $1 || values[$0] != nil }) else { continue }
            let parts = form.request.split(separator: " ", maxSplits: 2).map { String($0) }
            method = parts[0]
            path = parts[1].split(separator: "/").map { part in
                values[String(part)]?.string.map { QueryString.percentEncoded($0) } ?? String(part)
            }.joined(separator: "/")
            body = try parts.count < 3 ? nil : Self.body(parts[2], values)
            let isText = words[0] == "conduct" || words[0] == "metrics" || words.last == "curl"
            file = values["FILE"]?.string
            accept = isText ? "text/plain" : "application/json"
            isRaw = isText || words == ["journal", "har"]
            return
        }
        return nil
    }

    /// The value of a word of the user; nil if it is no number, and must be one.
    private static func value(_ word: String, of name: String) -> JSONValue? {
        switch name {
        case "N": Int(word).map { _ in .string(word) }
        case "NUMBER": Int64(word).map { .integer($0) }
        case "FACTOR": Double(word).map { .number($0) }
        case "SECONDS": seconds(word).map { .number($0) }
        default: .string(word)
        }
    }

    /// The seconds in `90`, `1.5`, `1h30m` or `250ms`; nil for other texts.
    private static func seconds(_ text: String) -> Double? {
        if let seconds = Double(text) { return seconds }
        let units = ["ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400]
        var (rest, sum) = (text[...], 0.0)
        while !rest.isEmpty {
            let number = rest.prefix { $0.isNumber || $0 == "." }
            let unit = rest.dropFirst(number.count).prefix { $0.isLetter }
            guard let value = Double(number), let factor = units[String(unit)] else { return nil }
            sum += value * factor
            rest = rest.dropFirst(number.count + unit.count)
        }
        return sum
    }

    private static func body(_ form: String, _ values: [String: JSONValue]) throws(UsageError) -> [UInt8] {
        if form == "JSON" { return try document(values["JSON"]?.string ?? "") }
        if form == "JSON+ID" { return try document(values["JSON"]?.string ?? "", named: values["ID"]) }
        do { return filled(try JSONParser.parse(Array(form.utf8)), values).encoded } catch {
            preconditionFailure("A form of a command is not JSON: \(error)")
        }
    }

    /// JSON text, or the contents of `@FILE` or of standard input (`-`).
    private static func document(_ text: String) throws(UsageError) -> [UInt8] {
        var bytes = Array(text.utf8)
        if text.hasPrefix("@") || text == "-" {
            do { bytes = try SourceFile.bytes(text == "-" ? "-" : String(text.dropFirst())) } catch {
                throw UsageError(message: "\(error)")
            }
        }
        guard bytes.contains(where: { $0 > 0x20 }) else { throw UsageError(message: "JSON must not be empty") }
        return bytes
    }

    private static func document(_ text: String, named id: JSONValue?) throws(UsageError) -> [UInt8] {
        let bytes = try document(text)
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch {
            throw UsageError(message: "JSON must be an object, such as {\"from\": \"empty\"}: \(error)")
        }
        guard case .object(var object) = value else {
            throw UsageError(message: "JSON must be an object, such as {\"from\": \"empty\"}")
        }
        object["id"] = id
        return JSONValue.object(object).encoded
    }

    private static func filled(_ form: JSONValue, _ values: [String: JSONValue]) -> JSONValue {
        switch form {
        case .string(let name): values[name] ?? form
        case .object(let object):
            .object(JSONObject(object.members.map { .init(name: $0.name, value: filled($0.value, values)) }))
        default: form
        }
    }

    /// Path and query.
    ///
    /// - Parameters:
    ///   - world: nil for `main`.
    ///   - device: whose exchanges are wanted; nil: everybody's.
    func target(in world: String?, of device: String?) -> String {
        let query = device.map { "\(path.contains("?") ? "&" : "?")device=\(QueryString.percentEncoded($0))" } ?? ""
        return "/_larder/" + (world.map { "worlds/\(QueryString.percentEncoded($0))/" } ?? "") + path + query
    }
}
