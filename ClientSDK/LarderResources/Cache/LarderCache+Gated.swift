extension LarderCache {
    /// Sends a change that needs a validated value, and waits for the result. As `commit(_:_:)` otherwise.
    ///
    /// A retry of an operation in doubt does not need the value again: it is sent under the same key.
    ///
    /// - Parameters:
    ///   - input: the input of the operation.
    ///   - operation: the awaited write that demands the value.
    ///   - evidence: from `requireValidated` of this cache. It must not be older than its bound now.
    /// - Throws: as `commit(_:_:)`; `.notValidated` if `evidence` has expired, and then nothing was stored or sent; what the check of
    ///   the operation throws.
    public func commit<Input, Receipt, Evidence>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>.Gated<Evidence>,
        given evidence: Validated<Evidence>
    ) async throws(LarderError) -> Receipt {
        do { try operation.check(input, evidence.value) } catch { throw LarderError(error) }
        let (outbox, operation) = (outbox, operation.operation)
        return try await core.changing { () async throws(LarderError) in
            try await outbox.perform(input, operation) { core throws(LarderError) in try evidence.requireCurrent(core) }
        }
    }
}
