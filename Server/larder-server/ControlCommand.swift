import Glibc
import LarderArguments
import LarderBackend
import LarderCoding
import LarderServer

/// A command to a running server: `larder-server clock advance 30`, `larder-server faults add '{…}'`.
struct ControlCommand {
    private var server = Environment["LARDER_SERVER"].flatMap { $0.isEmpty ? nil : $0 } ?? "http://127.0.0.1:8080"
    private var world: String?
    private var token: String? = Environment["LARDER_CONTROL_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    private var isJSON = false
    /// The rules of the conduct report that must have no finding.
    private var failOn: Set<String>?
    private var words: [String]
    private var request = ControlRequest("GET")

    /// The title of the section of options that every command of these accepts.
    static let commonOptions = "OPTIONS OF THESE COMMANDS"

    static var options: CommandOptions<ControlCommand> {
        CommandOptions([
            .init(
                commonOptions,
                [
                    .init("--server", short: "-s", "URL", "the server (http://127.0.0.1:8080, or $LARDER_SERVER)") {
                        $0.server = $1
                    },
                    .init("--world", short: "-w", "ID", "the world (main)", \.world),
                    .init("--control-token", "TOKEN", "the token of the server's --control-token", \.token),
                    .init("--json", short: "-j", "print the reply as it is") { $0.isJSON = true },
                ]
            ),
            .init(
                "OPTIONS OF SINGLE COMMANDS",
                [
                    .init(
                        "--fail-on",
                        "RULES",
                        """
                        conduct: exit code 1 after a finding of these rules, or of any:
                        \(ruleNames[..<3].joined(separator: ", ")),
                        \(ruleNames[3..<7].joined(separator: ", ")),
                        \(ruleNames[7...].joined(separator: ", "))
                        """
                    ) {
                        (command, text) throws(UsageError) in command.failOn = try rules(text)
                    }
                ]
            ),
        ])
    }

    /// - Parameter arguments: the command and its words.
    init(_ arguments: [String]) throws(UsageError) {
        words = []
        let advice = "larder-server \(arguments[0]) --help lists its options"
        _ = try Self.options.parse(arguments, into: &self, orElse: advice) { command, word, _ in
            guard word == "-" || !word.hasPrefix("-") else { return false }
            command.words.append(word)
            return true
        }
        guard failOn == nil || words.first == "conduct" else {
            throw UsageError(message: "--fail-on is an option of larder-server conduct")
        }
        if words.count == 2, words[1] == "list" { words.removeLast() }
        // Once: a document may come from standard input.
        request = try makeRequest()
        _ = try ControlClient(server)
    }

    func run() async throws {
        var fields = [("Accept", isJSON ? "application/json" : request.accept)]
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        let reply = try ControlClient(server).ask(request.method, request.target(in: world), fields, request.body)
        if reply.status < 400, let path = file { return try SourceFile.write(reply.body, to: path) }
        let text = String(decoding: reply.body, as: UTF8.self)
        guard reply.status < 400 else {
            Terminal.fail(isJSON ? text : ControlText.problem(reply.body), code: 1)
        }
        if text.isEmpty { return Terminal.print("done") }
        Terminal.print(
            isJSON || request.accept != "application/json" ? text.trimmedEnd : ControlText.readable(reply.body)
        )
        if let failOn { try judge(failOn, request, fields) }
        if words[0] == "act" { try judgeActions(reply.body) }
    }

    /// Exits with 1 if the API has rejected one of the actions.
    private func judgeActions(_ body: [UInt8]) throws {
        let statuses = try JSONParser.parse(body)["results"]?.array?.compactMap { $0["status"]?.integer } ?? []
        if let status = statuses.first(where: { $0 >= 400 }) {
            Terminal.fail("the API has rejected the action with \(status)", code: 1)
        }
    }

    /// Exits with 1 if the conduct report has a finding of one of the rules.
    private func judge(_ rules: Set<String>, _ request: ControlRequest, _ fields: [(String, String)]) throws {
        let fields = fields.filter { $0.0 != "Accept" } + [("Accept", "application/json")]
        let reply = try ControlClient(server).ask(request.method, request.target(in: world), fields)
        let findings = try JSONParser.parse(reply.body)["findings"]?.array ?? []
        let broken = findings.compactMap { $0["rule"]?.string }.filter { rules.contains($0) }
        let names = Set(broken).sorted().joined(separator: ", ")
        let noun = broken.count == 1 ? "finding" : "findings"
        if !broken.isEmpty { Terminal.fail("\(broken.count) \(noun) of \(names)", code: 1) }
    }

    private static let ruleNames = ConductReport.Rule.allCases.map(\.rawValue)

    /// The rules in `downloadedTwice,keyMissing` or `any`.
    private static func rules(_ text: String) throws(UsageError) -> Set<String> {
        if text == "any" { return Set(ruleNames) }
        let names = text.split(separator: ",").map { String($0) }
        if names.isEmpty || names.contains(where: { !ruleNames.contains($0) }) {
            let name = names.first { !ruleNames.contains($0) } ?? text
            throw UsageError(
                message: "--fail-on requires any, or rules of \(ruleNames.joined(separator: ", ")), not '\(name)'"
            )
        }
        return Set(names)
    }

    /// The file for the reply instead of the terminal; nil for none.
    private var file: String? {
        switch (words[0], words.dropFirst().first) {
        case ("journal", "har"?), ("recording", "save"?): words.count > 2 ? words[2] : nil
        default: nil
        }
    }

    private func makeRequest() throws(UsageError) -> ControlRequest {
        let rest = Array(words.dropFirst())
        switch words[0] {
        case "recording":
            switch rest.first {
            case "start"?: return ControlRequest("POST", "recording", json: ["record": .bool(true)])
            case "save"? where rest.count > 1: return ControlRequest("GET", "recording")
            case "stop"?: return ControlRequest("DELETE", "recording")
            default: throw wrong()
            }
        case "worlds": return try worlds(rest)
        case "clock": return try clock(rest)
        case "journey":
            guard let name = rest.first else { return ControlRequest("GET", "journeys") }
            return ControlRequest(rest.count > 1 && rest[1] == "off" ? "DELETE" : "POST", "journeys", name)
        case "faults", "gates", "actors": return try list(words[0], rest)
        case "held":
            guard let number = rest.first else { return ControlRequest("GET", "held") }
            if rest.count > 2, rest[1] == "answer" {
                return ControlRequest("POST", "held", number, "answer", body: try document(rest[2]))
            }
            guard rest.count > 1, rest[1] == "release" else { throw wrong() }
            return ControlRequest("POST", "held", number, "release")
        case "journal": return try journal(rest)
        case "verify", "wait", "act":
            guard let text = rest.first else { throw wrong() }
            return ControlRequest("POST", words[0], body: try document(text))
        case "conduct" where rest.isEmpty: return ControlRequest("GET", "conduct", accept: "text/plain")
        case "changes":
            guard let fault = rest.first else { throw wrong() }
            let token = rest.count > 1 ? JSONValue.string(rest[1]) : nil
            return ControlRequest("POST", "changes", json: ["fault": .string(fault), "token": token])
        case "files":
            guard rest.isEmpty || rest == ["write"] else { throw wrong() }
            return ControlRequest(rest.isEmpty ? "GET" : "POST", "files")
        case "metrics" where rest.isEmpty: return ControlRequest("GET", "metrics", accept: "text/plain")
        case "ledger" where rest.isEmpty: return ControlRequest("GET", "oracles", "ledger")
        default:
            _ = try CommandUsage.table.entry(words[0])
            throw wrong()
        }
    }

    private func worlds(_ rest: [String]) throws(UsageError) -> ControlRequest {
        let id = rest.count > 1 ? rest[1] : nil
        switch (rest.first, id) {
        case (nil, _): return ControlRequest("GET", "worlds")
        case ("create"?, _):
            if rest.count > 2 { return ControlRequest("POST", "worlds", body: try document(rest[2])) }
            return ControlRequest("POST", "worlds", json: ["id": id.map { .string($0) }])
        case ("fork"?, let original?):
            let fork = JSONValue.members(["fork": .string(original)])
            return ControlRequest(
                "POST",
                "worlds",
                json: ["from": fork, "id": rest.count > 2 ? .string(rest[2]) : nil]
            )
        case ("destroy"?, let id?): return ControlRequest("DELETE", "worlds", id)
        case ("reset"?, let id?): return ControlRequest("POST", "worlds", id, "reset")
        case ("reset"?, nil): return ControlRequest("POST", "reset")
        case ("snapshot"?, let name?): return ControlRequest("POST", "snapshots", json: ["name": .string(name)])
        case ("restore"?, let name?): return ControlRequest("POST", "snapshots", name, "restore")
        default: throw wrong()
        }
    }

    private func clock(_ rest: [String]) throws(UsageError) -> ControlRequest {
        let value = rest.count > 1 ? rest[1] : nil
        func set(_ members: KeyValuePairs<String, JSONValue?>) -> ControlRequest {
            ControlRequest("PUT", "clock", json: members)
        }
        switch (rest.first, value) {
        case (nil, _): return ControlRequest("GET", "clock")
        case ("freeze"?, _): return set(["mode": .string("frozen"), "time": value.map { .string($0) }])
        case ("real"?, _): return set(["mode": .string("real")])
        case ("set"?, let time?): return set(["time": .string(time)])
        case ("run"?, _):
            guard let factor = Double(value ?? "1") else { throw wrong() }
            return set(["mode": .string("running"), "factor": .number(factor)])
        case ("advance"?, let text?):
            guard let seconds = Self.seconds(text) else { throw wrong() }
            return ControlRequest("POST", "clock", "advance", json: ["seconds": .number(seconds)])
        case ("next"?, _): return ControlRequest("POST", "clock", "advance", json: ["toNextTimer": .bool(true)])
        default: throw wrong()
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

    /// A command for the items of a list.
    private func list(_ name: String, _ rest: [String]) throws(UsageError) -> ControlRequest {
        let word = rest.count > 1 ? rest[1] : nil
        switch (rest.first, word) {
        case (nil, _): return ControlRequest("GET", name)
        case ("add"?, let text?): return ControlRequest("POST", name, body: try document(text))
        case ("remove"?, let id?): return ControlRequest("DELETE", name, id)
        case ("release"?, let id?) where name == "gates": return ControlRequest("POST", name, id, "release")
        case ("clear"?, _): return ControlRequest("DELETE", name)
        case ("script"?, let text?) where name == "faults":
            return ControlRequest("POST", "script", body: try document(text))
        default: throw wrong()
        }
    }

    private func journal(_ rest: [String]) throws(UsageError) -> ControlRequest {
        switch rest.first {
        case nil: return ControlRequest("GET", "journal", query: "limit=10000")
        case "clear"?: return ControlRequest("DELETE", "journal")
        case "har"?: return ControlRequest("GET", "journal", "har")
        case let number? where Int(number) != nil:
            return rest.count > 1 && rest[1] == "curl"
                ? ControlRequest("GET", "journal", number, "curl", accept: "text/plain")
                : ControlRequest("GET", "journal", number)
        default: throw wrong()
        }
    }

    /// JSON text, or the contents of `@FILE` or of standard input (`-`).
    private func document(_ text: String) throws(UsageError) -> [UInt8] {
        guard text.hasPrefix("@") || text == "-" else { return Array(text.utf8) }
        do { return try SourceFile.bytes(text == "-" ? "-" : String(text.dropFirst())) } catch {
            throw UsageError(message: "\(error)")
        }
    }

    private func wrong() -> UsageError { CommandUsage.table.wrong(words[0], words.dropFirst()) }
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = self
        while text.last?.isNewline ?? false { text.removeLast() }
        return text
    }
}
