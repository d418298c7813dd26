import LarderCoding
import LarderEngine
package import LarderHTTP

/// Queries for people and oracles.
extension World {
    package func hasPerson(_ handle: String) throws(Problem) -> Bool {
        try read { store in try store.entities.find(.profile, named: handle) != nil }
    }

    package func firstPeople(_ count: Int) throws(Problem) -> [(name: String, handle: String)] {
        try read { store in
            var people: [(name: String, handle: String)] = []
            for row in 1...Int64(max(1, count)) {
                guard let members = try store.entities.find(EntityID(.profile, row))?.members else { break }
                people.append((members["displayName"]?.string ?? "", members["handle"]?.string ?? ""))
            }
            return people
        }
    }

    /// Whether the reply that is kept under a person's idempotency key reports success. Asking uses up no key.
    package func hasSucceeded(_ route: String, key: String, as handle: String) throws(Problem) -> Bool {
        try read { store in
            guard let user = try store.entities.find(.profile, named: handle)?.id.row,
                let kept = try store.idempotency.find(user: user, route: route, key: key, now: clock.now)
            else { return false }
            return kept.reply.status.code < 400
        }
    }

    /// Inconsistencies in the ledger; empty for a consistent one.
    package func checkLedger() throws(Problem) -> [LedgerFault] {
        try read { try LedgerCheck.run($0.database) }
    }
}
