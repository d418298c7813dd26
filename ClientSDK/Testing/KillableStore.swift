public import Larder
import Synchronization

/// A disk store whose process can die without dying: at any statement and at any change to a file, or in the middle of one.
///
/// After its death nothing that the store does has any effect, and every call to it throws. `reopen()` then opens the same
/// directory as a new process would: what was committed is there, and what was not is not.
///
///     let killable = KillableStore(DiskStore.Configuration(directory: path, clock: clock))
///     killable.kill(atStep: 7)
///     do { try killable.store().put(entity) } catch { }
///     let entity = try killable.reopen().entity(key)
///
/// Safe from any thread.
public final class KillableStore: Sendable {
    /// How a disk can fail.
    public enum Failure: Sendable, Hashable {
        /// There is no room.
        case full
        /// It may not be written.
        case readOnly
        /// It does not answer.
        case inputOutput
    }

    private struct State {
        var faults: DiskFaults
        var store: DiskStore?
    }

    private let configuration: DiskStore.Configuration
    private let state: Mutex<State>

    /// A store that is opened when it is first asked for.
    public init(_ configuration: DiskStore.Configuration) {
        self.configuration = configuration
        state = Mutex(State(faults: DiskFaults()))
    }

    private var faults: DiskFaults { state.withLock { $0.faults } }

    /// The store, opened if it is not. To open it takes steps too, at which it can be killed.
    public func store() throws(DiskError) -> DiskStore {
        let (known, faults) = state.withLock { ($0.store, $0.faults) }
        if let known { return known }
        var configuration = configuration
        configuration.faults = faults
        let opened = try DiskStore(configuration)
        state.withLock { $0.store = opened }
        return opened
    }

    /// Kills what is there, if it lives, and opens the store again in the life of a new process.
    @discardableResult
    public func reopen() throws(DiskError) -> DiskStore {
        bury()
        return try store()
    }

    /// Kills what is there, and leaves the directory alone until `store()` or `reopen()` is called.
    public func bury() {
        let old = state.withLock { state in
            state.faults.kill()
            defer {
                state.faults = DiskFaults()
                state.store = nil
            }
            return state.store
        }
        // The dead hold no files, even where the test still holds the store.
        old?.suspend()
    }

    /// Has the process die before the `step`th step from now; 1 is the next.
    ///
    /// - Parameter halfWay: within the step instead: of what was to be written, the first half is.
    public func kill(atStep step: Int, halfWay: Bool = false) { faults.kill(atStep: step, halfWay: halfWay) }

    /// Has the process die now.
    public func kill() { faults.kill() }

    /// Has the `step`th step from now fail; or all from that one on that change something, until `heal()`.
    public func fail(_ failure: Failure, atStep step: Int = 1, untilHealed: Bool = false) {
        let failure: DiskFaults.Failure =
            switch failure {
            case .full: .full
            case .readOnly: .readOnly
            case .inputOutput: .inputOutput
            }
        faults.fail(failure, atStep: step, untilHealed: untilHealed)
    }

    /// Limits by how many bytes the store's files may grow from now on, as a disk with so much free space does; nil: no limit. What
    /// is removed or truncated gives its bytes back. `reopen()` ends it.
    public func limitRoom(to bytes: Int64?) { faults.limitRoom(to: bytes) }

    /// Lets steps succeed again. The dead stay dead.
    public func heal() { faults.heal() }

    /// Whether the process has died.
    public var isDead: Bool { faults.isDead }

    /// How many steps the present life has taken: statements, and changes to files.
    public var stepCount: Int { faults.stepCount }
}
