import LarderHTTP
import Synchronization

/// A fault of the change feed. Each is injected individually.
public enum ChangeFeedFault: Sendable, Hashable {
    /// This token leads to a resync from now on.
    case expire(token: String)
    /// Every token issued until now leads to a resync.
    case expireAll
    /// This number of pages is answered, and the next request leads to a resync.
    case expireAfter(pages: Int)
    /// The next page is sent twice: its `nextToken` is its own start.
    case repeatPage
    /// The next page is empty and says that there is more.
    case emptyPage
    /// The next page is reversed: a reference precedes the entity that it refers to.
    case reversePage
    /// All tombstones are removed: readers that have not read them must resync.
    case dropTombstones
}

/// The pending faults of a world's change feed. Safe from any thread.
final class ChangeFeedFaults: Sendable {
    private struct State {
        var expired: Set<String> = []
        /// Ended histories: all of their tokens have expired.
        var ended: Set<UInt64> = []
        var pagesLeft: Int?
        var next: [ChangePageFault] = []
        var isSet = false
    }

    private let state = Mutex(State())
    private static let countMaximum = 10_000

    /// Expires every token of these histories.
    func expire(_ histories: Set<UInt64>) {
        state.withLock { state in
            state.isSet = true
            state.ended.formUnion(histories)
        }
    }

    func add(_ fault: ChangeFeedFault) throws(Problem) {
        try state.withLock { state throws(Problem) in
            guard state.expired.count + state.next.count < Self.countMaximum else {
                throw ProblemType.limitReached(
                    "There are already \(Self.countMaximum) pending change-feed faults.",
                    limit: Self.countMaximum
                )
            }
            state.isSet = true
            switch fault {
            case .expire(let token): state.expired.insert(token)
            // They change the world itself and not a page.
            case .expireAll, .dropTombstones: break
            case .expireAfter(let pages): state.pagesLeft = pages
            case .repeatPage: state.next.append(.repeated)
            case .emptyPage: state.next.append(.empty)
            case .reversePage: state.next.append(.reversed)
            }
        }
    }

    func removeAll() { state.withLock { $0 = State() } }

    /// How the page after a token is answered. Each fault is returned once.
    func fault(_ token: ChangeToken?, text: String?) -> ChangePageFault {
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
