public import LarderHTTP
public import LarderResources

extension Outbox.Entry {
    /// The request that `APIClient.write` or `commit` has stored, for a list of waiting and rejected writes; nil for another operation, and
    /// for a write of another version of the application that cannot be read.
    public var request: (method: LarderHTTP.Method, path: String)? {
        guard WriteOperations.names.contains(operation) else { return nil }
        let write: StoredWrite
        do { write = try input(as: StoredWrite.self) } catch {
            // As the contract says: the outbox keeps such a row and reports it when it is sent.
            return nil
        }
        return (LarderHTTP.Method(write.method), write.path)
    }
}
