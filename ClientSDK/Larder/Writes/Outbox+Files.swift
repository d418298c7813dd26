import LarderResources

extension Outbox {
    /// The names of the copies that its writes carry; nil if one of them cannot be read by this version.
    var usedFiles: Set<String>? {
        var names: Set<String> = []
        for entry in entries where entry.operation == WriteOperations.names[2] {
            guard let write = try? entry.input(as: StoredWrite.self) else { return nil }
            if let file = write.file { names.insert(file.name) }
        }
        return names
    }
}
