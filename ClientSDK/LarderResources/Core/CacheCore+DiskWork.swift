import LarderEvents
import LarderMemory
import LarderStorage

/// Where asynchronous functions wait for the disk: on the threads of two executors, so that a read never queues behind a commit. Without
/// a disk they run where the runtime decides.
///
/// Only the part of a function that may touch the disk runs there, never a source or an operation of the app.
extension CacheCore {
    /// Runs a part that reads the disk.
    nonisolated(nonsending) func reading<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(reads, operation: body)
    }

    /// Runs a part that changes the disk.
    package nonisolated(nonsending) func changing<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(changes, operation: body)
    }
}

extension CacheCore {
    /// The node of a resource, after applying the resource's tags and retention.
    nonisolated(nonsending) func node<Value>(of resource: Resource<Value>) async -> Node<Value> {
        let node = nodes.node(of: resource, in: self)
        if node.mustLeaveDisk(resource) { await changing { node.admit(resource) } } else { node.admit(resource) }
        return node
    }

    /// The keys of all values and lists of a name.
    func keys(named name: String) throws(LarderError) -> Set<QueryKey> {
        var keys = Set(queries.keys).union(nodes.all.map(\.key)).filter { $0.name == name }
        guard let disk = contentDisk else { return keys }
        do {
            let (lists, wholeValues) = try disk.read { transaction in
                (try transaction.queryKeys(named: name), try transaction.entityIDs(ofType: "=" + name))
            }
            keys.formUnion(lists)
            keys.formUnion(wholeValues.compactMap { QueryKey(name: name, canonicalParameters: $0) })
            return keys
        } catch {
            throw LarderError(error)
        }
    }

    /// A step of maintenance of both stores.
    func maintain() throws(LarderError) -> DiskStore.Maintenance {
        var report = DiskStore.Maintenance()
        do {
            // The store of the values also while the disk tier is off: what is in it still expires.
            for disk in [outboxDisk, disk] {
                guard let disk else { continue }
                let step = try disk.maintain()
                let isDone = report.isDone && step.isDone
                report.add(step)
                report.isDone = isDone
            }
            return report
        } catch {
            throw LarderError(error)
        }
    }
}
