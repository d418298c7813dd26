import LarderBackend
import LarderSQLite
import LarderTime

/// The configuration of a server's worlds.
struct WorldOptions: Sendable {
    let settings: WorldSettings
    let wall: any WallClock
    let monotonic: any MonotonicClock
    /// The seed of everything random; nil uses the system's randomness.
    let seed: UInt64?
    let journalCapacity: Int
    let worldsMaximum: Int
    /// After how long without a request a world is removed; nil for never.
    let worldIdleLimit: Duration?
    let snapshotsDirectory: String?
    let databasePath: String?
    let durability: Database.Durability

    func makeControl(seed: UInt64) -> WorldControl {
        WorldControl(seed: seed, journalCapacity: journalCapacity)
    }
}
