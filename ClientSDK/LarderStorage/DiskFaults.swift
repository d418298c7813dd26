import LarderSQLite

/// Injected disk faults of a store, by step: for tests.
///
/// A step is a statement or a change to a file. Safe from any thread.
package final class DiskFaults: Sendable {
    /// How a step fails.
    package enum Failure: Sendable, Hashable {
        case full
        case readOnly
        case inputOutput

        fileprivate var code: SQLiteError.Code {
            switch self {
            case .full: .full
            case .readOnly: .readOnly
            case .inputOutput: .inputOutput
            }
        }
    }

    let plan = FaultPlan()

    package init() {}

    /// Simulates the death of the process before the `step`th step from now, or in the middle of it.
    package func kill(atStep step: Int, halfWay: Bool = false) { plan.arm(halfWay ? .tear : .kill, atStep: step) }

    /// Simulates the death of the process now.
    package func kill() { plan.kill() }

    /// Makes the `step`th step from now fail, or all steps from that one on until `heal()`.
    package func fail(_ failure: Failure, atStep step: Int, untilHealed: Bool = false) {
        plan.arm(untilHealed ? .failOn(failure.code) : .fail(failure.code), atStep: step)
    }

    /// Lets steps succeed again, unless the process has died.
    package func heal() { plan.heal() }

    /// Limits by how many bytes the store's files may grow from now on; nil: no limit.
    package func limitRoom(to bytes: Int64?) { plan.limitRoom(to: bytes) }

    /// By how many bytes the store's files may still grow; nil: no limit.
    package var room: Int64? { plan.room }

    /// Whether the process has died.
    package var isDead: Bool { plan.isDead }

    /// The number of steps so far.
    package var stepCount: Int { plan.stepCount }
}
