import LarderTime

/// Where the identities of histories come from.
///
/// In memory they are decided by the world's seed, so that two runs give the same change tokens. A database goes on from
/// run to run: the seed would give identities again that it has used for other histories.
enum InstanceSource {
    case seeded(SeededGenerator)
    case system

    mutating func next() -> UInt64 {
        guard case .seeded(var generator) = self else {
            var system = SystemRandomNumberGenerator()
            return system.next()
        }
        defer { self = .seeded(generator) }
        return generator.next()
    }
}
