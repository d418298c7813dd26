import LarderStorage

/// The write transaction of a commit, if the disk takes part in it.
struct DiskPart {
    let connection: DiskConnection?

    var isThere: Bool { connection != nil }

    func write(_ body: (borrowing DiskStore.WriteTransaction) throws -> Void) throws {
        guard let connection else { return }
        let transaction = DiskStore.WriteTransaction(connection: connection)
        try body(transaction)
    }
}
