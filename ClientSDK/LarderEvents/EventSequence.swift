package import LarderTime

/// An asynchronous sequence of events with a bounded buffer, which counts dropped events.
///
/// It collects events from its creation until it and its iterators are released. It is for one task; several tasks
/// would share the elements. If the buffer is full, the oldest element is dropped. It ends with its source, and for a
/// cancelled task.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
    private struct Iterator: AsyncIteratorProtocol {
        let mailbox: EventMailbox<Element>
        let registration: EventRegistration

        mutating func next() async -> Element? { await mailbox.next() }

        mutating func next(isolation actor: isolated (any Actor)?) async -> Element? { await mailbox.next() }
    }

    let mailbox: EventMailbox<Element>
    let registration: EventRegistration

    /// The number of dropped elements.
    public var droppedCount: Int { mailbox.droppedCount }

    /// Removes and returns the waiting elements without suspending.
    public func takeAvailable() -> [Element] { mailbox.takeAll() }

    /// Creates the iterator.
    public func makeAsyncIterator() -> some AsyncIteratorProtocol<Element, Never> {
        Iterator(mailbox: mailbox, registration: registration)
    }

    /// Returns the next element; nil at the deadline, at the end, and for a cancelled task.
    package func next(until time: MonotonicTime?, by sleeper: any MonotonicClock) async -> Element? {
        guard let time else { return await mailbox.next() }
        return await until(time, by: sleeper) { await mailbox.next() } ?? nil
    }
}
