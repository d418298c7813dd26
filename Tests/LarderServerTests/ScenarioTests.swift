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
        let first = try ScenarioRun(try scenario("empty-reply"))
        let truth = try #require(first.world.value("/v1/profiles/user_2"))
        await first.stop()
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

    // MARK: The user's own API

    /// Orders are counted, and a book can be read.
    private static let files = [
        "routes.json": """
        {"routes": [{"method": "POST", "path": "/orders", "status": 201, "set": {"last": "{{counter orders}}"}, "json": {"id": "{{counter orders}}"}},
                    {"path": "/last", "json": {"order": "{{state.last}}"}}, {"path": "/books/1", "json": {"title": "Emma"}}]}
        """,
        "own.json": """
        {"scenarios": [
          {"name": "order-twice", "problem": "the reply is lost", "requirement": "use one key",
           "variables": {"LARDER_BOOK": "Emma"},
           "steps": [{"faults": [{"match": {"path": "/orders", "count": 1}, "action": {"type": "loseReply"}}]}],
           "expect": [{"match": {"path": "/orders", "status": 201}, "atLeast": 1}], "conduct": ["keyMissing", "keyChanged"],
           "state": [{"path": "/last", "pointer": "/order", "equals": "1"}]},
          {"name": "asks-once", "steps": [], "expect": [{"match": {"path": "/books/1"}, "exactly": 1}], "noneOther": true}]}
        """,
    ]

    private func site() throws -> (ScratchDirectory, routes: String, own: [Scenario]) {
        let directory = try CollectionShop.directory(Self.files)
        return (directory, directory.path + "/routes.json", try Scenario.own(directory.path + "/own.json"))
    }

    @Test func `every case of any API has been tried only if its fault was met`() async throws {
        let (directory, routes, _) = try site()
        let cases = try Scenario.ofAnyAPI(reading: "/books/1", writingTo: "/orders")
        #expect(cases.count == 21 && Set(cases.map(\.name)).count == 21 && cases.allSatisfy(\.isOwn))
        #expect(Set(cases.map(\.name)).isSubset(of: Scenario.all.map(\.name)))
        for scenario in cases {
            let run = try ScenarioRun(scenario, routes: routes)
            let result = try await run.judge()
            await run.stop()
            guard case .notExercised = result.outcome else { throw ScenarioError(description: scenario.name) }
        }
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [(1, true, false), (2, true, true), (2, false, false), (7, true, false)])
    func `a read of an own route counts if the command ends well and did not ask too often`(
        _ requests: Int,
        _ endsWell: Bool,
        _ isPassed: Bool
    ) async throws {
        let (directory, routes, _) = try site()
        let scenario = try #require(
            try Scenario.ofAnyAPI(reading: "/books/1?a=b", writingTo: nil).first { $0.name == "reset-mid-body" }
        )
        let run = try ScenarioRun(scenario, routes: routes)
        #expect(run.environment["LARDER_PATH"] == "/books/1?a=b" && run.environment["LARDER_TOKEN"] == nil)
        for _ in 0..<requests { _ = try await send(run, "GET", "/books/1?a=b") }
        let result = try await run.judge(endsWell)
        await run.stop()
        #expect((result.outcome == .passed) == isPassed, "\(result.outcome)")
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [nil, "a"]) func `a write to an own route needs a key, also if nothing is repeated`(_ key: String?)
        async throws
    {
        let (directory, routes, _) = try site()
        let cases = try Scenario.ofAnyAPI(reading: nil, writingTo: "/orders")
        let run = try ScenarioRun(try #require(cases.first { $0.name == "duplicate-push" }), routes: routes)
        let fields = key.map { ["Idempotency-Key": $0] } ?? [:]
        _ = try await send(run, "POST", "/orders", "{}", fields)
        let result = try await run.judge()
        await run.stop()
        #expect((result.outcome == .passed) == (key != nil), "\(result.outcome)")
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [(["a"], false), (["a", "a"], true), (["a", "b"], false)])
    func `a case of the user's is judged by requests, conduct and state`(_ keys: [String], _ isPassed: Bool)
        async throws
    {
        let (directory, routes, own) = try site()
        let run = try ScenarioRun(own[0], routes: routes)
        #expect(run.environment["LARDER_TASK"] == "order-twice" && run.environment["LARDER_BOOK"] == "Emma")
        for key in keys { _ = try await send(run, "POST", "/orders", "{}", ["Idempotency-Key": key]) }
        let result = try await run.judge()
        await run.stop()
        #expect((result.outcome == .passed) == isPassed, "\(result.outcome)")
        if keys == ["a", "b"], case .failed(let reasons) = result.outcome {
            #expect(reasons.count == 2 && reasons[0].hasPrefix("keyChanged") && reasons[1].contains("instead of \"1\""))
        }
        withExtendedLifetime(directory) {}
    }

    @Test func `a case without a fault is tried by any request`() async throws {
        let (directory, routes, own) = try site()
        let run = try ScenarioRun(own[1], routes: routes)
        guard case .notExercised = try await run.judge().outcome else { throw ScenarioError(description: "exercised") }
        _ = try await send(run, "GET", "/books/1")
        #expect(try await run.judge().outcome == .passed)
        _ = try await send(run, "GET", "/last")
        let failed = try await run.judge()
        guard case .failed = failed.outcome else { throw ScenarioError(description: "passed") }
        await run.stop()
        // Every step, what was expected, and what came.
        let ending = ChildProcess.Ending(code: 0, timedOut: false, output: "begin\nend\n")
        let line = ScenarioReport(result: failed, ending: ending, seconds: 1).line
        let parts = [
            "expected: \(own[1].requirement)", "#1 GET /books/1 → 200 (complete)", "#2 GET /last → 200 (complete)",
            "begin\n", "end",
        ]
        for part in parts { #expect(line.contains(part), "\(part): \(line)") }
        withExtendedLifetime(directory) {}
    }

    @Test(
        arguments: [
            (#"{"scenarios": []}"#, "1: /scenarios must be an array of 1"), ("[]", "must be an object"),
            ("{\n\"scenarios\": [{\"name\": \"a\", \"setps\": []}]}", "2: "),
            (#"{"scenarios": [{"name": "a", "steps": [], "conduct": ["rude"]}]}"#, "/conduct/0 must be one of"),
            (
                #"{"scenarios": [{"name": "a", "steps": [], "variables": {"PATH": "x"}}]}"#,
                "does not begin with LARDER_"
            ),
            (#"{"scenarios": [{"name": "a", "steps": []}, {"name": "a", "steps": []}]}"#, "is that of another one"),
            (#"{"scenarios": [{"steps": []}]}"#, "/scenarios/0/name is missing"), ("{", "1: column"),
        ]
    )
    func `a wrong file of cases is named with its line`(text: String, part: String) throws {
        let directory = try CollectionShop.directory(["own.json": text])
        let error = #expect(throws: FileError.self) { try Scenario.own(directory.path + "/own.json") }
        #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
    }

    // MARK: The command

    private func reports() -> [ScenarioReport] {
        let ending = ChildProcess.Ending(code: 1, timedOut: false, output: "one\n<last> & \u{1}\n")
        let outcomes: [ScenarioRun.Result.Outcome] = [
            .passed, .failed(["sent \"twice\""]), .notExercised("no request"),
        ]
        return outcomes.enumerated().map { index, outcome in
            ScenarioReport(
                result: .init(name: "case-\(index)", outcome: outcome, exchanges: 2, requirement: "r"),
                ending: ending,
                seconds: 1.5
            )
        }
    }

    @Test func `the table, TAP and JUnit tell what was not exercised from what was passed and failed`() {
        let reports = reports()
        #expect(reports.map(\.isPassed) == [true, false, false])
        #expect(reports[0].line.hasPrefix("passed"))
        #expect(reports[1].line.contains("sent \"twice\"") && reports[1].line.contains("  <last>"))
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

    @Test func `a command that has ended is over, although it has left a process with its output`() throws {
        let ending = try ChildProcess.run(["sh", "-c", "echo done; sleep 600 &"], [:], timeoutSeconds: 20)
        #expect(ending.isSuccess && ending.output == "done\n")
    }

    @Test func `a command that cannot be started is named`() throws {
        #expect(throws: ChildProcess.Failure.self) {
            try ChildProcess.run(["/no/such/command"], [:], timeoutSeconds: 1)
        }
    }

    @Test(arguments: [
        ["run"], ["run", "--"], ["--junit", "x"], ["run", "nothing", "--", "true"], ["--what"], ["run", "lost-reply"],
        ["--routes", "api"], ["--read", "books"], ["--scenarios", "/no/such/file"],
        ["run", "lost-reply", "--read", "/books", "--", "true"],
    ])
    func `wrong arguments are usage errors`(_ words: [String]) {
        #expect(throws: (any Error).self) { try ScenarioCommand(words) }
        #expect(throws: Never.self) { try ScenarioCommand(["run", "lost-reply", "--tap", "--", "true"]) }
        #expect(throws: Never.self) {
            try ScenarioCommand(["run", "lost-reply", "--data", "d", "--write", "/orders", "--", "true"])
        }
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

    private func own(_ scenario: String, _ files: [String: String] = [:]) throws -> (ScratchDirectory, ScenarioRun) {
        let all = Self.files.merging(files) { $1 }.merging(["own.json": "{\"scenarios\": [\(scenario)]}"]) { $1 }
        let directory = try CollectionShop.directory(all)
        let own = try Scenario.own(directory.path + "/own.json")
        return (directory, try ScenarioRun(own[0], routes: directory.path + "/routes.json"))
    }

    @Test func `a case with a step that was rejected is not passed`() async throws {
        let act = #"{"act": {"method": "PATCH", "path": "/book/1", "body": {}}}"#
        let (directory, run) = try own(#"{"name": "a", "steps": [\#(act)], "expect": [{"atLeast": 1}]}"#)
        _ = try await send(run, "GET", "/books/1")
        let error = await #expect(throws: ScenarioError.self) { try await run.judge() }
        #expect(error?.description.hasPrefix("step 1: 404 ") ?? false, "\(error?.description ?? "")")
        await run.stop()
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [("/books/1", true), ("/file", false)])
    func `a fault that has changed nothing was not met`(_ path: String, _ isMet: Bool) async throws {
        let fault = #"{"action": {"type": "validators", "mode": "changing"}}"#
        let file = #"{"routes": [{"path": "/file", "status": 204}, {"path": "/books/1", "json": {"title": "Emma"}}]}"#
        let (directory, run) = try own(#"{"name": "a", "steps": [{"faults": [\#(fault)]}]}"#, ["routes.json": file])
        _ = try await send(run, "GET", path)
        let outcome = try await run.judge().outcome
        #expect((outcome == .passed) == isMet, "\(outcome)")
        #expect(run.world.faults.map(\.applications) == [isMet ? 1 : 0])
        #expect(await run.world.journal()[0].faults.count == (isMet ? 1 : 0))
        await run.stop()
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [
        (#""equals": "true""#, "is true instead of \"true\""), (#""equals": true"#, nil),
        (#""equals": 1"#, "instead of 1"),
    ])
    func `a state is compared with the type of its value`(_ equals: String, _ failure: String?) async throws {
        let routes = #"{"routes": [{"path": "/book", "json": {"read": true}}]}"#
        let state = #"{"path": "/book", "pointer": "/read", \#(equals)}"#
        let (directory, run) = try own(#"{"name": "a", "steps": [], "state": [\#(state)]}"#, ["routes.json": routes])
        _ = try await send(run, "GET", "/book")
        let outcome = try await run.judge().outcome
        switch outcome {
        case .failed(let reasons): #expect(failure.map { reasons[0].contains($0) } ?? false, "\(reasons)")
        default: #expect(outcome == .passed && failure == nil)
        }
        await run.stop()
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [
        (#"{"name": "a", "problem": "b", "requirement": "c"}"#, "/scenarios/0/expect or `conduct` or `state` must say"),
        (
            #"{"name": "a", "steps": [], "state": [{"path": "/a", "pointer": "done", "equals": 1}]}"#,
            "/pointer must be a JSON pointer such as /done, not 'done'"
        ),
    ])
    func `a case that says too little is rejected`(scenario: String, part: String) throws {
        let directory = try CollectionShop.directory(["own.json": "{\"scenarios\": [\(scenario)]}"])
        let error = #expect(throws: FileError.self) { try Scenario.own(directory.path + "/own.json") }
        #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
    }

    @Test(arguments: [
        ("invalid-cursor", "GET /v1/feed?after=*"), ("cut-handshake", "no TLS handshake with the server"),
    ])
    func `what was not exercised is named with its query or its handshake`(_ name: String, _ part: String) async throws
    {
        let run = try ScenarioRun(try scenario(name))
        _ = try await send(run, "GET", "/v1/feed?cursor=x")
        guard case .notExercised(let reason) = try await run.judge().outcome else {
            Issue.record("it was exercised")
            return
        }
        #expect(reason.contains(part), "\(reason)")
        await run.stop()
    }

    @Test func `a client that gave up is not said to have asked once`() async throws {
        let (directory, routes, _) = try site()
        let cases = try Scenario.ofAnyAPI(reading: nil, writingTo: "/orders")
        let run = try ScenarioRun(try #require(cases.first { $0.name == "lost-replies" }), routes: routes)
        for _ in 1...2 { _ = try await send(run, "POST", "/orders", "{}", ["Idempotency-Key": "a"]) }
        guard case .failed(let reasons) = try await run.judge(false).outcome else {
            throw ScenarioError(description: "passed")
        }
        #expect(reasons.contains("it gave up after 2 requests, and does not know whether it was done"), "\(reasons)")
        await run.stop()
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [
        (["run", "lost-reply", "--data", "d", "--read", "/x", "--", "true"], "needs --write PATH"),
        (["--read", "books"], "--read requires a path such as /books/1"),
    ])
    func `a case that needs another path is named with the option`(_ words: [String], _ part: String) {
        let error = #expect(throws: UsageError.self) { try ScenarioCommand(words) }
        #expect(error?.message.contains(part) ?? false, "\(error?.message ?? "")")
    }

    @Test func `one exchange and one scenario are no plural`() {
        let result = ScenarioRun.Result(name: "a", outcome: .passed, exchanges: 1, requirement: "r")
        let ending = ChildProcess.Ending(code: 0, timedOut: false, output: "")
        let report = ScenarioReport(result: result, ending: ending, seconds: 1)
        #expect(report.line.contains(" 1 exchange  "))
        #expect(ScenarioReport.summary([report]).contains("1 scenario: "))
    }
}
