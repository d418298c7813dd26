import LarderCoding

/// Reads the server's journal for `--explain`.
struct JournalReader {
    let control: ControlClient

    /// The number of the newest entry; 0 if the journal cannot be read.
    func newest() async -> Int64 {
        // A journal that cannot be read is reported when its entries are.
        do throws(Failure) { return try await control.get("/journal?limit=1")["written"]?.integer ?? 0 } catch {
            return 0
        }
    }

    /// The entries after a number.
    ///
    /// - Throws: `Failure` if there is no journal, or it may not be read.
    func entries(after number: Int64) async throws(Failure) -> [JSONValue] {
        try await control.get("/journal?kind=exchange&limit=10000&afterNumber=\(number)")["items"]?.array ?? []
    }
}
