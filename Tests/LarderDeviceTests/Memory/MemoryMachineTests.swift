import LarderTime
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Memory levels", .oneMinute)
struct MemoryMachineTests {
    private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }

    /// The level and recovery step at a time.
    private func look(_ machine: inout MemoryMachine, _ seconds: Double) -> (MemoryLevel, Int?) {
        machine.look(at: time(seconds))
        return (machine.limits.level, machine.limits.recoveryStep)
    }

    @Test func `stricter limits apply at once, recovery takes steps after quiet`() {
        var machine = MemoryMachine(.standard)
        machine.signal(.warning, at: time(0))
        #expect(machine.level == .warning && machine.limits.cacheShare == 0.5)
        machine.signal(.critical, at: time(1))
        #expect(machine.level == .critical && machine.limits.cacheShare == 0 && machine.nextChange == nil)
        machine.signal(.normal, at: time(10))
        #expect(look(&machine, 14.9) == (.critical, nil), "Quiet must last.")
        #expect(look(&machine, 15) == (.normal, 1))
        #expect(look(&machine, 19.9) == (.normal, 1) && machine.limits.cacheShare == 0.25)
        #expect(look(&machine, 20) == (.normal, 2))
        #expect(look(&machine, 30) == (.normal, 3) && !machine.limits.allowsPrefetch)
        #expect(look(&machine, 50) == (.normal, nil) && machine.limits == .normal && machine.nextChange == nil)
    }

    @Test func `changes of pressure within the quiet time change nothing`() {
        var machine = MemoryMachine(.standard)
        machine.signal(.warning, at: time(0))
        for second in 1..<100 {
            machine.signal(second % 2 == 0 ? .warning : .normal, at: time(Double(second) * 2))
            #expect(machine.level == .warning)
        }
    }

    @Test func `pressure during a recovery restarts it with doubled times`() {
        var machine = MemoryMachine(.standard)
        var now = 0.0
        var waits: [Double] = []
        for _ in 0..<8 {
            machine.signal(.warning, at: time(now))
            machine.signal(.normal, at: time(now))
            let due = machine.nextChange.map { Double($0.nanoseconds) / 1e9 } ?? 0
            waits.append(due - now)
            now = due + 0.1
            #expect(look(&machine, now) == (.normal, 1))
        }
        #expect(waits.map { $0.rounded() } == [5, 10, 20, 40, 80, 80, 80, 80])
        // After a quiet time as long as a recovery, the times are reset.
        #expect(look(&machine, now + 10_000) == (.normal, nil) && machine.doublings == 0)
    }

    @Test func `lower pressure relaxes the limits after the quiet time`() {
        var machine = MemoryMachine(.standard)
        machine.signal(.critical, at: time(0))
        machine.signal(.warning, at: time(1))
        #expect(look(&machine, 5) == (.critical, nil))
        #expect(look(&machine, 6) == (.warning, nil))
        #expect(look(&machine, 600) == (.warning, nil), "It lasts for as long as it is reported.")
    }

    @Test func `from critical over warning to normal, each quiet time is waited for`() {
        var machine = MemoryMachine(.standard)
        machine.signal(.critical, at: time(0))
        machine.signal(.warning, at: time(1))
        machine.signal(.normal, at: time(4))
        #expect(look(&machine, 6) == (.warning, nil))
        #expect(look(&machine, 8.9) == (.warning, nil))
        #expect(look(&machine, 9) == (.normal, 1))
    }

    @Test func `a late look takes each step at its own time`() {
        var early = MemoryMachine(.standard)
        early.signal(.critical, at: time(0))
        early.signal(.normal, at: time(0))
        var late = early
        for tenth in 0..<300 { early.look(at: time(Double(tenth) / 10)) }
        late.look(at: time(29.9))
        #expect(early == late)
    }

    @Test func `a policy without steps recovers after the quiet time`() {
        var policy = MemoryPolicy.standard
        policy.recovery = []
        policy.quietTime = .zero
        var machine = MemoryMachine(policy)
        machine.signal(.warning, at: time(3))
        machine.signal(.normal, at: time(4))
        #expect(look(&machine, 4) == (.normal, nil))
    }

    @Test func `limits are never relaxed before the quiet time, for random signals`() {
        for seed in UInt64(1)...200 {
            var generator = SeededGenerator(seed: seed)
            var machine = MemoryMachine(.standard)
            var now = 0.0
            var lastPressure = -1_000.0
            var share = 1.0
            for _ in 0..<300 {
                now += generator.unit() * 8
                if generator.uniform(in: 0..<3) == 0 {
                    machine.look(at: time(now))
                } else {
                    let level = MemoryLevel.allCases[generator.uniform(in: 0..<3)]
                    machine.signal(level, at: time(now))
                    if level > .normal {
                        #expect(machine.level >= level, "seed \(seed)")
                        lastPressure = now
                    }
                }
                let new = machine.limits.cacheShare
                // From critical to a lasting warning the limits are relaxed although there is pressure.
                if new > share, machine.level == .normal { #expect(now - lastPressure >= 5, "seed \(seed)") }
                share = new
            }
        }
    }
}
