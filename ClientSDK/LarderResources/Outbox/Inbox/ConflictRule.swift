extension Outbox {
    /// How a rejected operation is decided on as a conflict of an entity: what its edit started from, and how it is sent after a decision.
    public struct ConflictRule<Input: Sendable>: Sendable {
        let base: @Sendable (Input) throws -> (any CacheEntity)?
        let resolve: @Sendable (Input, any CacheEntity, any CacheEntity, String?) throws -> Input?

        /// Creates a rule.
        ///
        /// - Parameters:
        ///   - base: the entity before the edit, from the input; nil if the input is no edit.
        ///   - resolve: the input that makes the wanted value of the server's value, given an input, the wanted value, the server's and its
        ///     ETag, if that is known; nil if there is nothing to send.
        public init<Value: CacheEntity>(
            base: @escaping @Sendable (Input) -> Value?,
            resolve:
                @escaping @Sendable (Input, _ wanted: Value, _ theirs: Value, _ validator: String?) throws -> Input?
        ) {
            self.init(
                anyBase: base,
                resolve: { input, wanted, theirs, validator in
                    guard let wanted = wanted as? Value, let theirs = theirs as? Value else { return input }
                    return try resolve(input, wanted, theirs, validator)
                }
            )
        }

        /// A rule for entities of several types.
        package init(
            anyBase: @escaping @Sendable (Input) throws -> (any CacheEntity)?,
            resolve: @escaping @Sendable (Input, any CacheEntity, any CacheEntity, String?) throws -> Input?
        ) {
            base = anyBase
            self.resolve = resolve
        }

        /// As it is applied to stored operations.
        func encoded(by codec: PayloadCodec<Input>) -> ConflictRule<[UInt8]> {
            ConflictRule<[UInt8]>(
                anyBase: { try base(try codec.decode($0)) },
                resolve: { try resolve(try codec.decode($0), $1, $2, $3).map { try codec.encode($0) } }
            )
        }
    }

    /// The server's current value of the entity that an operation changes: the cause of `LarderError.conflict`.
    package struct CurrentState: Error, Sendable {
        let store: @Sendable (inout CacheUpdate) -> Void

        package init<Value: CacheEntity>(_ value: Value, validator: String?) {
            store = { $0.put(value, validator: validator) }
        }
    }
}

extension LarderError {
    /// The error by which `send` of an operation reports that somebody else has changed the entity. The server's current value is stored, so
    /// that it is shown at once and is `theirs` of the conflict.
    ///
    /// - Parameters:
    ///   - current: the server's current value.
    ///   - validator: its ETag, if that is known.
    ///   - description: what the server has said.
    public static func conflict<Value: CacheEntity>(
        _ current: Value,
        validator: String?,
        _ description: String
    ) -> LarderError {
        LarderError(.conflict, description, cause: Outbox.CurrentState(current, validator: validator))
    }
}
