import LarderHTTP
import Synchronization

/// What can go wrong with a change feed, to be asked for once at a time.
public enum ChangeTrick: Sendable, Hashable {
    /// This token leads to a resync from now on.
    case expire(token: String)
    /// Every token that was issued up to now leads to a resync.
    case expireAll
    /// So many pages are answered, and the next leads to a resync.
    case expireAfter(pages: Int)
    /// The next page comes twice: its `nextToken` is where it began.
    case repeatPage
    /// The next page is empty and says that there is more.
    case emptyPage
    /// The next page comes in reverse: what refers to something before that itself.
    case reversePage
    /// All tombstones are forgotten: who has not read them must resync.
    case dropTombstones
}

/// The tricks that are due in a world's change feed. Safe from any thread.
final class ChangeTorture: Sendable {
    /// What is to be done to a page.
    enum Verdict: Sendable, Hashable {
        case none
        case gone
        case repeated
        case empty
        case reversed
    }

    private struct State {
        var expired: Set<String> = []
        /// Histories that are over: all of their tokens are expired.
        var ended: Set<UInt64> = []
        var pagesLeft: Int?
        var next: [Verdict] = []
        var isSet = false
    }

    private let state = Mutex(State())
    private static let countMaximum = 10_000

    /// Has every token of these histories lead to a resync.
    func expire(_ histories: Set<UInt64>) {
        state.withLock { state in
            state.isSet = true
            state.ended.formUnion(histories)
        }
    }

    func add(_ trick: ChangeTrick) throws(Problem) {
        try state.withLock { state throws(Problem) in
            guard state.expired.count + state.next.count < Self.countMaximum else {
                throw ProblemType.limitReached(
                    "There are \(Self.countMaximum) tricks to come already.",
                    limit: Self.countMaximum
                )
            }
            state.isSet = true
            switch trick {
            case .expire(let token): state.expired.insert(token)
            // Done to the world itself, not to a page.
            case .expireAll, .dropTombstones: break
            case .expireAfter(let pages): state.pagesLeft = pages
            case .repeatPage: state.next.append(.repeated)
            case .emptyPage: state.next.append(.empty)
            case .reversePage: state.next.append(.reversed)
            }
        }
    }

    func removeAll() { state.withLock { $0 = State() } }

    /// What is to be done to the page behind a token. Each trick is played once.
    func verdict(_ token: ChangeToken?, text: String?) -> Verdict {
        state.withLock { state in
            guard state.isSet else { return .none }
            if let text, state.expired.contains(text) { return .gone }
            if let token, state.ended.contains(token.instance) { return .gone }
            if let left = state.pagesLeft {
                guard left > 0 else {
                    state.pagesLeft = nil
                    return .gone
                }
                state.pagesLeft = left - 1
            }
            return state.next.isEmpty ? .none : state.next.removeFirst()
        }
    }
}
