package import LarderHTTP
package import LarderSQLite
import LarderTime
import Synchronization

extension World {
    // MARK: Past states

    /// Starts recording how to undo each commit. Further calls have no effect.
    package func rememberHistory() throws(Problem) {
        try locked { confined in
            guard confined.history == nil else { return }
            confined.history = try StateHistory(confined.store.database, from: commitCount, at: clock.now)
        }
    }

    /// Reads an earlier state, as far back as the history reaches.
    func readPast<Result: Sendable>(
        upTo limit: StateHistory.Limit,
        _ body: (Store) throws -> Result
    ) throws(Problem) -> Result {
        try locked { confined in
            guard let history = confined.history else { return try body(confined.store) }
            let store = confined.store
            return try history.asItWas(limit, now: clock.now, newest: commitCount) { try body(store) }
        }
    }

    /// Removes all tombstones: readers of the change feed that have not read them must resync.
    func forgetTombstones() throws(Problem) {
        try commit { store, commit in try store.forgetTombstones(before: commit.now + .seconds(1)) }
    }

    // MARK: Whole states

    /// The state as an image from which other worlds can start.
    package func image() throws(Problem) -> DatabaseImage {
        try locked { try $0.store.database.image() }
    }

    /// Replaces the state. Tokens of the one before lead to a resync; live channels are closed so that their clients read on.
    package func replace(with image: DatabaseImage) throws(Problem) {
        do {
            let store = try Store(Self.database(image))
            try store.begin(newInstance())
            let confined = Confined(store: store)
            try self.store.withLock { current in
                let isLagging = current.history != nil
                current = confined
                // The lagging replica now lags behind the new state.
                if isLagging { current.history = try StateHistory(store.database, from: commitCount, at: clock.now) }
                let collections = try current.store.collections.names()
                names.withLock { $0 = collections }
                invalidateReplies()
            }
            live.tell(.stateReplaced)
        } catch { throw Self.problem(error) }
    }
}
