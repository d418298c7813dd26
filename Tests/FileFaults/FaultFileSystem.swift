import CSQLite
import Glibc
import Synchronization

/// A SQLite VFS that consults a fault plan before each step and forwards to the system's VFS.
///
/// SQLite allocates the files: a header of ours, followed by the file of the underlying VFS.
enum FaultFileSystem {
    @unsafe private struct Head {
        var file: sqlite3_file
        var plan: Unmanaged<FaultPlan>
        /// The number of the file in `UnsyncedFiles`; -1 if syncs are not recorded.
        var number: Int
    }

    /// SQLite's extended codes, which are macros that Swift does not see.
    private enum Failing {
        static let read = code(1)
        static let write = code(3)
        static let fsync = code(4)
        static let truncate = code(6)
        static let fstat = code(7)
        static let delete = code(10)
        static let access = code(13)
        static let lock = code(15)
        static let shmlock = code(20)
        static let shmmap = code(21)
        static let shmsize = code(19)

        private static func code(_ kind: Int32) -> Int32 { SQLITE_IOERR | (kind << 8) }

        /// The planned error; for an I/O error the extended code that suits the step.
        static func code(_ planned: Int32, _ kind: Int32) -> Int32 { planned == SQLITE_IOERR ? kind : planned }
    }

    /// The offset of the underlying file; a multiple of any alignment that it may need.
    private static let offset = 32

    private static let lastID = Atomic<Int>(0)

    /// Allocates a file system that is not registered with SQLite yet.
    static func make() -> UnsafeMutablePointer<sqlite3_vfs> {
        let result = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        unsafe result.initialize(to: sqlite3_vfs())
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        unsafe result.pointee.zName = unsafe UnsafePointer(strdup("larder-faults-\(id)"))
        return unsafe result
    }

    /// Registers it with SQLite. Repeated calls have no effect.
    static func register(_ system: UnsafeMutablePointer<sqlite3_vfs>, for plan: FaultPlan) {
        guard unsafe sqlite3_vfs_find(system.pointee.zName) == nil, let base = unsafe sqlite3_vfs_find(nil) else {
            return
        }
        unsafe system.pointee.iVersion = 1
        unsafe system.pointee.szOsFile = Int32(offset) + base.pointee.szOsFile
        unsafe system.pointee.mxPathname = base.pointee.mxPathname
        unsafe system.pointee.pAppData = Unmanaged.passUnretained(plan).toOpaque()
        unsafe system.pointee.xOpen = { system, name, file, flags, outFlags in
            guard let system = unsafe system, let file = unsafe file, let base = unsafe FaultFileSystem.base,
                let context = unsafe system.pointee.pAppData
            else { return SQLITE_MISUSE }
            unsafe file.pointee.pMethods = nil
            let plan = unsafe Unmanaged<FaultPlan>.fromOpaque(context)
            guard case .proceed = unsafe plan._withUnsafeGuaranteedRef({ $0.verdict(readsOnly: true) }) else {
                return SQLITE_CANTOPEN
            }
            let below = unsafe FaultFileSystem.below(file)
            unsafe below.pointee.pMethods = nil
            let number = unsafe FaultFileSystem.note(name, flags, plan)
            let result = unsafe base.pointee.xOpen(base, name, below, flags, outFlags)
            guard unsafe below.pointee.pMethods != nil else { return result }
            unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan = plan
            unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.number = number
            unsafe file.pointee.pMethods = UnsafePointer(FaultFileSystem.methods)
            return result
        }
        unsafe system.pointee.xDelete = { system, name, syncs in
            guard let context = unsafe system?.pointee.pAppData, let base = unsafe FaultFileSystem.base else {
                return SQLITE_MISUSE
            }
            let plan = unsafe Unmanaged<FaultPlan>.fromOpaque(context)
            switch unsafe plan._withUnsafeGuaranteedRef({ $0.decide() }) {
            case .proceed: break
            case .tear: return Failing.delete
            case .fail(let code): return Failing.code(code, Failing.delete)
            }
            var status = stat()
            let bytes = unsafe name.map { unsafe stat($0, &status) == 0 ? Int64(status.st_size) : 0 } ?? 0
            let result = unsafe base.pointee.xDelete(base, name, syncs)
            if result == SQLITE_OK {
                unsafe plan._withUnsafeGuaranteedRef { $0.giveRoom(bytes) }
                if let name = unsafe name {
                    unsafe FaultFileSystem.noteDeletion(String(cString: name), syncs != 0, plan)
                }
            }
            return result
        }
        unsafe system.pointee.xAccess = { system, name, flags, result in
            guard let context = unsafe system?.pointee.pAppData, let base = unsafe FaultFileSystem.base else {
                return SQLITE_MISUSE
            }
            let plan = unsafe Unmanaged<FaultPlan>.fromOpaque(context)
            if unsafe plan._withUnsafeGuaranteedRef({ $0.isDead }) { return Failing.access }
            return unsafe base.pointee.xAccess(base, name, flags, result)
        }
        unsafe system.pointee.xFullPathname = { _, name, count, output in
            guard let base = unsafe FaultFileSystem.base else { return SQLITE_MISUSE }
            return unsafe base.pointee.xFullPathname(base, name, count, output)
        }
        unsafe system.pointee.xRandomness = { _, count, output in
            guard let base = unsafe FaultFileSystem.base else { return 0 }
            return unsafe base.pointee.xRandomness(base, count, output)
        }
        unsafe system.pointee.xSleep = { _, microseconds in
            guard let base = unsafe FaultFileSystem.base else { return 0 }
            return unsafe base.pointee.xSleep(base, microseconds)
        }
        unsafe system.pointee.xCurrentTime = { _, output in
            guard let base = unsafe FaultFileSystem.base else { return SQLITE_MISUSE }
            return unsafe base.pointee.xCurrentTime(base, output)
        }
        unsafe system.pointee.xGetLastError = { _, count, output in
            guard let base = unsafe FaultFileSystem.base else { return 0 }
            return unsafe base.pointee.xGetLastError(base, count, output)
        }
        unsafe sqlite3_vfs_register(system, 0)
    }

    /// Records a file before it is opened, if the plan records syncs.
    private static func note(_ name: UnsafePointer<CChar>?, _ flags: Int32, _ plan: Unmanaged<FaultPlan>) -> Int {
        guard let name = unsafe name else { return -1 }
        let path = unsafe String(cString: name)
        let isJournal = flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL) != 0
        return unsafe plan._withUnsafeGuaranteedRef { plan in
            plan.opened(path, { FaultPlan.content(of: path) }, isJournal: isJournal)
        }
    }

    private static func noteDeletion(_ path: String, _ syncsDirectory: Bool, _ plan: Unmanaged<FaultPlan>) {
        unsafe plan._withUnsafeGuaranteedRef { plan in
            plan.withUnsynced { files in
                files.delete(path)
                if syncsDirectory, let slash = path.lastIndex(of: "/") { files.syncDirectory(String(path[..<slash])) }
            }
        }
    }

    /// Records a change of an open file, if the plan records syncs.
    private static func record(_ file: UnsafeMutablePointer<sqlite3_file>, _ change: (inout UnsyncedFiles, Int) -> Void)
    {
        let head = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
        let number = unsafe head.pointee.number
        guard number >= 0 else { return }
        unsafe head.pointee.plan._withUnsafeGuaranteedRef { plan in plan.withUnsynced { change(&$0, number) } }
    }

    private static func recordWrite(
        _ file: UnsafeMutablePointer<sqlite3_file>,
        _ bytes: UnsafeRawPointer?,
        _ count: Int32,
        _ position: Int64
    ) {
        unsafe record(file) { files, number in
            let copy = unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            files.write(number, at: Int(position), copy)
        }
    }

    /// Unregisters and frees it. No file may be open in it.
    static func remove(_ system: UnsafeMutablePointer<sqlite3_vfs>) {
        unsafe sqlite3_vfs_unregister(system)
        unsafe free(UnsafeMutablePointer(mutating: system.pointee.zName))
        unsafe system.deallocate()
    }

    /// The system's VFS.
    private static var base: UnsafeMutablePointer<sqlite3_vfs>? { unsafe sqlite3_vfs_find(nil) }

    private static func below(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
        unsafe (UnsafeMutableRawPointer(file) + offset).assumingMemoryBound(to: sqlite3_file.self)
    }

    /// Consults the plan of a file; nil if it has none.
    private static func decide(_ file: UnsafeMutablePointer<sqlite3_file>) -> FaultPlan.Verdict {
        let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
        return unsafe plan._withUnsafeGuaranteedRef { $0.decide() }
    }

    /// The length of a file of the underlying VFS.
    private static func size(_ below: UnsafeMutablePointer<sqlite3_file>) -> Int64 {
        var size: sqlite3_int64 = 0
        return unsafe below.pointee.pMethods.pointee.xFileSize(below, &size) == SQLITE_OK ? size : 0
    }

    /// Reserves space for a write that ends at `end`; false if there is none.
    private static func takeRoom(_ file: UnsafeMutablePointer<sqlite3_file>, upTo end: Int64) -> Bool {
        let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
        guard unsafe plan._withUnsafeGuaranteedRef({ $0.room }) != nil else { return true }
        let growth = end - (unsafe size(below(file)))
        return unsafe plan._withUnsafeGuaranteedRef { $0.takeRoom(growth) }
    }

    /// Whether there is room for more of the index of a log, whose bytes are not counted.
    private static func hasRoom(_ file: UnsafeMutablePointer<sqlite3_file>, for bytes: Int64) -> Bool {
        let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
        return unsafe plan._withUnsafeGuaranteedRef { $0.room.map { $0 >= bytes } ?? true }
    }

    private static func giveRoom(_ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: Int64) {
        let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
        unsafe plan._withUnsafeGuaranteedRef { $0.giveRoom(bytes) }
    }

    private static func isDead(_ file: UnsafeMutablePointer<sqlite3_file>) -> Bool {
        let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
        return unsafe plan._withUnsafeGuaranteedRef { $0.isDead }
    }

    /// The I/O methods of a file. Version 2: shared memory, no memory mapping.
    ///
    /// `nonisolated(unsafe)`: the table is filled in here, once, before it is used, and is only read afterwards. It is never
    /// freed, because SQLite uses it as long as there are files.
    private nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        unsafe table.initialize(to: sqlite3_io_methods())
        unsafe table.pointee.iVersion = 2
        unsafe table.pointee.xClose = { file in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xClose(below)
        }
        unsafe table.pointee.xRead = { file, output, count, position in
            guard let file = unsafe file, unsafe !isDead(file) else { return Failing.read }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xRead(below, output, count, position)
        }
        unsafe table.pointee.xWrite = { file, bytes, count, position in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            switch unsafe decide(file) {
            case .proceed:
                guard unsafe takeRoom(file, upTo: position + Int64(count)) else { return SQLITE_FULL }
                unsafe recordWrite(file, bytes, count, position)
                return unsafe below.pointee.pMethods.pointee.xWrite(below, bytes, count, position)
            case .tear:
                unsafe recordWrite(file, bytes, count / 2, position)
                _ = unsafe below.pointee.pMethods.pointee.xWrite(below, bytes, count / 2, position)
                return Failing.write
            case .fail(let code): return Failing.code(code, Failing.write)
            }
        }
        unsafe table.pointee.xTruncate = { file, size in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            switch unsafe decide(file) {
            case .proceed: break
            case .tear: return Failing.truncate
            case .fail(let code): return Failing.code(code, Failing.truncate)
            }
            let below = unsafe below(file)
            let before = unsafe Self.size(below)
            let result = unsafe below.pointee.pMethods.pointee.xTruncate(below, size)
            if result == SQLITE_OK {
                unsafe giveRoom(file, before - size)
                unsafe record(file) { $0.truncate($1, to: Int(size)) }
            }
            return result
        }
        unsafe table.pointee.xSync = { file, _ in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            switch unsafe decide(file) {
            case .proceed:
                let plan = unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self).pointee.plan
                unsafe plan._withUnsafeGuaranteedRef { $0.countSync() }
                unsafe record(file) { $0.sync($1) }
                return SQLITE_OK
            case .tear: return Failing.fsync
            case .fail(let code): return Failing.code(code, Failing.fsync)
            }
        }
        unsafe table.pointee.xFileSize = { file, size in
            guard let file = unsafe file, unsafe !isDead(file) else { return Failing.fstat }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xFileSize(below, size)
        }
        unsafe table.pointee.xLock = { file, level in
            guard let file = unsafe file, unsafe !isDead(file) else { return Failing.lock }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xLock(below, level)
        }
        // A dead process holds no locks: unlocking always succeeds.
        unsafe table.pointee.xUnlock = { file, level in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xUnlock(below, level)
        }
        unsafe table.pointee.xCheckReservedLock = { file, result in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xCheckReservedLock(below, result)
        }
        unsafe table.pointee.xFileControl = { file, operation, argument in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xFileControl(below, operation, argument)
        }
        unsafe table.pointee.xSectorSize = { file in
            guard let file = unsafe file else { return 4_096 }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xSectorSize(below)
        }
        unsafe table.pointee.xDeviceCharacteristics = { file in
            guard let file = unsafe file else { return 0 }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xDeviceCharacteristics(below)
        }
        unsafe table.pointee.xShmMap = { file, page, size, extends, output in
            guard let file = unsafe file, unsafe !isDead(file) else { return Failing.shmmap }
            let below = unsafe below(file)
            let result = unsafe below.pointee.pMethods.pointee.xShmMap(below, page, size, 0, output)
            guard result == SQLITE_OK, extends != 0, unsafe output?.pointee == nil else { return result }
            guard unsafe hasRoom(file, for: Int64(size)) else { return Failing.shmsize }
            return unsafe below.pointee.pMethods.pointee.xShmMap(below, page, size, extends, output)
        }
        unsafe table.pointee.xShmLock = { file, first, count, flags in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let isDead = unsafe isDead(file)
            // A dead process holds no locks: unlocking always succeeds.
            guard !isDead || flags & SQLITE_SHM_UNLOCK != 0 else { return Failing.shmlock }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xShmLock(below, first, count, flags)
        }
        unsafe table.pointee.xShmBarrier = { file in
            guard let file = unsafe file else { return }
            let below = unsafe below(file)
            unsafe below.pointee.pMethods.pointee.xShmBarrier(below)
        }
        unsafe table.pointee.xShmUnmap = { file, deletes in
            guard let file = unsafe file else { return SQLITE_MISUSE }
            let below = unsafe below(file)
            return unsafe below.pointee.pMethods.pointee.xShmUnmap(below, isDead(file) ? 0 : deletes)
        }
        return unsafe table
    }()
}
