#if canImport(Darwin) && canImport(CoreFoundation)
    import CoreFoundation

    /// Drains an `IdleScheduler` on Apple systems, whenever the main run loop is about to wait in its default mode: while the user
    /// scrolls it runs in another one. To be made, kept and released on the main thread.
    @MainActor
    public final class RunLoopIdleDriver {
        private let observer: CFRunLoopObserver?

        /// - Parameter scheduler: what to drain; a scheduler has one driver.
        public init(_ scheduler: IdleScheduler) {
            observer = unsafe CFRunLoopObserverCreateWithHandler(
                kCFAllocatorDefault,
                CFRunLoopActivity.beforeWaiting.rawValue,
                true,
                // After what Core Animation does at the same moment.
                3_000_000
            ) { _, _ in
                // What is left keeps the loop awake for another turn, so that it is asked again.
                if scheduler.drain() > 0, scheduler.count > 0 { CFRunLoopWakeUp(CFRunLoopGetMain()) }
            }
            CFRunLoopAddObserver(CFRunLoopGetMain(), observer, .defaultMode)
            scheduler.setOnSubmit { CFRunLoopWakeUp(CFRunLoopGetMain()) }
        }

        isolated deinit {
            if let observer { CFRunLoopRemoveObserver(CFRunLoopGetMain(), observer, .defaultMode) }
        }
    }
#endif
