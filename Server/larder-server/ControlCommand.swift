import Glibc
import LarderArguments
import LarderCoding
import LarderServer

/// A command to a running server: `larder-server clock advance 30`, `larder-server faults add '{…}'`.
struct ControlCommand {
    private var server = Environment["LARDER_SERVER"].flatMap { $0.isEmpty ? nil : $0 } ?? "http://127.0.0.1:8080"
    private var world: String?
    private var token: String? = Environment["LARDER_CONTROL_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    private var isJSON = false
    /// Whose exchanges are wanted; nil: everybody's.
    private var device: String?
    /// The rules of the conduct report that must have no finding.
    private var failOn: Set<String>?
    private var words: [String]
    /// Nil only while the words are read.
    private var request: ControlRequest?

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
                    .init("--device", "NAME", "journal, conduct: only of this device (Larder-Device)", \.device),
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
                    },
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
        guard device == nil || words.first == "conduct" || words == ["journal"] else {
            throw UsageError(message: "--device is an option of larder-server journal and of larder-server conduct")
        }
        // Once: a document may come from standard input.
        guard let request = try ControlRequest(words) else {
            if words.count == 3, words.starts(with: ["clock", "advance"]) {
                throw UsageError(message: "a time to advance is such as 90, 1.5, 1h30m or 250ms, not '\(words[2])'")
            }
            let entry = try CommandUsage.table.entry(words[0])
            throw CommandUsage.table.wrong(entry.name, words.dropFirst())
        }
        self.request = request
        _ = try ControlClient(server)
    }

    func run() async throws {
        guard let request else { return }
        var fields = [("Accept", isJSON ? "application/json" : request.accept)]
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        let reply = try ControlClient(server).ask(
            request.method,
            request.target(in: world, of: device),
            fields,
            request.body
        )
        if reply.status < 400, let path = request.file {
            try SourceFile.write(reply.body, to: path)
            let count = try JSONParser.parse(reply.body)["log"]?["entries"]?.array?.count ?? 0
            return Terminal.print("\(path): \(count) exchange\(count == 1 ? "" : "s")")
        }
        let text = String(decoding: reply.body, as: UTF8.self)
        guard reply.status < 400 else {
            Terminal.fail(isJSON ? text : ControlText.problem(reply.body), code: 1)
        }
        if text.isEmpty { return Terminal.print("done") }
        let isPlain = isJSON || request.isRaw
        let trimmed = String(text.reversed().drop { $0.isNewline }.reversed())
        Terminal.print(isPlain ? trimmed : ControlText.readable(reply.body))
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
        let reply = try ControlClient(server).ask(request.method, request.target(in: world, of: device), fields)
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
}
