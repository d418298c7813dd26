import LarderTime

/// What happens, as it happens: an asynchronous sequence with a bounded buffer that counts what it had to drop.
///
/// It listens from the moment at which it was made until it and its iterators are gone, so nothing is missed between making
/// and reading it. It is meant for one task; several would share the elements between them. The oldest element is dropped
/// where the reader is too slow. It ends when its source does, and for a task that is cancelled.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
    /// Gives the elements.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let mailbox: EventMailbox<Element>
        let registration: EventRegistration

        /// The next element, as soon as there is one; nil at the end and for a task that is cancelled.
        public mutating func next() async -> Element? { await mailbox.next() }

        /// The next element, as soon as there is one; nil at the end and for a task that is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? { await mailbox.next() }
    }

    let mailbox: EventMailbox<Element>
    let registration: EventRegistration

    /// How many elements were dropped because nobody took them in time.
    public var droppedCount: Int { mailbox.droppedCount }

    /// Takes the elements that wait now, without waiting for any: for tests, and for those who look from time to time.
    public func takeAvailable() -> [Element] { mailbox.takeAll() }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(mailbox: mailbox, registration: registration) }

    /// The next element; nil once it is that time, if one is given, at the end, and for a task that is cancelled.
    func next(until time: MonotonicTime?, by sleeper: any Sleeper) async -> Element? {
        guard let time else { return await mailbox.next() }
        return await until(time, by: sleeper) { await mailbox.next() } ?? nil
    }
}

/// Keeps an observer registered for as long as it lives.
public final class EventRegistration: Sendable {
    private let cancel: @Sendable () -> Void

    /// - Parameter cancel: called once, when the registration is released.
    public init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }

    deinit { cancel() }
}
