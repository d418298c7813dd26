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
            .init("seconds", \.age, .seconds(), example: .seconds(5)),
            .init("commits", \.commits, .integer(1...StateHistory.commitsMaximum), example: 2),
            .init("consistent", \.isConsistent, .bool, example: false),
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
        [.init("page", \.page, .choice, example: .empty)],
        need: .all(["page"]),
        needsDomain: true
    )

    /// Only a token can expire or miss a tombstone, and the present token comes without a page.
    func concerns(_ request: Request) -> Bool {
        guard request.readsChangeFeed, request.method.isSafe else { return false }
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
            .init("lose", \.lose, .probability(omitsZero: true), example: 0.1),
            .init("loseFrame", \.loseFrame, .integer(1...1_000_000_000), example: 2),
            .init("duplicate", \.duplicate, .probability(omitsZero: true), example: 0.1),
            .init("reorder", \.reorder, .probability(omitsZero: true), example: 0.1),
            .init("delay", \.delay, .duration, example: .fixed(.seconds(0.5))),
            .init("endAfterFrames", \.endAfterFrames, .integer(0...1_000_000_000), example: 10),
            .init("endAfterSeconds", \.endAfter, .seconds(), example: .seconds(60)),
            .init("closeCode", \.closeCode, .integer(1_000...4_999), example: 1_011),
            .init("silenceAfterFrames", \.silenceAfterFrames, .integer(0...1_000_000_000), example: 5),
        ],
        need: .any([
            "lose", "loseFrame", "duplicate", "reorder", "delay", "endAfterFrames", "endAfterSeconds", "closeCode",
            "silenceAfterFrames",
        ]),
        needsDomain: true
    )

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) { processing.live = (self, decision) }
}
