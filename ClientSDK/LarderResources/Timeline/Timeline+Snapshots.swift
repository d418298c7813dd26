import LarderEvents
import Synchronization

extension Timeline {
    /// The snapshots of a timeline. Each iteration observes the timeline separately; one task may iterate.
    struct Snapshots: AsyncSequence, Sendable {
        /// Returns snapshots in order; a slow reader gets the newest one.
        struct Iterator: AsyncIteratorProtocol {
            let timeline: Timeline<Item>
            private var subscription: Subscription?
            private var last: Timeline<Item>.Snapshot?

            init(_ timeline: Timeline<Item>) { self.timeline = timeline }

            /// The next snapshot; nil when the task was cancelled or the cache closed.
            mutating func next(isolation actor: isolated (any Actor)?) async -> Timeline<Item>.Snapshot? {
                let subscription = await subscribed()
                self.subscription = subscription
                while let snapshot = await subscription.mailbox.next() {
                    subscription.note(snapshot)
                    var view = timeline.view(snapshot)
                    if let last, last.hasSameContent(as: view) { continue }
                    view.difference = ListDifference(from: last?.items ?? [], to: view.items)
                    last = view
                    return view
                }
                return nil
            }

            /// The observation, which begins on the threads for the disk if the list is not in memory.
            private nonisolated(nonsending) func subscribed() async -> Subscription {
                if let subscription { return subscription }
                guard !timeline.engine.node.hasContent else { return Subscription(timeline) }
                let timeline = timeline
                return await timeline.engine.core.reading { Subscription(timeline) }
            }
        }

        /// Observes the timeline until it is released.
        private final class Subscription: Sendable {
            typealias Element = LarderResources.Snapshot<Timeline<Item>.List>

            let mailbox = Mailbox<Element>()
            private let timeline: Timeline<Item>
            private let observer: UInt64
            private let watcher: UInt64
            private let waker: UInt64
            private let last: LastSeen

            private final class LastSeen: Sendable {
                let snapshot = Mutex<Element?>(nil)
            }

            init(_ timeline: Timeline<Item>) {
                self.timeline = timeline
                let last = LastSeen()
                self.last = last
                let mailbox = mailbox
                let again: @Sendable () -> Void = {
                    // Before the first snapshot there is nothing to repeat: the first one contains the change.
                    if let snapshot = last.snapshot.withLock({ $0 }) { mailbox.putAgain(snapshot) }
                }
                watcher = timeline.engine.watch(again)
                waker = timeline.wake(again)
                observer = timeline.engine.node.observe(timeline.options, mailbox)
            }

            deinit {
                timeline.engine.node.removeObserver(observer)
                timeline.engine.removeWatcher(watcher)
                timeline.removeWaker(waker)
            }

            func note(_ snapshot: Element) { last.snapshot.withLock { $0 = snapshot } }
        }

        private let timeline: Timeline<Item>

        init(_ timeline: Timeline<Item>) { self.timeline = timeline }

        /// Creates an iterator, which begins to observe at the first call of `next`.
        func makeAsyncIterator() -> Iterator { Iterator(timeline) }
    }
}
