import LarderCoding
import LarderEngine
import LarderHTTP

/// One requirement, checked against what the server knows.
struct ScenarioCheck: Sendable {
    /// Returns what is wrong; nil if the requirement is met.
    let failure: @Sendable (ScenarioEvidence) throws -> String?

    init(_ failure: @escaping @Sendable (ScenarioEvidence) throws -> String?) { self.failure = failure }

    /// The last report contains the entity that the client shows, and no version of it differs from the server's.
    static let shown = ScenarioCheck { evidence in
        let id = evidence.variables["LARDER_PATH"]?.split(separator: "/").last.map { String($0) } ?? ""
        guard let last = evidence.reports.last else { return "it never reported what it shows" }
        guard last.held[id] != nil else { return "its last report does not contain \(id)" }
        return last.differing.contains(id) ? "it shows another version of \(id) than the server has" : nil
    }

    /// The client has reported once in each round.
    static func reports(_ count: Int) -> ScenarioCheck {
        ScenarioCheck { $0.reports.count >= count ? nil : "it reported \($0.reports.count) times instead of \(count)" }
    }

    /// The last report agrees with the server.
    ///
    /// - Parameter exempt: the identifier of an entity that may differ.
    static func converged(except exempt: String? = nil) -> ScenarioCheck {
        ScenarioCheck { evidence in
            guard let last = evidence.reports.last else { return "it never reported what it holds" }
            let differing = last.differing.filter { $0 != exempt }.sorted()
            guard let first = differing.first else { return nil }
            let state = last.held[first] == nil ? "is missing" : "is held in another version or no longer exists"
            return "\(differing.count) of its entities differ from the server's: \(first) \(state)"
        }
    }

    /// The journal is as expected.
    static func expected(_ expectations: [Expectation], inOrder: Bool, noneOther: Bool) -> ScenarioCheck {
        ScenarioCheck { evidence in
            let report = evidence.verify(expectations, inOrder: inOrder, noneOther: noneOther)
            return report.holds ? nil : report.description
        }
    }

    /// A member of a reply has the value at the end.
    static func state(_ condition: WaitCondition) -> ScenarioCheck {
        ScenarioCheck { evidence in
            guard case .state(let path, let person, let pointer, let wanted) = condition else { return nil }
            let value = evidence.ask(path, as: person)?.value(at: pointer)
            guard value != wanted.json else { return nil }
            func text(_ value: JSONValue) -> String { String(decoding: value.encoded, as: UTF8.self) }
            return "\(path)\(pointer) is \(value.map(text) ?? "missing") instead of \(text(wanted.json))"
        }
    }

    /// No request has come over plain http.
    static let secureOnly = ScenarioCheck { evidence in
        evidence.entries.first { $0.isExchange && !$0.request.isSecure }.map {
            "it sent a request without TLS: \(Secrets.masked(target: $0.request.targetText))"
        }
    }

    /// No finding of these rules of the conduct report.
    static func conduct(_ rules: [ConductReport.Rule]) -> ScenarioCheck {
        ScenarioCheck { evidence in
            let findings = evidence.conduct.findings.filter { rules.contains($0.rule) }
            return findings.first.map { "\($0.rule.rawValue): \($0.detail)" }
        }
    }

    /// Each of these requests has an idempotency key.
    static func keyed(_ filter: JournalFilter) -> ScenarioCheck {
        ScenarioCheck { evidence in
            let count = evidence.requests(filter).count { $0.request.fields.combined(.idempotencyKey) == nil }
            return count == 0 ? nil : "\(count) × \(filter.summary) without Idempotency-Key"
        }
    }

    /// No page that was received in full before the fault is requested again after it.
    static func noPageTwice(_ path: String) -> ScenarioCheck {
        ScenarioCheck { evidence in
            let pages = evidence.requests(JournalFilter("GET", path))
            let failed = pages.first { $0.faults.contains("fault") }?.number ?? 0
            let known = Set(
                pages.filter { $0.number < failed && $0.status == 200 && $0.outcome == "complete" }
                    .map(\.request.targetText)
            )
            let again = pages.first { $0.number > failed && known.contains($0.request.targetText) }
            return again.map {
                "it read a page again that it had: \(Secrets.masked(target: $0.request.targetText))"
            }
        }
    }

    /// After the last reply that a fault took away the client was given an answer from which it knows the outcome.
    ///
    /// - Parameter requests: the requests whose replies tell the outcome.
    static func informed(by requests: [JournalFilter]) -> ScenarioCheck {
        ScenarioCheck { evidence in
            let lost = evidence.entries.last { $0.trace?.ending != nil }?.number ?? 0
            let answers = requests.flatMap { evidence.requests($0) }
            let isTold = answers.contains { $0.number > lost && $0.outcome == "complete" && $0.status < 500 }
            guard !isTold else { return nil }
            let what = answers.count > 1 ? "it gave up after \(answers.count) requests" : "it did not ask again"
            return what + ", and does not know whether it was done"
        }
    }
}
