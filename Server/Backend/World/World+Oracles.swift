import LarderCoding
package import LarderHTTP

/// What people and oracles ask of a world.
extension World {
    /// The first people of the world.
    package func firstPeople(_ count: Int) throws(Problem) -> [(name: String, handle: String)] {
        try read { store in
            var people: [(name: String, handle: String)] = []
            for row in 1...Int64(max(1, count)) {
                guard let members = try store.profiles.find(row)?.members else { break }
                people.append((members["displayName"]?.string ?? "", members["handle"]?.string ?? ""))
            }
            return people
        }
    }

    /// Contradictions in the ledger; none in a sound one.
    package func checkLedger() throws(Problem) -> [LedgerFault] {
        try read { try LedgerCheck.run($0.database) }
    }
}
