import LarderEvents
import LarderTime
import Synchronization

/// The snapshots of a resource. Each iteration observes the resource separately.
package struct Snapshots<Value: Sendable & Equatable>: AsyncSequence, Sendable {
    /// Returns snapshots in order; a slow reader gets the newest one.
    package struct Iterator: AsyncIteratorProtocol {
        private let node: Node<Value>
        private let options: ReadOptions
        private var subscription: Subscription?
        private var last: Snapshot<Value>?
        /// When the observation began; nil after the first content.
        private var askedAt: MonotonicTime?

        init(node: Node<Value>, options: ReadOptions) {
            self.node = node
            self.options = options
        }

        /// The next snapshot; nil when the task was cancelled or the cache closed.
        package mutating func next(isolation actor: isolated (any Actor)?) async -> Snapshot<Value>? {
            // Compared here, because `==` is user code and must not run while the node is locked.
            while let snapshot = await nextShown() {
                if let last, last.hasSameContent(as: snapshot) { continue }
                last = snapshot
                return snapshot
            }
            return nil
        }

        /// The next snapshot, also if its content has not changed.
        nonisolated(nonsending) mutating func nextShown() async -> Snapshot<Value>? {
            if subscription == nil { askedAt = node.core.configuration.monotonicClock.uptime }
            let subscription = await subscribed()
            self.subscription = subscription
            let snapshot = await subscription.mailbox.next()
            // Told here, because the reader may end the process as soon as it has the content.
            if let snapshot, snapshot.value != nil, let start = askedAt.take() {
                node.tellFirstContent(from: snapshot.source, since: start)
            }
            return snapshot
        }

        /// The observation, which begins on the threads for the disk if the value is not in memory.
        private nonisolated(nonsending) func subscribed() async -> Subscription {
            if let subscription { return subscription }
            let (node, options) = (node, options)
            let core = node.core
            let mustLeaveDisk = options.isOffDisk && !node.isOffDisk.load(ordering: .relaxed)
            if node.hasContent, !mustLeaveDisk, !core.isForeignCheckDue(at: core.now()) {
                return Subscription(node, options)
            }
            return await core.reading { Subscription(node, options) }
        }
    }

    /// Observes the node until it is released.
    final class Subscription: Sendable {
        let mailbox = Mailbox<Snapshot<Value>>()
        private let node: Node<Value>
        private let id: UInt64

        init(_ node: Node<Value>, _ options: ReadOptions) {
            self.node = node
            id = node.observe(options, mailbox)
        }

        deinit { node.removeObserver(id) }
    }

    let node: Node<Value>
    let options: ReadOptions

    /// Creates an iterator, which begins to observe at the first call of `next`.
    package func makeAsyncIterator() -> Iterator { Iterator(node: node, options: options) }
}
