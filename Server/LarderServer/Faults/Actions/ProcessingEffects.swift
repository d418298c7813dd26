import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

struct Duplicate: FaultEffect {
    static let kind = FaultKind(
        "duplicate",
        Duplicate(),
        at: [.afterRead],
        "the request is carried out twice; the second reply arrives"
    )

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) { processing.repeats = 1 }
}

extension FaultAction.Lag: FaultEffect {
    static let kind = FaultKind(
        "lag",
        FaultAction.Lag(age: nil, commits: nil),
        at: [.afterRead],
        "reads of an older state (recorded from when the fault is set)",
        [
            .seconds("seconds", \.age, example: 5),
            .integer("commits", \.commits, in: 1...StateHistory.commitsMaximum, example: 2),
            .bool("consistent", \.isConsistent),
        ],
        need: .one(["seconds", "commits"]),
        needsDomain: true
    )

    private init(age: Duration?, commits: Int?) { (self.age, self.commits) = (age, commits) }

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) {
        var generator = decision.generator
        guard isConsistent || generator.unit() < 0.5 else { return }
        processing.deviations.past = age.map { .age($0) } ?? .commits(commits ?? 1)
    }
}

/// Changes the answer to a read of the change feed, of the demo API or of collections. It concerns no other request.
struct ChangePage: FaultEffect {
    var page: ChangePageFault?

    static let kind = FaultKind(
        "changes",
        ChangePage(),
        at: [.afterRead],
        "a page of the change feed",
        [.choice("page", \.page, example: .empty)],
        need: .all(["page"]),
        needsDomain: true
    )

    /// Only a token can expire or miss a tombstone, and the present token comes without a page.
    func concerns(_ request: Request) -> Bool {
        guard request.readsChangeFeed else { return false }
        let since = QueryString(parsing: Array(request.query ?? []))?.first("since")
        return since != "now" && (since != nil || ![.expired, .noTombstones].contains(page))
    }

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) { processing.deviations.page = page }
}

extension Request {
    /// Whether its path is that of the change feed, of the demo API or of collections.
    var readsChangeFeed: Bool { ["/v1/changes", "/changes"].contains(pathText) }
}

extension LiveFault: FaultEffect {
    static let kind = FaultKind(
        "live",
        LiveFault(),
        at: [.afterRead],
        "faults on an open WebSocket or event stream",
        [
            .probability("lose", \.lose, omitsZero: true),
            .integer("loseFrame", \.loseFrame, in: 1...1_000_000_000, example: 2),
            .probability("duplicate", \.duplicate, omitsZero: true),
            .probability("reorder", \.reorder, omitsZero: true), .duration("delay", \.delay, example: .number(0.5)),
            .integer("endAfterFrames", \.endAfterFrames, in: 0...1_000_000_000, example: 10),
            .seconds("endAfterSeconds", \.endAfter, example: 60),
            .integer("closeCode", \.closeCode, in: 1_000...4_999, example: 1_011),
            .integer("silenceAfterFrames", \.silenceAfterFrames, in: 0...1_000_000_000, example: 5),
        ],
        need: .any([
            "lose", "loseFrame", "duplicate", "reorder", "delay", "endAfterFrames", "endAfterSeconds", "closeCode",
            "silenceAfterFrames",
        ]),
        needsDomain: true
    )

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) { processing.live = (self, decision) }
}
