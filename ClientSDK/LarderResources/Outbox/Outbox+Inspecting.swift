public import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Inspection of the outbox.
extension Outbox {
    /// All operations, in the order of enqueuing. Cost: O(n).
    public var entries: [Outbox.Entry] { state.withLock { $0.queue.sorted } }

    /// The operations of a name, in the order of enqueuing. Cost: O(n) for all n operations.
    public func entries(of operation: String) -> [Outbox.Entry] { state.withLock { $0.queue.entries(of: operation) } }

    /// The rejected operations, in the order of enqueuing, with the reason and the time (`Outbox.Entry.rejection`), also after a restart.
    /// They wait for `retry`, `edit` or `drop`. Cost: O(n) for all n operations if there are any rejected ones.
    public var rejected: [Outbox.Entry] { state.withLock { $0.queue.rejected } }

    /// The rejected operations, now and whenever they may have changed: an element may equal the one before. A slow reader gets the newest
    /// element.
    public var rejections: some AsyncSequence<[Outbox.Entry], Never> & Sendable {
        statuses.map { [weak self] _ in self?.rejected ?? [] }
    }

    /// The current state, with the operations of other processes as far as this one has read them. The cost depends on the number of operations
    /// only while some are rejected.
    public var status: Outbox.Status { state.withLock { $0.queue.status } }

    /// The state, now and whenever it may have changed: an element may equal the one before. A slow reader gets the newest element.
    public var statuses: EventSequence<Outbox.Status> {
        // Subscribed before the post, so that no change in between is missed.
        let sequence = hub.subscribe(limit: 1)
        changed()
        return sequence
    }

    /// Reports a step of an operation as an event.
    func tell(_ step: OutboxStep) {
        core.configuration.onEvent(.outbox(step, depth: state.withLock { $0.queue.count }))
    }

    /// Posts the status to its observers. Costs little without observers.
    func changed() {
        guard hub.hasListeners else { return }
        // Read and posted under one lock: otherwise an older status could be the last that observers get.
        telling.withLock { _ in hub.post(status) }
    }

    /// The inputs of the operations with a name, also of those that other processes have stored.
    ///
    /// - Throws: `.storage`; `.encoding` if one cannot be decoded: another version of the application has stored it, or a process with
    /// another payload transform.
    package func storedInputs<Input: Codable & Sendable>(
        of operation: String,
        as type: Input.Type
    ) throws(LarderError) -> [Input] {
        try readRows()
        if let sealed = entries(of: DiskOutboxRow.unreadableName).first {
            let text =
                "Operation \(sealed.id) cannot be read with the present payload transform, and may be one of \"\(operation)\"."
            throw LarderError(.encoding, text, operation: sealed.id)
        }
        var inputs: [Input] = []
        for entry in entries(of: operation) { inputs.append(try entry.input(as: type)) }
        return inputs
    }
}
