import LarderArguments
import LarderCoding
import TestSupport
import Testing

@testable import LarderServer
@testable import larder_server

@Suite("Scenarios: what is passed, failed and not exercised", .oneMinute)
struct ScenarioTests {
    private func scenario(_ name: String) throws -> Scenario {
        try #require(Scenario.all.first { $0.name == name })
    }

    private func send(
        _ run: ScenarioRun,
        _ method: String,
        _ target: String,
        _ body: String? = nil,
        _ fields: [String: String] = [:]
    ) async throws -> RawReply? {
        let port = try #require(run.world.url.split(separator: ":").last.flatMap { Int($0) })
        let client = try RawClient(port: port)
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dev-ana\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try client.send(text + "\r\n" + (body ?? ""))
        return try? await client.reply()
    }

    @Test func `there are at least 30, with names of their own`() {
        #expect(Scenario.all.count >= 30)
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
        #expect(Scenario.all.allSatisfy { !$0.exercise.isEmpty && !$0.checks.isEmpty })
    }

    @Test(arguments: Scenario.all.map(\.name))
    func `a client that does nothing has exercised nothing`(_ name: String) async throws {
        let run = try ScenarioRun(try scenario(name))
        let result = try await run.judge()
        await run.stop()
        guard case .notExercised = result.outcome else {
            Issue.record("\(name): \(result.outcome)")
            return
        }
    }

    private func transfer(_ run: ScenarioRun) -> String {
        let (from, to) = (run.environment["LARDER_FROM"] ?? "", run.environment["LARDER_TO"] ?? "")
        let money =
            "{\"minorUnits\":\(run.environment["LARDER_AMOUNTS"] ?? ""),\"currency\":\"\(run.environment["LARDER_CURRENCY"] ?? "")\"}"
        return "{\"fromAccountId\":\"\(from)\",\"toAccountId\":\"\(to)\",\"amount\":\(money)}"
    }

    @Test(arguments: [(["\"a\""], false), (["\"a\"", "\"a\""], true), (["\"a\"", "\"b\""], false)])
    func `a lost reply is passed by a repetition under the same key only`(_ keys: [String], _ isPassed: Bool)
        async throws
    {
        let run = try ScenarioRun(try scenario("lost-reply"))
        for key in keys { _ = try await send(run, "POST", "/v1/transfers", transfer(run), ["Idempotency-Key": key]) }
        let result = try await run.judge()
        await run.stop()
        #expect((result.outcome == .passed) == isPassed, "\(result.outcome)")
        if !isPassed, case .notExercised = result.outcome { Issue.record("it was exercised") }
        #expect(result.exchanges == keys.count)
    }

    private func report(_ run: ScenarioRun, _ version: Int) async throws {
        _ = try await send(
            run,
            "POST",
            "/_larder/oracles/converged",
            "{\"as\":\"ana\",\"partial\":true,\"held\":{\"user_2\":\(version)}}"
        )
    }

    @Test func `what a client shows is compared with the server`() async throws {
        let truth = try #require(ScenarioRun(try scenario("empty-reply")).world.value("/v1/profiles/user_2"))
        let version = Int(truth["version"]?.integer ?? 0)
        for (shown, isPassed) in [(version, true), (version + 1, false)] {
            let run = try ScenarioRun(try scenario("empty-reply"))
            for _ in 0..<2 { _ = try await send(run, "GET", "/v1/profiles/user_2") }
            try await report(run, shown)
            let result = try await run.judge()
            await run.stop()
            #expect((result.outcome == .passed) == isPassed, "\(result.outcome)")
        }
    }

    // MARK: The command

    private func reports() -> [ScenarioReport] {
        let ending = ChildProcess.Ending(code: 1, timedOut: false, output: "one\n<last> & \u{1}\n")
        let outcomes: [ScenarioRun.Result.Outcome] = [
            .passed, .failed(["sent \"twice\""]), .notExercised("no request"),
        ]
        return outcomes.enumerated().map { index, outcome in
            ScenarioReport(
                result: .init(name: "case-\(index)", outcome: outcome, exchanges: 2),
                ending: ending,
                seconds: 1.5
            )
        }
    }

    @Test func `the table, TAP and JUnit tell what was not exercised from what was passed and failed`() {
        let reports = reports()
        #expect(reports.map(\.isPassed) == [true, false, false])
        #expect(reports[0].line.hasPrefix("passed"))
        #expect(reports[1].line.contains("sent \"twice\"") && reports[1].line.contains("its last line: <last>"))
        #expect(reports[2].line.hasPrefix("not exercised"))
        #expect(ScenarioReport.summary(reports).hasSuffix("3 scenarios: 1 passed, 1 failed, 1 not exercised"))
        #expect(reports[0].tap(1) == "ok 1 - case-0")
        #expect(reports[1].tap(2).hasPrefix("not ok 2 - case-1\n# sent"))
        #expect(reports[2].tap(3).hasPrefix("not ok 3"))
        let junit = ScenarioReport.junit(reports)
        #expect(junit.contains("tests=\"3\" failures=\"1\" errors=\"1\""))
        #expect(junit.contains("<failure message=\"sent &quot;twice&quot;\">"))
        #expect(junit.contains("<error message=\"not exercised\">"))
        #expect(junit.contains("&lt;last&gt; &amp; ?"))
    }

    @Test func `a command gets its variables, and its output and exit code are known`() throws {
        let ending = try ChildProcess.run(
            ["sh", "-c", "echo \"$LARDER_TASK\"; echo second >&2; exit 3"],
            ["LARDER_TASK": "read it"],
            timeoutSeconds: 30
        )
        #expect(ending.output == "read it\nsecond\n")
        #expect(ending.code == 3 && !ending.isSuccess)
    }

    @Test(arguments: ["sleep 600 & sleep 600", "exec >&- 2>&-; sleep 600"])
    func `a command that does not end is ended with all it has started`(command: String) throws {
        let ending = try ChildProcess.run(["sh", "-c", command], [:], timeoutSeconds: 1)
        #expect(ending.timedOut && ending.code == nil)
    }

    @Test func `a command that cannot be started is named`() throws {
        #expect(throws: ChildProcess.Failure.self) {
            try ChildProcess.run(["/no/such/command"], [:], timeoutSeconds: 1)
        }
    }

    @Test(arguments: [
        ["run"], ["run", "--"], ["--junit", "x"], ["run", "nothing", "--", "true"], ["--what"], ["run", "lost-reply"],
    ])
    func `wrong arguments are usage errors`(_ words: [String]) {
        #expect(throws: (any Error).self) { try ScenarioCommand(words) }
        #expect(throws: Never.self) { try ScenarioCommand(["run", "lost-reply", "--tap", "--", "true"]) }
    }

    @Test(arguments: CommandUsage.table.all.map(\.name))
    func `a command's help is one text, however it is asked for`(_ command: String) throws {
        let help = try Help.text(of: command)
        for words in [[command, "--help"], [command, "-h"], ["help", command]] {
            guard case .help(help) = try Arguments(words).action else {
                Issue.record("\(words) is not answered with help")
                continue
            }
        }
    }

    @Test func `conduct knows the rules that it shall fail on`() {
        #expect(throws: Never.self) { try ControlCommand(["conduct", "--fail-on", "downloadedTwice,keyMissing"]) }
        #expect(throws: Never.self) { try ControlCommand(["conduct", "--fail-on=any"]) }
        for text in ["rudeness", "", ","] {
            #expect(throws: (any Error).self) { try ControlCommand(["conduct", "--fail-on", text]) }
        }
    }

    @Test func `a scenario that was not exercised names the request that it waits for`() async throws {
        let run = try ScenarioRun(try scenario("lost-reply"))
        guard case .notExercised(let reason) = try await run.judge().outcome else {
            Issue.record("it was exercised")
            return
        }
        #expect(reason.contains("POST /v1/transfers"), "\(reason)")
        await run.stop()
    }
}
