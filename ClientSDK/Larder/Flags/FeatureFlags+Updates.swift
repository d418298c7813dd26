import LarderEvents

extension FeatureFlags {
    /// The values of a feature flag: the current one, then each change. For one task.
    public struct Updates<Value: FlagValue & Hashable>: AsyncSequence, Sendable {
        /// Iterates over the values.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let flags: FeatureFlags
            let key: FlagKey<Value>
            var changes: EventSequence<Set<String>>.Iterator
            var last: Value?

            /// The next value; nil if the task is cancelled.
            public mutating func next() async -> Value? { await next(isolation: nil) }

            /// The next value; nil if the task is cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
                while last != nil {
                    // The flag itself is read, so dropped changes do not matter.
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

        /// Starts an iteration.
        public func makeAsyncIterator() -> Iterator {
            Iterator(flags: flags, key: key, changes: changes.makeAsyncIterator())
        }
    }
}
