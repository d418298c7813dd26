import Larder
import LarderDemo
import LarderModels
import LarderServer
import LarderStorage
import LarderTime

/// Replicas that lag. Neither a reply of such a replica nor the change feed says what the reply lacks (`Documentation/Reliability.md`), so
/// that what was fetched from one is not judged before it is fetched again.
extension Simulation {
    func beginLag() { if lags.last.map({ $0.to != nil }) ?? true { lags.append((clock.now, nil)) } }

    /// Ends all faults of the server.
    func removeFaults() {
        world.removeFaults()
        if let last = lags.indices.last, lags[last].to == nil { lags[last].to = clock.now }
    }
}

extension Device {
    /// Whether nothing tells the device of changes of a stored entity: it was fetched before the change feed was followed, or while a
    /// replica lagged.
    func isUncovered(_ id: String) -> Bool {
        guard let fetchedAt = fetchedAt(id) else { return false }
        // A time that lies ahead is one from before the date was set back, and says nothing.
        if let since = client?.cache.followedSince, fetchedAt < since || fetchedAt > clock.now { return true }
        return isLagging(fetchedAt)
    }

    /// Whether a tap that the server has carried out may be missing in what a replica says: the store was damaged since, so that the device
    /// no longer has the newer version of the post.
    func mayBeMissing(_ tap: LastTap, on post: String) -> Bool {
        guard let damagedAt = machine.damagedAt, tap.at <= damagedAt else { return false }
        // What is not on the disk yet was fetched a moment ago.
        return isLagging(fetchedAt(post) ?? clock.now)
    }

    /// When a stored entity was fetched, by the machine's date.
    private func fetchedAt(_ id: String) -> WallTime? {
        let types = [Post.entityType, Profile.entityType, Conversation.entityType, Message.entityType]
        let rows = types.flatMap { (try? client?.cache.heldRows(ofType: $0)) ?? [] }
        return rows.first { $0.key.id == id }?.fetchedAt
    }

    private func isLagging(_ fetchedAt: WallTime) -> Bool {
        // The date may have been set since. The request may have waited for its connection.
        machine.moments(of: fetchedAt).contains { moment in
            simulation.lags.contains { moment > $0.from - .seconds(30) && moment <= $0.to ?? simulation.clock.now }
        }
    }
}
