import LarderResources
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

extension CacheScene {
    /// Waits until so many readers have joined requests in flight.
    func joined(_ count: Int) async {
        await reached {
            events.withLock { events in
                events.count { if case .merged = $0 { true } else { false } } >= count
            }
        }
    }
}
