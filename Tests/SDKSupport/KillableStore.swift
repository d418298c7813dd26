import FileFaults
package import Larder
import LarderSQLite
import LarderTime
import Synchronization

/// A disk store that simulates the death of its process at any SQL statement or file operation, or in the middle of one.
///
/// After the simulated death the store changes nothing, and every call throws. `reopen()` opens the same directory as a new process
/// would: committed data is there, uncommitted data is not.
///
///     let killable = KillableStore(DiskStore.Configuration(directory: path, clock: clock))
///     killable.kill(atStep: 7)
///     do { try killable.store().put(entity) } catch { }
///     let entity = try killable.reopen().entity(key)
///
/// Safe from any thread.
package final class KillableStore: Sendable {
    /// A failure of the disk.
    package enum Failure: Sendable, Hashable {
        /// The disk is full (ENOSPC).
        case full
        /// The disk is read-only (EROFS).
        case readOnly
        /// Input or output fails (EIO).
        case inputOutput

        fileprivate var code: SQLiteError.Code {
            switch self {
            case .full: .full
            case .readOnly: .readOnly
            case .inputOutput: .inputOutput
            }
        }
    }

    private struct State {
        var faults: FaultPlan
        var store: DiskStore?
    }

    private let configuration: DiskStore.Configuration
    private let recordsSyncs: Bool
    private let state: Mutex<State>

    /// A store that is opened by the first call of `store()`.
    ///
    /// - Parameters:
    ///   - configuration: the settings of the store.
    ///   - simulatesPowerLoss: whether `losePower` is possible. Then the database's files are also kept in memory.
    package init(_ configuration: DiskStore.Configuration, simulatesPowerLoss: Bool = false) {
        self.configuration = configuration
        recordsSyncs = simulatesPowerLoss
        state = Mutex(State(faults: FaultPlan(recordsSyncs: simulatesPowerLoss)))
    }

    private var faults: FaultPlan { state.withLock { $0.faults } }

    /// The store. Opens it if necessary; opening takes steps too.
    package func store() throws(DiskError) -> DiskStore {
        let (known, faults) = state.withLock { ($0.store, $0.faults) }
        if let known { return known }
        var configuration = configuration
        configuration.faults = faults
        let opened = try DiskStore(configuration)
        state.withLock { $0.store = opened }
        return opened
    }

    /// Kills the current process and opens the store as a new one.
    @discardableResult
    package func reopen() throws(DiskError) -> DiskStore {
        abandon()
        return try store()
    }

    /// Kills the current process. The directory is not accessed until `store()` or `reopen()` is called.
    package func abandon() {
        let old = state.withLock { state in
            state.faults.kill()
            defer {
                state.faults = FaultPlan(recordsSyncs: recordsSyncs)
                state.store = nil
            }
            return state.store
        }
        // A dead process has no open files, even if the test retains its store.
        old?.suspend()
    }

    /// Lets the machine lose power: kills the current process, and leaves of the database's files what was synced and a random part of
    /// the rest, by sectors. `store()` opens what is left.
    ///
    /// - Throws: `.cannotOpen` if a file cannot be written.
    package func losePower(seed: UInt64) throws {
        let faults = faults
        abandon()
        var generator = SeededGenerator(seed: seed)
        try faults.losePower(using: &generator)
    }

    /// Kills the process before the `step`th step from now; 1 is the next.
    ///
    /// - Parameters:
    ///   - step: the number of the step, from 1.
    ///   - halfWay: kills it within the step, after half of the bytes were written.
    package func kill(atStep step: Int, halfWay: Bool = false) { faults.arm(halfWay ? .tear : .kill, atStep: step) }

    /// Kills the process now.
    package func kill() { faults.kill() }

    /// Lets the `step`th step from now fail.
    ///
    /// - Parameters:
    ///   - failure: how the step fails.
    ///   - step: the number of the step, from 1.
    ///   - untilHealed: all later steps that change something fail too, until `heal()`.
    package func fail(_ failure: Failure, atStep step: Int = 1, untilHealed: Bool = false) {
        faults.arm(untilHealed ? .failOn(failure.code) : .fail(failure.code), atStep: step)
    }

    /// Limits the growth of the store's files in bytes, as a disk with that much free space does; nil: no limit. Removing and truncating
    /// files frees bytes. `reopen()` removes the limit.
    package func limitRoom(to bytes: Int64?) { faults.limitRoom(to: bytes) }

    /// Ends the failures. A killed process stays dead.
    package func heal() { faults.heal() }

    /// Whether the process has died.
    package var isDead: Bool { faults.isDead }

    /// The number of syncs of the database's files by the current process.
    package var syncCount: Int { faults.syncCount }

    /// The number of steps of the current process: statements and file operations.
    package var stepCount: Int { faults.stepCount }
}
