/// An operation without its types, for `CacheConfiguration.operations`.
public struct RegisteredOperation: Sendable {
    let operation: OutboxOperation

    /// An operation that is shown at once and sent later.
    public init<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>) {
        self.operation = OutboxOperation(operation)
    }

    /// An operation that is awaited.
    public init<Input, Receipt>(_ operation: WriteThrough<Input, Receipt>) {
        self.operation = OutboxOperation(operation)
    }

    /// The name that its rows have in the store.
    public var name: String { operation.name }
}
