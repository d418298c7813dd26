import Foundation
import Larder
import LarderCoding
import LarderServer
import Synchronization
import Testing

@testable import LarderDemo

/// Runs the built `larder` as child processes with a temporary home directory.
final class CommandScene: Sendable {
    /// The result of a run.
    struct Run: Sendable, CustomStringConvertible {
        /// The exit code; negative: the signal that ended it.
        var code: Int32
        var output: String
        var errors: String

        var json: JSONValue {
            get throws {
                do { return try JSONParser.parse(Array(output.utf8)) } catch { throw NoJSON(run: self, cause: error) }
            }
        }
        /// Each output line as a JSON document.
        var jsonLines: [JSONValue] {
            get throws { try output.split(separator: "\n").map { try JSONParser.parse(Array($0.utf8)) } }
        }
        var lines: [Substring] { output.split(separator: "\n") }
        var errorLines: [Substring] { errors.split(separator: "\n") }
        var description: String { "exit \(code)\n\(output)\(errors)" }
    }

    /// The output of a run is not JSON.
    struct NoJSON: Error, CustomStringConvertible {
        let run: Run
        let cause: any Error

        var description: String { "The output is no JSON (\(cause)): \(run)" }
    }

    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
    private let processes = Mutex<[CommandProcess]>([])

    /// The build directory of the test bundle.
    private static let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("larder").path

    deinit {
        for process in processes.withLock({ $0 }) { process.send(SIGKILL) }
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Runs the command to its end.
    func run(_ words: String..., on server: String, user: String = "ana") async throws -> Run {
        try await run(words, on: server, user: user)
    }

    /// Runs the command to its end.
    func run(_ words: [String], on server: String, user: String = "ana") async throws -> Run {
        let process = try start(words, on: server, user: user)
        await process.ended()
        return process.run
    }

    /// Starts the command.
    func start(
        _ words: [String],
        on server: String,
        user: String = "ana",
        typing isTyping: Bool = false
    ) throws -> CommandProcess {
        // Long timeouts for loaded machines. A run that cannot succeed ends at once anyway.
        var environment = [
            "HOME": directory, "XDG_STATE_HOME": directory + "/state", "LARDER_SERVER": server, "LARDER_USER": user,
            "SWIFT_BACKTRACE": "enable=no",
        ]
        for name in ["PATH", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"] {
            environment[name] = ProcessInfo.processInfo.environment[name]
        }
        let process = try CommandProcess(
            Self.executable,
            ["--wait", "3600", "--timeout", "3600"] + words,
            environment: environment,
            typing: isTyping
        )
        processes.withLock { $0.append(process) }
        return process
    }

    /// The files below the scene's directory with a name prefix.
    func files(named prefix: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return names.filter { $0.split(separator: "/").last?.hasPrefix(prefix) ?? false }.map { "\(directory)/\($0)" }
    }
}

// MARK: Money

extension CommandScene {
    /// Ana's open accounts, as the command prints them.
    func accounts(on server: String) async throws -> [JSONValue] {
        let run = try await run("accounts", "--json", on: server)
        return try #require(try run.json["items"]?.array, "\(run)").filter { $0["status"]?.string == "open" }
    }

    /// The open accounts of a user, from the server.
    func accounts(in world: MockWorld, of person: String) throws -> [JSONValue] {
        let reply = world.perform(ScriptedAction("GET", "/v1/accounts", as: person))
        let items = try JSONParser.parse(Array(reply.body))["items"]?.array
        return try #require(items, "\(reply)").filter { $0["status"]?.string == "open" }
    }

    /// The balance of an account in minor units.
    func balance(_ account: JSONValue) -> Int64 { account["balance"]?["minorUnits"]?.integer ?? .min }

    /// An account of Ana with money, and one of another user in the same currency.
    func pair(in world: MockWorld) throws -> (from: JSONValue, to: JSONValue, owner: String) {
        let mine = try accounts(in: world, of: "ana").filter { balance($0) > 100 }
        for owner in (2...9).map({ "person\($0)" }) {
            let theirs = try accounts(in: world, of: owner)
            for from in mine {
                let to = theirs.first { $0["balance"]?["currency"] == from["balance"]?["currency"] }
                if let to { return (from, to, owner) }
            }
        }
        Issue.record("no two accounts have one currency")
        throw CancellationError()
    }
}
