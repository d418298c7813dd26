import CSQLite
import Synchronization

/// What goes wrong with a disk, and at which step: for tests of what stands on a database.
///
/// Each statement that begins, and each opening, writing, truncating, syncing and deleting of a file, is one step; a store
/// reports the steps that it takes with its own files by `step()`. One plan may serve several databases, and their steps are
/// counted together. Syncing is counted and not done: a process that dies loses nothing that the system has.
///
/// Safe from any thread.
/// `@safe`: the file system is registered from `init` to `deinit`, and databases keep their plan.
@safe package final class FaultPlan: Sendable {
    /// What happens at a step.
    package enum Action: Sendable, Hashable {
        /// The step fails, and the next succeeds.
        case fail(SQLiteError.Code)
        /// The step and all after it that change something fail, until `heal()`. Reading goes on.
        case failOn(SQLiteError.Code)
        /// The process dies before the step: neither it nor anything after it has any effect.
        case kill
        /// The process dies within the step: the first half of what was to be written is.
        case tear
    }

    /// How a step goes.
    enum Verdict {
        case proceed
        case fail(Int32)
        case tear
    }

    private struct State {
        var count = 0
        var armed: (action: Action, step: Int)?
        var isDead = false
        /// How many bytes files may still grow by; nil: no limit.
        var room: Int64?
    }

    private let state = Mutex(State())
    /// `nonisolated(unsafe)`: filled in under the lock, before SQLite knows it, and only read from then on; freed with the plan, which
    /// every database on it holds.
    private nonisolated(unsafe) let fileSystem: UnsafeMutablePointer<sqlite3_vfs>

    package init() { unsafe fileSystem = FaultFileSystem.make() }

    deinit { unsafe FaultFileSystem.remove(fileSystem) }

    /// For opening: the file system's name, which is known to SQLite while the plan lives.
    var fileSystemName: UnsafePointer<CChar> {
        state.withLock { _ in unsafe FaultFileSystem.register(fileSystem, for: self) }
        return unsafe fileSystem.pointee.zName
    }

    /// Has `action` happen at the `step`th step from now; 1 is the next. Replaces what was armed before.
    package func arm(_ action: Action, atStep step: Int) {
        state.withLock { $0.armed = (action, $0.count + step) }
    }

    /// Disarms what is armed, and lets steps succeed again. The dead stay dead.
    package func heal() { state.withLock { $0.armed = nil } }

    /// Limits by how many bytes files may grow from now on, as a disk with so much free space does; nil: no limit. What is removed
    /// or truncated gives its bytes back.
    package func limitRoom(to bytes: Int64?) { state.withLock { $0.room = bytes } }

    /// How many bytes files may still grow by; nil: no limit.
    package var room: Int64? { state.withLock { $0.room } }

    /// Says that a file is about to grow by so many bytes; false where there is no room, and then nothing is taken.
    package func takeRoom(_ bytes: Int64) -> Bool {
        state.withLock { state in
            guard let room = state.room, bytes > 0 else { return true }
            guard bytes <= room else { return false }
            state.room = room - bytes
            return true
        }
    }

    /// Says that a file has become shorter by so many bytes.
    package func giveRoom(_ bytes: Int64) {
        state.withLock { state in if let room = state.room, bytes > 0 { state.room = room + bytes } }
    }

    /// The process dies now.
    package func kill() { state.withLock { $0.isDead = true } }

    /// Whether the process has died.
    package var isDead: Bool { state.withLock { $0.isDead } }

    /// How many steps there were.
    package var stepCount: Int { state.withLock { $0.count } }

    /// Says that something outside SQLite is about to change a file.
    ///
    /// - Returns: whether only the first half is to be written, after which the caller reports failure.
    /// - Throws: what the step fails with.
    package func step() throws(SQLiteError) -> Bool {
        switch decide() {
        case .proceed: return false
        case .tear: return true
        case .fail(let code): throw Self.error(code)
        }
    }

    /// Throws where the process is dead. Not a step.
    package func checkAlive() throws(SQLiteError) { if isDead { throw Self.error(SQLITE_IOERR) } }

    /// The error that a step fails with.
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

    /// A statement begins, or a file is opened. What only reads is a step too, and fails only once or by death.
    func begins(readsOnly: Bool) throws(SQLiteError) {
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
