import LarderCoding
import LarderEngine
import LarderTime

/// An expectation about a journal.
public struct Expectation: Sendable, Hashable {
    /// Which entries count.
    public var filter: JournalFilter
    /// The minimum number of entries.
    public var atLeast: Int
    /// The maximum number of entries; nil for no maximum.
    public var atMost: Int?
    /// The minimum time between consecutive entries, on the world's clock.
    public var spacedBy: Duration?
    /// The maximum time between the first and the last entry, on the world's clock.
    public var within: Duration?

    /// Exactly this number.
    public static func exactly(_ count: Int, _ filter: JournalFilter) -> Expectation {
        Expectation(filter: filter, atLeast: count, atMost: count)
    }

    /// At least this number.
    public static func atLeast(_ count: Int, _ filter: JournalFilter) -> Expectation {
        Expectation(filter: filter, atLeast: count, atMost: nil)
    }

    /// At most this number.
    public static func atMost(_ count: Int, _ filter: JournalFilter) -> Expectation {
        Expectation(filter: filter, atLeast: 0, atMost: count)
    }

    /// No entry.
    public static func none(_ filter: JournalFilter) -> Expectation { .exactly(0, filter) }

    init(filter: JournalFilter, atLeast: Int, atMost: Int?) {
        self.filter = filter
        self.atLeast = atLeast
        self.atMost = atMost
    }

    static func read(_ reader: BodyReader) -> Expectation? {
        var filter = reader.child("match").map(JournalFilter.read) ?? JournalFilter()
        if filter.kind == nil { filter.kind = .exchange }
        let exactly = reader.integer("exactly", in: 0...1_000_000_000)
        let least = reader.integer("atLeast", in: 0...1_000_000_000)
        let most = reader.integer("atMost", in: 0...1_000_000_000)
        guard exactly != nil || least != nil || most != nil else {
            reader.failMissing(
                anyOf: ["exactly", "atLeast", "atMost"],
                "or `atLeast` or `atMost` must be given"
            )
            return nil
        }
        if exactly != nil, least != nil || most != nil {
            reader.fail("exactly", "must not be given with `atLeast` or `atMost`")
        }
        var expectation = Expectation(filter: filter, atLeast: exactly ?? least ?? 0, atMost: exactly ?? most)
        expectation.spacedBy = reader.seconds("spacedBySeconds")
        expectation.within = reader.seconds("withinSeconds")
        return expectation
    }

    /// Reads `expect`, `inOrder` and `noneOther`.
    static func list(_ reader: BodyReader, isRequired: Bool) -> (
        expectations: [Expectation], inOrder: Bool, noneOther: Bool
    ) {
        if isRequired { reader.require("expect") }
        let expectations = reader.objects("expect")?.compactMap(read) ?? []
        return (expectations, reader.bool("inOrder"), reader.bool("noneOther"))
    }

    /// The expectation in one line.
    var summary: String {
        let count: String
        switch (atLeast, atMost) {
        case (0, 0?): count = "none"
        case (let least, let most?) where least == most: count = "exactly \(least)"
        case (0, let most?): count = "at most \(most)"
        case (let least, nil): count = "at least \(least)"
        case (let least, let most?): count = "\(least) to \(most)"
        }
        var text = "\(count) of: \(filter.summary)"
        if let spacedBy { text += ", at least \(spacedBy) apart" }
        if let within { text += ", within \(within)" }
        return text
    }
}

/// The result of a verification; empty if all expectations were met.
public struct VerificationReport: Sendable, Hashable, CustomStringConvertible {
    /// An expectation that was not met.
    public struct Failure: Sendable, Hashable {
        /// The expected result.
        public let expectation: String
        /// The actual result.
        public let found: String
        /// The nearest entries, each with its first mismatch.
        public let nearest: [String]
    }

    /// The unmet expectations, in order.
    public let failures: [Failure]

    /// Whether all expectations were met.
    public var holds: Bool { failures.isEmpty }

    /// The report as text.
    public var description: String {
        guard !holds else { return "all expectations were met" }
        return failures.map { failure in
            var text = "expected \(failure.expectation)\n   found \(failure.found)"
            for near in failure.nearest { text += "\n nearest \(near)" }
            return text
        }.joined(separator: "\n")
    }

    var json: JSONValue {
        .members([
            "holds": .bool(holds),
            "failures": .array(
                failures.map { failure in
                    .members([
                        "expectation": .string(failure.expectation), "found": .string(failure.found),
                        "nearest": .array(failure.nearest.map { .string($0) }),
                    ])
                }
            ),
        ])
    }
}

/// Compares the journal of a world with expectations.
struct Verifier {
    let entries: [JournalEntry]
    /// The earlier entries, of which nothing is known.
    let dropped: ClosedRange<Int>?
    let world: World

    /// - Parameters:
    ///   - inOrder: whether the first match of each expectation must come after that of the previous one.
    ///   - noneOther: whether every exchange must match some expectation.
    func verify(_ expectations: [Expectation], inOrder: Bool, noneOther: Bool) -> VerificationReport {
        guard world.control.journal.isEnabled else {
            let expected = expectations.map(\.summary).joined(separator: "; ")
            return VerificationReport(failures: [.init(expectation: expected, found: Journal.isOff, nearest: [])])
        }
        var failures: [VerificationReport.Failure] = []
        var position = 0
        var covered: Set<Int> = []
        for expectation in expectations {
            let matcher = JournalMatcher(expectation.filter, in: world)
            let matching = entries.filter { matcher.matches($0) }
            covered.formUnion(matching.map(\.number))
            func fail(_ found: String, nearest: [String] = []) {
                failures.append(.init(expectation: expectation.summary, found: found, nearest: nearest))
            }
            let tooMany = expectation.atMost.map { matching.count > $0 } ?? false
            let unknown = unknown(after: expectation.filter.after) ?? unknownBody(matcher)
            if let path = expectation.filter.match.path, PathPattern(path) == nil {
                fail("that '\(path)' is no pattern: it \(PathPattern.rule)")
                continue
            }
            if matching.count < expectation.atLeast || tooMany {
                let numbers = matching.prefix(10).map { "#\($0.number)" }.joined(separator: " ")
                fail(
                    matching.isEmpty ? "none" : "\(matching.count): \(numbers)",
                    nearest: tooMany
                        ? [] : nearest(matcher, besides: Set(matching.map(\.number))) + [unknown].compactMap { $0 }
                )
                continue
            }
            if expectation.atMost != nil, let unknown {
                fail(unknown)
                continue
            }
            if let spacing = expectation.spacedBy {
                for (first, second) in zip(matching, matching.dropFirst()) {
                    let distance = second.startedInWorld - first.endedInWorld
                    guard distance < spacing else { continue }
                    fail("#\(first.number) and #\(second.number), \(distance) apart")
                }
            }
            if let within = expectation.within, let first = matching.first, let last = matching.last,
                last.endedInWorld - first.startedInWorld > within
            {
                let distance = last.endedInWorld - first.startedInWorld
                fail("#\(first.number) to #\(last.number), \(distance) from one to the other")
            }
            guard inOrder, expectation.atLeast > 0 else { continue }
            if let next = matching.first(where: { $0.number > position }) {
                position = next.number
            } else {
                fail("#\(matching.last?.number ?? 0), which came before #\(position)")
            }
        }
        if noneOther {
            let others = entries.filter { $0.isExchange && !covered.contains($0.number) }
            if others.isEmpty, let unknown = unknown(after: 0) {
                failures.append(.init(expectation: "none other", found: unknown, nearest: []))
            } else if !others.isEmpty {
                failures.append(
                    .init(
                        expectation: "none other",
                        found: "\(others.count)",
                        nearest: others.prefix(5).map(Self.line)
                    )
                )
            }
        }
        return VerificationReport(failures: failures)
    }

    /// That entries are missing which may match; nil if none is.
    private func unknown(after number: Int) -> String? {
        guard let dropped, number < dropped.upperBound else { return nil }
        return "that #\(dropped.lowerBound) to #\(dropped.upperBound) did not fit into the journal: use --journal N"
    }

    /// That an entry would match if its body did, which was not kept; nil if there is none.
    private func unknownBody(_ matcher: JournalMatcher) -> String? {
        entries.first { entry in
            guard entry.droppedBody != nil, entry.number > matcher.filter.after else { return false }
            let mismatches = matcher.mismatches(entry)
            return !mismatches.isEmpty && mismatches.allSatisfy { $0.member.hasPrefix("body") }
        }.map { "that the body of #\($0.number), \($0.requestBodyBytes) bytes, was not kept" }
    }

    private func nearest(_ matcher: JournalMatcher, besides matching: Set<Int>) -> [String] {
        entries.filter { !matching.contains($0.number) }
            .map { ($0, matcher.mismatches($0)) }
            .sorted { ($0.1.count, $1.0.number) < ($1.1.count, $0.0.number) }.prefix(3)
            .map { entry, mismatches in
                let differences = mismatches.map { "\($0.member) is \($0.found), not \($0.wanted)" }
                return Self.line(entry) + ": " + differences.joined(separator: "; ")
            }
    }

    static func line(_ entry: JournalEntry) -> String {
        "#\(entry.number) \(entry.request.method) \(Secrets.masked(target: entry.request.targetText)) → \(entry.status == 0 ? "none" : String(entry.status)) (\(entry.outcome))"
    }
}
