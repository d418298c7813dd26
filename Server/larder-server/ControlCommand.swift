import LarderArguments
import LarderServer

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A command to a running server: `larder-server clock advance 30`, `larder-server faults add '{…}'`.
struct ControlCommand {
    /// One request to the control plane.
    private struct Step {
        let method: String
        let path: String
        var body: String?
        var accept = "application/json"
    }

    private var server = "http://127.0.0.1:8080"
    private var world: String?
    private var token: String?
    private var isJSON = false
    private var words: [String] = []

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        var asksForHelp = false
        while let word = rest.popFirst() {
            let (name, inline) = FlagWords.split(word)
            switch name {
            case "--server": server = try FlagWords.value(name, inline, &rest)
            case "--world": world = try FlagWords.value(name, inline, &rest)
            case "--control-token", "--token": token = try FlagWords.value(name, inline, &rest)
            case "--json": isJSON = true
            case "--help", "-h": asksForHelp = true
            case _ where name.hasPrefix("--"):
                throw UsageError(message: "unknown argument '\(word)'; larder-server help lists all commands")
            default: words.append(word)
            }
        }
        if asksForHelp { words = words.first == "help" ? words : ["help"] + words.prefix(1) }
        _ = try step()
    }

    func run() async throws {
        if words[0] == "replay" { return try await replay() }
        if words[0] == "help" { return Terminal.print(try Self.help(words.count > 1 ? words[1] : nil)) }
        guard let step = try step() else { return }
        var fields = [("Accept", isJSON ? "application/json" : step.accept)]
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        let prefix = world.map { "/_larder/worlds/\($0)" } ?? "/_larder"
        let reply = try ControlClient(server).ask(
            step.method,
            prefix + step.path,
            fields,
            step.body.map { Array($0.utf8) }
        )
        if reply.status < 400, let path = file { return try TextFile.write(reply.body, to: path) }
        let text = String(decoding: reply.body, as: UTF8.self)
        guard reply.status < 400 else {
            Terminal.fail(isJSON ? text : ControlText.problem(reply.body), code: 1)
        }
        if text.isEmpty { return Terminal.print("done") }
        Terminal.print(isJSON || step.accept != "application/json" ? text.trimmedEnd : ControlText.readable(reply.body))
    }

    /// The file for the reply instead of the terminal; nil for none.
    private var file: String? {
        switch (words[0], words.dropFirst().first) {
        case ("journal", "har"?), ("recording", "save"?): words.count > 2 ? words[2] : nil
        default: nil
        }
    }

    /// Replays a recording in this process.
    private func replay() async throws {
        let report = try await MockBackend.replay(
            try TextFile.bytes(words[1]),
            fixtures: words.count > 2 ? words[2] : nil
        )
        Terminal.print(report.description)
        if report.difference != nil { exit(1) }
    }

    /// The request for the command; nil if it needs no server.
    private func step() throws(UsageError) -> Step? {
        let rest = Array(words.dropFirst())
        switch words[0] {
        case "help": return nil
        case "replay":
            guard rest.count >= 1 else { throw wrong("replay FILE [FIXTURES]") }
            return nil
        case "recording":
            switch rest.first {
            case "start"?: return Step(method: "POST", path: "/recording", body: "{\"record\":true}")
            case "save"? where rest.count > 1: return Step(method: "GET", path: "/recording")
            case "stop"?: return Step(method: "DELETE", path: "/recording")
            default: throw wrong("recording start | save FILE | stop")
            }
        case "worlds": return try worlds(rest)
        case "clock": return try clock(rest)
        case "faults": return try list("faults", rest)
        case "profile":
            guard let name = rest.first else { return Step(method: "GET", path: "/profiles") }
            return rest.count > 1 && rest[1] == "off"
                ? Step(method: "DELETE", path: "/profiles/\(name)") : Step(method: "POST", path: "/profiles/\(name)")
        case "gates": return try list("gates", rest)
        case "actors": return try list("actors", rest)
        case "held":
            guard let number = rest.first else { return Step(method: "GET", path: "/held") }
            if rest.count > 2, rest[1] == "answer" {
                return Step(method: "POST", path: "/held/\(number)/answer", body: try document(rest[2]))
            }
            guard rest.count > 1, rest[1] == "release" else {
                throw wrong("held [NUMBER release | NUMBER answer JSON]")
            }
            return Step(method: "POST", path: "/held/\(number)/release")
        case "journal": return try journal(rest)
        case "verify", "wait", "act":
            guard let text = rest.first else { throw wrong("\(words[0]) JSON, @FILE or -") }
            return Step(method: "POST", path: "/\(words[0])", body: try document(text))
        case "conduct": return Step(method: "GET", path: "/conduct", accept: "text/plain")
        case "changes":
            guard let fault = rest.first else {
                throw wrong("changes expire|repeatPage|emptyPage|reversePage|dropTombstones [TOKEN]")
            }
            let token = rest.count > 1 ? ",\"token\":\"\(rest[1])\"" : ""
            return Step(method: "POST", path: "/changes", body: "{\"fault\":\"\(fault)\"\(token)}")
        case "ledger": return Step(method: "GET", path: "/oracles/ledger")
        default:
            throw UsageError(message: "unknown command '\(words[0])'; larder-server help lists all commands")
        }
    }

    private func worlds(_ rest: [String]) throws(UsageError) -> Step {
        switch rest.first {
        case nil: return Step(method: "GET", path: "/worlds")
        case "create"?:
            let id = rest.count > 1 ? "\"id\":\"\(rest[1])\"" : ""
            return Step(method: "POST", path: "/worlds", body: rest.count > 2 ? try document(rest[2]) : "{\(id)}")
        case "fork"?:
            guard rest.count > 1 else { throw wrong("worlds fork FROM [ID]") }
            let id = rest.count > 2 ? ",\"id\":\"\(rest[2])\"" : ""
            return Step(method: "POST", path: "/worlds", body: "{\"from\":{\"fork\":\"\(rest[1])\"}\(id)}")
        case "destroy"? where rest.count > 1: return Step(method: "DELETE", path: "/worlds/\(rest[1])")
        case "reset"?: return Step(method: "POST", path: rest.count > 1 ? "/worlds/\(rest[1])/reset" : "/reset")
        case "snapshot"? where rest.count > 1:
            return Step(method: "POST", path: "/snapshots", body: "{\"name\":\"\(rest[1])\"}")
        case "restore"? where rest.count > 1: return Step(method: "POST", path: "/snapshots/\(rest[1])/restore")
        default:
            throw wrong("worlds [create [ID] | fork FROM [ID] | reset | destroy ID | snapshot NAME | restore NAME]")
        }
    }

    private func clock(_ rest: [String]) throws(UsageError) -> Step {
        let time = rest.count > 1 ? ",\"time\":\"\(rest[1])\"" : ""
        switch rest.first {
        case nil: return Step(method: "GET", path: "/clock")
        case "freeze"?: return Step(method: "PUT", path: "/clock", body: "{\"mode\":\"frozen\"\(time)}")
        case "real"?: return Step(method: "PUT", path: "/clock", body: "{\"mode\":\"real\"}")
        case "set"? where rest.count > 1: return Step(method: "PUT", path: "/clock", body: "{\(time.dropFirst())}")
        case "run"?:
            guard let factor = Double(rest.count > 1 ? rest[1] : "1") else { throw wrong("clock run FACTOR") }
            return Step(method: "PUT", path: "/clock", body: "{\"mode\":\"running\",\"factor\":\(factor)}")
        case "advance"? where rest.count > 1:
            guard let seconds = Double(rest[1]) else { throw wrong("clock advance SECONDS") }
            return Step(method: "POST", path: "/clock/advance", body: "{\"seconds\":\(seconds)}")
        case "next"?: return Step(method: "POST", path: "/clock/advance", body: "{\"toNextTimer\":true}")
        default: throw wrong("clock [freeze [TIME] | set TIME | run FACTOR | advance SECONDS | next | real]")
        }
    }

    private func list(_ name: String, _ rest: [String]) throws(UsageError) -> Step {
        switch rest.first {
        case nil: return Step(method: "GET", path: "/\(name)")
        case "add"? where rest.count > 1: return Step(method: "POST", path: "/\(name)", body: try document(rest[1]))
        case "remove"? where rest.count > 1: return Step(method: "DELETE", path: "/\(name)/\(rest[1])")
        case "release"? where name == "gates" && rest.count > 1:
            return Step(method: "POST", path: "/gates/\(rest[1])/release")
        case "clear"?: return Step(method: "DELETE", path: "/\(name)")
        case "script"? where name == "faults" && rest.count > 1:
            return Step(method: "POST", path: "/script", body: try document(rest[1]))
        default: throw wrong("\(name) [add JSON | remove ID | clear]")
        }
    }

    private func journal(_ rest: [String]) throws(UsageError) -> Step {
        switch rest.first {
        case nil: return Step(method: "GET", path: "/journal?limit=10000")
        case "clear"?: return Step(method: "DELETE", path: "/journal")
        case "har"?: return Step(method: "GET", path: "/journal/har")
        case let number? where Int(number) != nil:
            return rest.count > 1 && rest[1] == "curl"
                ? Step(method: "GET", path: "/journal/\(number)/curl", accept: "text/plain")
                : Step(method: "GET", path: "/journal/\(number)")
        default: throw wrong("journal [NUMBER [curl] | har FILE | clear]")
        }
    }

    /// JSON text, or the contents of `@FILE` or of standard input (`-`).
    private func document(_ text: String) throws(UsageError) -> String {
        guard text.hasPrefix("@") || text == "-" else { return text }
        do {
            return String(decoding: try TextFile.bytes(text == "-" ? "-" : String(text.dropFirst())), as: UTF8.self)
        } catch { throw UsageError(message: "\(error)") }
    }

    private func wrong(_ usage: String) -> UsageError { UsageError(message: "usage: larder-server \(usage)") }

    private static func help(_ command: String?) throws(UsageError) -> String {
        let all = [
            "worlds":
                "worlds [create [ID [JSON]] | fork FROM [ID] | reset [ID] | destroy ID | snapshot NAME | restore NAME]",
            "clock": "clock [freeze [TIME] | set TIME | run FACTOR | advance SECONDS | next | real]",
            "faults": "faults [add JSON | script JSON | remove ID | clear]      JSON may be @FILE or -",
            "profile": "profile [NAME [off]]      simulates a network",
            "gates": "gates [add JSON | release ID | remove ID | clear]",
            "held": "held [NUMBER release | NUMBER answer JSON]",
            "actors": "actors [add JSON | remove ID | clear]",
            "act": "act JSON      executes a request as another person",
            "journal": "journal [NUMBER [curl] | har FILE | clear]",
            "verify": "verify JSON      compares the journal with expectations; exit code 1 if one is not met",
            "wait": "wait JSON      waits for a condition; exit code 1 if the time limit ends first",
            "conduct": "conduct      a report of client behaviour",
            "changes": "changes expire|repeatPage|emptyPage|reversePage|dropTombstones [TOKEN]",
            "recording": "recording start | save FILE | stop      records requests and replies",
            "replay": "replay FILE [FIXTURES]      replays a recording and compares every byte",
            "ledger": "ledger      checks the consistency of the ledger",
        ]
        guard let command else {
            let lines = all.values.sorted().map { "  larder-server \($0)" }.joined(separator: "\n")
            return lines + "\n  all accept [--server URL] [--world ID] [--control-token TOKEN] [--json]"
        }
        guard let usage = all[command] else { throw UsageError(message: "unknown command '\(command)'") }
        return "larder-server \(usage)"
    }
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = self
        while text.last?.isNewline ?? false { text.removeLast() }
        return text
    }
}
