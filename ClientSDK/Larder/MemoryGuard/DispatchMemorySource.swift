#if canImport(Darwin)
    import Dispatch
    import Synchronization

    /// How short memory is on Apple's systems, by Dispatch's memory-pressure events.
    public final class DispatchMemorySource: MemoryPressureSource {
        private let source: any DispatchSourceMemoryPressure
        private let observers: OrderedObservers<MemorySignal>

        /// The system tells.
        public let explanation = "Memory-pressure events by Dispatch."

        /// Watches from now on.
        public init() {
            let source = DispatchSource.makeMemoryPressureSource(eventMask: [.normal, .warning, .critical])
            let observers = OrderedObservers<MemorySignal>()
            source.setEventHandler { [weak source] in
                guard let event = source?.data else { return }
                let level: MemoryLevel =
                    event.contains(.critical) ? .critical : event.contains(.warning) ? .warning : .normal
                observers.tell(MemorySignal(level, cause: "a memory-pressure event"))
            }
            source.activate()
            self.source = source
            self.observers = observers
        }

        deinit { source.cancel() }

        /// Calls `body` with every event.
        public func observe(_ body: @escaping @Sendable (MemorySignal) -> Void) -> EventRegistration {
            observers.add(body)
        }
    }
#endif
