import LarderServer

/// The result of one scenario, in the formats of the command.
struct ScenarioReport {
    let result: ScenarioRun.Result
    let ending: ChildProcess.Ending
    let seconds: Double

    var isPassed: Bool { result.outcome == .passed }

    /// The report of a scenario that could not be judged.
    static func failing(_ scenario: Scenario, _ error: any Error) -> ScenarioReport {
        let outcome = ScenarioRun.Result.Outcome.failed(["the scenario could not be judged: \(error)"])
        let (name, requirement) = (scenario.name, scenario.requirement)
        return ScenarioReport(
            result: ScenarioRun.Result(name: name, outcome: outcome, exchanges: 0, requirement: requirement),
            ending: ChildProcess.Ending(code: nil, timedOut: false, output: ""),
            seconds: 0
        )
    }

    /// Why it was not passed, in lines; empty if it was.
    private var reasons: [String] {
        switch result.outcome {
        case .passed: []
        case .failed(let reasons): reasons.flatMap { $0.split(whereSeparator: \.isNewline).map(String.init) }
        case .notExercised(let reason): ["not exercised: " + reason]
        }
    }

    private var time: String {
        let hundredths = Int((seconds * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// The maximum number of exchanges that are shown. A client in a loop can make thousands.
    private static let stepsMaximum = 100

    /// What was expected and what came, if it was not passed: each exchange, the end of the command, and all that it has printed.
    private var notes: [String] {
        guard !isPassed else { return [] }
        let omitted = max(0, result.steps.count - Self.stepsMaximum)
        let steps = (omitted > 0 ? ["(\(omitted) earlier exchanges)"] : []) + result.steps.suffix(Self.stepsMaximum)
        let output = ending.output.split(whereSeparator: \.isNewline).map { "  \($0)" }
        return ["expected: \(result.requirement)"] + steps + ["the command \(ending.description)"]
            + (output.isEmpty ? [] : ["its output:"] + output)
    }

    /// The lines for the terminal.
    var line: String {
        let word =
            switch result.outcome {
            case .passed: "passed       "
            case .failed: "FAILED       "
            case .notExercised: "not exercised"
            }
        let name = result.name + String(repeating: " ", count: max(1, 27 - result.name.count))
        let head = "\(word)  \(name)\(result.exchanges) exchange\(result.exchanges == 1 ? "" : "s")  \(time) s"
        return ([head] + (reasons + notes).map { "                 \($0)" }).joined(separator: "\n")
    }

    /// The lines of the Test Anything Protocol, version 13.
    func tap(_ number: Int) -> String {
        let head = "\(isPassed ? "ok" : "not ok") \(number) - \(result.name)"
        return ([head] + (reasons + notes).map { "# \($0)" }).joined(separator: "\n")
    }

    /// The totals of several reports.
    static func summary(_ reports: [ScenarioReport]) -> String {
        let passed = reports.count(where: \.isPassed)
        let unknown = reports.count { if case .notExercised = $0.result.outcome { true } else { false } }
        return
            "\n\(reports.count) scenario\(reports.count == 1 ? "" : "s"): \(passed) passed, \(reports.count - passed - unknown) failed, \(unknown) not exercised"
    }

    /// A JUnit XML file. What was not exercised is an error: nothing is known.
    static func junit(_ reports: [ScenarioReport]) -> String {
        let failed = reports.count { if case .failed = $0.result.outcome { true } else { false } }
        let passed = reports.count(where: \.isPassed)
        let cases = reports.map { report -> String in
            let head =
                "  <testcase classname=\"larder\" name=\"\(escaped(report.result.name))\" time=\"\(report.time)\""
            let text = escaped((report.reasons + report.notes).joined(separator: "\n"))
            switch report.result.outcome {
            case .passed: return head + "/>"
            case .failed:
                return head + "><failure message=\"\(escaped(report.reasons[0]))\">\(text)</failure></testcase>"
            case .notExercised: return head + "><error message=\"not exercised\">\(text)</error></testcase>"
            }
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuite name="larder scenarios" tests="\(reports.count)" failures="\(failed)" \
            errors="\(reports.count - passed - failed)">
            \(cases.joined(separator: "\n"))
            </testsuite>

            """
    }

    /// Text in XML 1.0, without the control characters that it does not allow.
    private static func escaped(_ text: String) -> String {
        let escapes: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "\n": "&#10;"]
        return text.unicodeScalars.map { scalar in
            let isForbidden = scalar.value < 0x20 || (0xFFFE...0xFFFF).contains(scalar.value)
            return escapes[scalar] ?? (isForbidden ? "?" : String(scalar))
        }.joined()
    }
}
