import Glibc
import LarderEvents
import LarderTime
import Synchronization

/// Memory pressure on Linux.
///
/// Two signals are observed, and the worse one counts. The control groups of the process (version 2) and their parents, if they have a
/// limit, because a container is killed while the machine has plenty. And pressure-stall information: by kernel
/// triggers that wake the thread as soon as tasks wait for memory, otherwise by reading the ten-second average.
///
/// Missing or unreadable files are ignored; without any signal the source is silent, `isWatching` is false, and
/// the app can report pressure (`MemoryGuard.report`). `explanation` tells what was chosen and why. One thread; it sleeps until a trigger
/// fires if there is no limit to read.
final class LinuxMemorySource: MemoryGuard.Source {
    /// Where and how to read the signals.
    struct Configuration: Sendable {
        /// The path of /proc.
        var proc = "/proc"
        /// The path of the control groups.
        var cgroups = "/sys/fs/cgroup"
        /// The interval for reading figures that have no trigger.
        var interval: Duration = .seconds(2)
        /// Whether kernel triggers are used.
        var usesTriggers = true

        init() {}
    }

    /// The files to read and the triggers to wait for.
    private struct Plan: Sendable {
        /// The directories of control groups with a limit.
        var groups: [String] = []
        var stall: String?
        var triggers: [(descriptor: PollThread.Descriptor, level: MemoryLevel)] = []
        var reasons: [String] = []

        /// Adds a group and its parents that have a limit. Within a container the root of the mount is the group itself,
        /// whatever it is called outside.
        mutating func add(_ path: String, below root: String) {
            groups = MemoryCgroup.lineage(of: path).map { root + $0 }.filter {
                MemoryCgroup(directory: $0)?.limit != nil
            }
        }
    }

    private final class Watcher: Sendable {
        let observers = OrderedObservers<MemoryGuard.Signal>()
        private let plan: Plan
        private let interval: Int32
        private struct State {
            var groups: [String: MemoryCgroup] = [:]
            var isRaised = false
            var hasLostTriggers = false
        }

        private let state = Mutex(State())

        init(_ plan: Plan, _ configuration: Configuration) {
            self.plan = plan
            interval = Int32(clamping: max(100, configuration.interval.nanosecondsSaturating / 1_000_000))
        }

        /// Whether files must be read even while there is no pressure.
        private var mustRead: Bool {
            !plan.groups.isEmpty || plan.triggers.isEmpty || state.withLock { $0.hasLostTriggers }
        }

        var firstTimeout: Int32 { mustRead ? 0 : -1 }

        /// Reads all signals; returns the timeout until the next look.
        func look(_ ready: [Int16]) -> Int32 {
            var signal = read()
            for (trigger, events) in zip(plan.triggers, ready) where events != 0 {
                if events & Int16(POLLERR) != 0 {
                    // The group or its file was removed.
                    state.withLock { $0.hasLostTriggers = true }
                } else if trigger.level > signal.level {
                    signal = MemoryGuard.Signal(trigger.level, cause: "a trigger on memory stalls fired")
                }
            }
            let isWorthTelling = state.withLock { state in
                let wasRaised = state.isRaised
                state.isRaised = signal.level > .normal
                return wasRaised || state.isRaised
            }
            if isWorthTelling { observers.tell(signal) }
            // A trigger fires once in its window, so the end of the pressure is polled.
            return mustRead || signal.level > .normal ? interval : -1
        }

        /// The worst of the figures now.
        func read() -> MemoryGuard.Signal {
            var worst = MemoryGuard.Signal(.normal, cause: "no pressure")
            func raise(_ level: MemoryLevel, _ cause: String) {
                if level > worst.level { worst = MemoryGuard.Signal(level, cause: cause) }
            }
            if let stall = plan.stall.flatMap(readText).flatMap({ PressureStall($0) }) {
                raise(
                    MemoryPressureRules.level(stall),
                    "tasks waited for memory \(stall.some) % of ten seconds, all \(stall.full) %"
                )
            }
            for directory in plan.groups {
                guard let group = MemoryCgroup(directory: directory) else { continue }
                let old = state.withLock { $0.groups.updateValue(group, forKey: directory) }
                let share = group.share.map { "\(Int($0 * 100)) % of its limit" } ?? "no limit"
                raise(MemoryPressureRules.level(group, since: old), "the control group uses \(share)")
            }
            return worst
        }
    }

    /// A description of the chosen signals.
    let explanation: String
    /// Whether any signal is observed; otherwise this source is silent for ever.
    let isWatching: Bool

    private let watcher: Watcher
    private let thread: PollThread?

    /// Starts observing.
    init(_ configuration: Configuration = Configuration()) {
        let plan = Self.plan(configuration)
        let watcher = Watcher(plan, configuration)
        self.watcher = watcher
        guard !plan.groups.isEmpty || plan.stall != nil else {
            thread = nil
            isWatching = false
            explanation =
                (plan.reasons + [
                    "There is no memory signal on this system. Report the pressure that the app knows of (MemoryGuard.report)."
                ])
                .joined(separator: " ")
            return
        }
        let descriptors = plan.triggers.map(\.descriptor)
        thread = PollThread("larder-memory", descriptors, timeout: watcher.firstTimeout) { watcher.look($0) }
        isWatching = thread != nil
        let end = thread == nil ? ["There are no descriptors left for a thread that watches."] : []
        explanation = (plan.reasons + end).joined(separator: " ")
    }

    /// Reads the figures now.
    func read() -> MemoryGuard.Signal { watcher.read() }

    /// Calls `body` with each report, on the source's own thread.
    func observe(_ body: @escaping @Sendable (MemoryGuard.Signal) -> Void) -> EventRegistration {
        watcher.observers.add(body)
    }

    private static func plan(_ configuration: Configuration) -> Plan {
        var plan = Plan()
        let text = readText("\(configuration.proc)/self/cgroup") ?? ""
        if let path = MemoryCgroup.path(text) { plan.add(path, below: configuration.cgroups) }
        if plan.groups.isEmpty {
            plan.reasons.append("No control group has a limit that can be read.")
        } else {
            let paths = plan.groups.joined(separator: ", ")
            plan.reasons.append("Control groups with a limit, whose use is read: \(paths).")
        }

        // The nearest group's stalls are this process's; the machine's are shared by all.
        let ownStalls = plan.groups.map { "\($0)/memory.pressure" }
        let stallPaths = ownStalls + ["\(configuration.proc)/pressure/memory"]
        guard
            let path = stallPaths.first(where: {
                readText($0).flatMap { PressureStall($0) } != nil
            })
        else {
            plan.reasons.append("The kernel has no pressure-stall information.")
            return plan
        }
        plan.stall = path
        guard configuration.usesTriggers else {
            plan.reasons.append("\(path) is read: triggers are turned off.")
            return plan
        }
        // Processes without privileges may only use windows of two seconds.
        let wanted: [(String, MemoryLevel)] = [
            ("some 200000 2000000", .warning), ("full 200000 2000000", .critical),
        ]
        for (text, level) in wanted {
            switch openTrigger(path, text) {
            case .success(let descriptor):
                plan.triggers.append(
                    (PollThread.Descriptor(number: descriptor, events: Int16(POLLPRI), endsWithError: true), level)
                )
            case .failure(let error):
                plan.reasons.append("A trigger on \(path) was refused (\(error)); its average is read instead.")
                for trigger in plan.triggers { close(trigger.descriptor.number) }
                plan.triggers = []
                return plan
            }
        }
        plan.reasons.append("The kernel wakes for stalls: triggers on \(path).")
        return plan
    }

    private static func openTrigger(_ path: String, _ text: String) -> Result<Int32, TriggerRefusal> {
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return .failure(TriggerRefusal(code: errno)) }
        // The kernel requires the terminating zero. An ordinary file would accept it too, but is not a trigger.
        var status = stat()
        let bytes = Array(text.utf8) + [0]
        guard unsafe fstat(descriptor, &status) == 0, status.st_size == 0 else {
            close(descriptor)
            return .failure(TriggerRefusal(code: EINVAL))
        }
        guard unsafe write(descriptor, bytes, bytes.count) == bytes.count else {
            let refusal = TriggerRefusal(code: errno)
            close(descriptor)
            return .failure(refusal)
        }
        return .success(descriptor)
    }
}

private struct TriggerRefusal: Error, CustomStringConvertible {
    let code: Int32

    var description: String { unsafe String(cString: strerror(code)) }
}

extension MemoryCgroup {
    /// Reads the files of a group; nil if they cannot be read.
    fileprivate init?(directory: String) {
        self.init(
            current: readText("\(directory)/memory.current"),
            high: readText("\(directory)/memory.high"),
            max: readText("\(directory)/memory.max"),
            stat: readText("\(directory)/memory.stat"),
            events: readText("\(directory)/memory.events")
        )
    }
}

/// The text of a small file of the kernel; nil if it cannot be read.
private func readText(_ path: String) -> String? {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    let count = unsafe read(descriptor, &buffer, buffer.count)
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
}
