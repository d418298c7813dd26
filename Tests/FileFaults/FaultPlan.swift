import CSQLite
package import LarderSQLite
import Synchronization

/// Plans disk faults for tests: what fails, and at which step.
///
/// Each start of a statement, and each opening, write, truncation, sync and deletion of a file is one step; a store reports
/// steps with its own files by `step()`. One plan may serve several databases, whose steps are counted together. Syncs are
/// counted and not executed: a process that dies loses nothing that the system has. A plan that records syncs can also lose
/// the machine's power (`losePower`).
///
/// Safe from any thread. `@safe`: the file system is registered from `init` to `deinit`, and databases retain their plan.
@safe package final class FaultPlan: DiskFaults {
    /// The fault at a step.
    package enum Action: Sendable, Hashable {
        /// The step fails, and the next one succeeds.
        case fail(SQLiteError.Code)
        /// The step and all later steps that write fail until `heal()`. Reading continues.
        case failOn(SQLiteError.Code)
        /// The process dies before the step: neither it nor anything later has any effect.
        case kill
        /// The process dies during the step: the first half of its data is written.
        case tear
    }

    /// The outcome of a step.
    enum Verdict {
        case proceed
        case fail(Int32)
        case tear
    }

    private struct State {
        var count = 0
        var syncs = 0
        var armed: (action: Action, step: Int)?
        var isDead = false
        /// How many bytes files may still grow by; nil for no limit.
        var room: Int64?
        /// What was not synced yet; nil if it is not recorded.
        var unsynced: UnsyncedFiles?
    }

    private let state = Mutex(State())
    /// `nonisolated(unsafe)`: filled in under the lock before SQLite knows it, and only read afterwards; freed with the plan,
    /// which every database on it retains.
    private nonisolated(unsafe) let fileSystem: UnsafeMutablePointer<sqlite3_vfs>

    /// - Parameter recordsSyncs: whether `losePower` is possible. Then all files are also kept in memory.
    package init(recordsSyncs: Bool = false) {
        unsafe fileSystem = FaultFileSystem.make()
        if recordsSyncs { state.withLock { $0.unsynced = UnsyncedFiles() } }
    }

    /// Nil if syncs are not recorded.
    @discardableResult
    func withUnsynced<Result: Sendable>(_ body: (inout UnsyncedFiles) -> Result) -> Result? {
        state.withLock { state in
            guard var unsynced = state.unsynced.take() else { return nil }
            defer { state.unsynced = unsynced }
            return body(&unsynced)
        }
    }

    deinit { unsafe FaultFileSystem.remove(fileSystem) }

    /// The name of the file system for opening; it is registered while the plan lives.
    package var fileSystemName: UnsafePointer<CChar> {
        state.withLock { _ in unsafe FaultFileSystem.register(fileSystem, for: self) }
        return unsafe fileSystem.pointee.zName
    }

    /// Plans `action` for the `step`th step from now; 1 is the next. Replaces the earlier plan.
    package func arm(_ action: Action, atStep step: Int) {
        state.withLock { $0.armed = (action, $0.count + step) }
    }

    /// Removes the plan and lets steps succeed again. A dead process stays dead.
    package func heal() { state.withLock { $0.armed = nil } }

    /// Limits how many bytes files may grow by from now on, like a disk with that much free space; nil for no limit. Removed
    /// and truncated bytes are returned.
    package func limitRoom(to bytes: Int64?) { state.withLock { $0.room = bytes } }

    /// How many bytes files may still grow by; nil for no limit.
    package var room: Int64? { state.withLock { $0.room } }

    /// Reserves growth of a file; false, without effect, if there is no room.
    package func takeRoom(_ bytes: Int64) -> Bool {
        state.withLock { state in
            guard let room = state.room, bytes > 0 else { return true }
            guard bytes <= room else { return false }
            state.room = room - bytes
            return true
        }
    }

    /// Returns the space of a file that became shorter.
    package func giveRoom(_ bytes: Int64) {
        state.withLock { state in if let room = state.room, bytes > 0 { state.room = room + bytes } }
    }

    /// Makes the process die now.
    package func kill() { state.withLock { $0.isDead = true } }

    /// Whether the process has died.
    package var isDead: Bool { state.withLock { $0.isDead } }

    /// The number of steps so far.
    package var stepCount: Int { state.withLock { $0.count } }

    /// The number of syncs of files of databases so far.
    package var syncCount: Int { state.withLock { $0.syncs } }

    func countSync() { state.withLock { $0.syncs += 1 } }

    /// Reports a change of a file outside SQLite.
    ///
    /// - Returns: whether only the first half must be written, after which the caller reports a failure.
    /// - Throws: the error of the step.
    package func step() throws(SQLiteError) -> Bool {
        switch decide() {
        case .proceed: return false
        case .tear: return true
        case .fail(let code): throw Self.error(code)
        }
    }

    /// Throws if the process is dead. Not a step.
    package func checkAlive() throws(SQLiteError) { if isDead { throw Self.error(SQLITE_IOERR) } }

    /// The error with which a step fails.
    package static func error(_ code: Int32) -> SQLiteError {
        SQLiteError(code: SQLiteError.Code(rawValue: code & 0xFF), extendedCode: code, message: "a planned fault")
    }

    func decide() -> Verdict {
        state.withLock { state in
            guard !state.isDead else { return .fail(SQLITE_IOERR) }
            state.count += 1
            guard let armed = state.armed, state.count >= armed.step else { return .proceed }
            switch armed.action {
            case .fail(let code):
                state.armed = nil
                return .fail(code.rawValue)
            case .failOn(let code): return .fail(code.rawValue)
            case .kill:
                state.isDead = true
                return .fail(SQLITE_IOERR)
            case .tear:
                state.isDead = true
                return .tear
            }
        }
    }

    /// A statement begins, or a file is opened. A read is a step too, but only fails once or by death.
    package func begins(readsOnly: Bool) throws(SQLiteError) {
        guard case .fail(let code) = verdict(readsOnly: readsOnly) else { return }
        throw Self.error(code)
    }

    func verdict(readsOnly: Bool) -> Verdict {
        if readsOnly, state.withLock({ if case .failOn? = $0.armed?.action { !$0.isDead } else { false } }) {
            return .proceed
        }
        let verdict = decide()
        if case .tear = verdict { return .fail(SQLITE_IOERR) }
        return verdict
    }
}
