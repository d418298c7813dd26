package import LarderTime

/// How far a wall clock is ahead of the time since the boot. It changes when the clock is set, by the system or a person.
package struct ClockOffset: Sendable, Hashable {
    package let bootID: String
    package let nanoseconds: Int64

    package init(bootID: String, nanoseconds: Int64) { (self.bootID, self.nanoseconds) = (bootID, nanoseconds) }

    /// Nil if one of the two is the system's and the other is not: a clock that is moved by hand says nothing about the time since the boot.
    package init?(of clock: any WallClock, _ boot: StampSource) {
        guard clock is SystemWallClock == (boot === StampSource.system) else { return nil }
        self.init(bootID: boot.bootID, nanoseconds: clock.now.nanosecondsSinceEpoch &- boot.time() &* 1_000)
    }

    /// How much the clock was set ahead since it had another offset, negative if it was set back, zero for an adjustment of up to two seconds;
    /// nil if the machine was booted meanwhile.
    package func ahead(of earlier: ClockOffset) -> Duration? {
        guard bootID == earlier.bootID else { return nil }
        let ahead = Duration.nanoseconds(nanoseconds &- earlier.nanoseconds)
        return abs(ahead.nanosecondsSaturating) > 2_000_000_000 ? ahead : .zero
    }
}
