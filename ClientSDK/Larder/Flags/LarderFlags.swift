/// The SDK's own switches: each automatic behaviour can be turned off from afar, or on one device.
public enum LarderFlags {
    /// Whether the SDK does less on a bad network by itself.
    public static let networkDegradation = FlagKey("larder.network.degradation", default: true)
    /// Over how many seconds clients are spread when the network is back.
    public static let resumeWindow = FlagKey("larder.network.resumeWindowSeconds", default: 30.0)
    /// Whether the SDK does with less while memory is short.
    public static let memoryGuard = FlagKey("larder.memory.guard", default: true)
    /// Whether pictures are fetched that nobody asked for yet.
    public static let imagePrefetch = FlagKey("larder.images.prefetch", default: true)
    /// Whether decoding waits for idle moments.
    public static let idleDecoding = FlagKey("larder.images.idleDecoding", default: true)
    /// Whether events are added up.
    public static let telemetryTotals = FlagKey("larder.telemetry.totals", default: true)

    /// Sets what is given as the flags say.
    ///
    /// - Parameter policy: what is done on each level while degradation is on.
    public static func apply(
        _ flags: FeatureFlags,
        monitor: NetworkMonitor? = nil,
        policy: DegradationPolicy = .standard,
        guard memory: MemoryGuard? = nil,
        telemetry: Telemetry? = nil
    ) {
        var policy = flags[networkDegradation] ? policy : .none
        if flags.source(of: resumeWindow) != .standard {
            let seconds = flags[resumeWindow]
            policy.resume = ResumeSpread(window: .seconds(seconds.isFinite ? min(max(seconds, 0), 86_400) : 30))
        }
        if let monitor, monitor.policy != policy { monitor.policy = policy }
        memory?.setEnabled(flags[memoryGuard])
        telemetry?.setTotals(flags[telemetryTotals])
    }

    /// Sets what is given as the flags say, now and whenever they change; returns when its task is cancelled.
    public static func follow(
        _ flags: FeatureFlags,
        monitor: NetworkMonitor? = nil,
        policy: DegradationPolicy = .standard,
        guard memory: MemoryGuard? = nil,
        telemetry: Telemetry? = nil
    ) async {
        let changes = flags.changes
        apply(flags, monitor: monitor, policy: policy, guard: memory, telemetry: telemetry)
        for await _ in changes {
            apply(flags, monitor: monitor, policy: policy, guard: memory, telemetry: telemetry)
        }
    }
}
