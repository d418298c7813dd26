import LarderHTTP
import Synchronization

/// What is set under a name for matching exchanges: a fault, a gate or an actor.
protocol NamedRule: Sendable {
    /// Empty: the set generates one.
    var id: String { get set }
    var match: FaultMatch { get }
    /// The word for it, also the beginning of generated names.
    static var noun: String { get }
    /// How many a world may have.
    static var countMaximum: Int { get }
}

/// The rules of one kind in a world, in the order in which they were set, each with what is counted for it. Safe from any thread.
final class RuleSet<Rule: NamedRule, Counts: Sendable>: Sendable {
    struct Entry: Sendable {
        let rule: Rule
        let matcher: Matcher
        var counts: Counts
    }

    private struct State: Sendable {
        var entries: [Entry] = []
        var lastID = 0
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    /// Asked for every request.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    var all: [Rule] { withEntries { $0.map(\.rule) } ?? [] }

    /// Adds rules, all or none; a rule replaces one with the same name.
    ///
    /// - Parameters:
    ///   - replacesAll: whether all other rules are removed.
    ///   - counts: what is counted for a rule with its name.
    /// - Returns: the rules with their names.
    @discardableResult func add(
        _ rules: [Rule],
        replacesAll: Bool = false,
        counting counts: (Rule) -> Counts
    ) throws(Problem) -> [Rule] {
        try state.withLock { state throws(Problem) in
            var next = State(entries: replacesAll ? [] : state.entries, lastID: state.lastID)
            var names = Set(next.entries.map(\.rule.id))
            var named: [Rule] = []
            // A name is generated once, also after its rule was removed: the journal still has it.
            for rule in rules where rule.id.hasPrefix("\(Rule.noun)-") {
                next.lastID = max(next.lastID, Int(Int32(rule.id.dropFirst(Rule.noun.count + 1)) ?? 0))
            }
            for var rule in rules {
                if rule.id.isEmpty {
                    next.lastID += 1
                    rule.id = "\(Rule.noun)-\(next.lastID)"
                }
                if !names.insert(rule.id).inserted { next.entries.removeAll { $0.rule.id == rule.id } }
                next.entries.append(Entry(rule: rule, matcher: Matcher(rule.match), counts: counts(rule)))
                named.append(rule)
            }
            guard next.entries.count <= Rule.countMaximum else {
                throw ProblemType.limitReached(
                    "A world has at most \(Rule.countMaximum) \(Rule.noun)s.",
                    limit: Rule.countMaximum
                )
            }
            state = next
            count.store(next.entries.count, ordering: .relaxed)
            return named
        }
    }

    @discardableResult func remove(_ id: String) -> Bool { remove { $0.id == id } }

    func removeAll() { remove { _ in true } }

    @discardableResult private func remove(_ isWanted: (Rule) -> Bool) -> Bool {
        state.withLock { state in
            let before = state.entries.count
            state.entries.removeAll { isWanted($0.rule) }
            count.store(state.entries.count, ordering: .relaxed)
            return state.entries.count < before
        }
    }

    /// Runs `body` while nobody else uses the rules; nil without any.
    func withEntries<Result: Sendable>(_ body: (inout [Entry]) -> Result) -> Result? {
        isEmpty ? nil : state.withLock { body(&$0.entries) }
    }
}
