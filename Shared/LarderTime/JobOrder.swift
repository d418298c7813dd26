import Synchronization

/// The order in which one thread runs all work of a process. Test processes have one, so that they know when everything is at rest; in
/// all others there is none, and threads run as the system lets them.
package struct JobOrder: Sendable {
    /// Adds a call to the work that is ready. From any thread.
    package let add: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Runs everything that is ready, within the work that calls this. Does nothing on other threads.
    package let settle: @Sendable () -> Void

    package init(
        add: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        settle: @escaping @Sendable () -> Void
    ) {
        self.add = add
        self.settle = settle
    }

    private static let present = Mutex<JobOrder?>(nil)

    /// The order of this process. Set before its work begins.
    package static var current: JobOrder? {
        get { present.withLock { $0 } }
        set { present.withLock { $0 = newValue } }
    }
}
