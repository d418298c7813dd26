import LarderTime

/// The source of history identities.
///
/// A world in memory derives them from its seed, so that two runs give the same change tokens. A database is used by many runs,
/// for which the seed would repeat identities of other histories.
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
