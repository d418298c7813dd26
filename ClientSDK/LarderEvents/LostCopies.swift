import Synchronization

/// Whether a connection has ended without a reply to a request, which was then sent again: the lost copy may have been carried out,
/// whatever the reply to the later one says. Safe from any thread.
package final class LostCopies: Sendable {
    /// Notes the copies that the current task's requests lose; nil: nobody needs it.
    @TaskLocal package static var current: LostCopies?

    private let hasAny = Atomic(false)

    package init() {}

    package func note() { hasAny.store(true, ordering: .relaxed) }

    package var isEmpty: Bool { !hasAny.load(ordering: .relaxed) }
}
