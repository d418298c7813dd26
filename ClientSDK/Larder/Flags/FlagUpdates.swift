/// The values of a feature flag: the present one, then each that is different from the one before. For one task.
public struct FlagUpdates<Value: FlagValue & Hashable>: AsyncSequence, Sendable {
    /// Gives the values.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let flags: FeatureFlags
        let key: FlagKey<Value>
        var changes: EventSequence<Set<String>>.Iterator
        var last: Value?

        /// The next value; nil for a task that is cancelled.
        public mutating func next() async -> Value? { await next(isolation: nil) }

        /// The next value; nil for a task that is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            while last != nil {
                // What was dropped for something newer does not matter: the flag itself is looked at.
                guard await changes.next() != nil else { return nil }
                if flags[key] != last { break }
            }
            if Task.isCancelled { return nil }
            last = flags[key]
            return last
        }
    }

    let flags: FeatureFlags
    let key: FlagKey<Value>
    let changes: EventSequence<Set<String>>

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator {
        Iterator(flags: flags, key: key, changes: changes.makeAsyncIterator())
    }
}
