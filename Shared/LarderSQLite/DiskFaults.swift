/// The disk faults that a test plans for databases and for the files beside them.
package protocol DiskFaults: AnyObject, Sendable {
    /// The name of the SQLite file system that has the faults; it is registered while the object lives.
    var fileSystemName: UnsafePointer<CChar> { get }

    /// Whether the process has died.
    var isDead: Bool { get }

    /// A statement begins.
    func begins(readsOnly: Bool) throws(SQLiteError)

    /// A file outside SQLite changes.
    ///
    /// - Returns: whether only the first half must be written, after which the caller reports a failure.
    func step() throws(SQLiteError) -> Bool

    /// Throws if the process has died. Not a step.
    func checkAlive() throws(SQLiteError)

    /// Reserves growth of a file; false, without effect, if there is no room.
    func takeRoom(_ bytes: Int64) -> Bool

    /// Returns the space of a file that became shorter.
    func giveRoom(_ bytes: Int64)

    func syncedDirectory(_ path: String)
}
