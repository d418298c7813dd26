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
        guard let cache = client?.cache else { return false }
        let types = [Post.entityType, Profile.entityType, Conversation.entityType, Message.entityType]
        let rows = types.flatMap { (try? cache.heldRows(ofType: $0)) ?? [] }
        guard let row = rows.first(where: { $0.key.id == id }) else { return false }
        // A time that lies ahead is one from before the date was set back, and says nothing.
        if let since = cache.followedSince, row.fetchedAt < since || row.fetchedAt > clock.now { return true }
        let fetchedAt = row.fetchedAt - machine.dateError.at(simulation.clock.uptime)
        // The request may have waited for its connection.
        return simulation.lags.contains { lag in
            fetchedAt > lag.from - .seconds(30) && fetchedAt <= lag.to ?? simulation.clock.now
        }
    }
}
