extension WriteThrough {
    /// An awaited write that needs a validated value: `LarderCache.commit(_:_:given:)` is the only way to send it.
    public struct Gated<Evidence: Sendable>: CacheConfiguration.Operation {
        /// The awaited write.
        let operation: WriteThrough
        /// Checks the input against the confirmed value.
        let check: @Sendable (Input, Evidence) throws -> Void

        /// The name of the operation in the store.
        public var name: String { operation.name }
    }

    /// Returns the write as one that demands a validated value.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - check: throws if the confirmed value forbids the write. It runs before anything is stored or sent.
    public func requiring<Evidence: Sendable>(
        _ type: Evidence.Type,
        check: @escaping @Sendable (Input, Evidence) throws -> Void = { _, _ in }
    ) -> Gated<Evidence> {
        Gated(operation: self, check: check)
    }
}
