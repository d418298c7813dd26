import LarderEngine

/// A WebSocket whose frames nobody mistreats: it can be told together with others.
struct LiveListener: Sendable {
    let handle: WebSocketHandle
    /// What tells the journal of its frames.
    let filter: LiveFilter?

    /// Tells an event to sinks that see alike, in one go where that can be. Called while the store is held.
    static func tell(_ event: LiveEvent, to sinks: [any LiveSink]) {
        var handles: [WebSocketHandle] = []
        var filters: [LiveFilter] = []
        handles.reserveCapacity(sinks.count)
        filters.reserveCapacity(sinks.count)
        for sink in sinks {
            guard let listener = sink.listener else {
                sink.send(event)
                continue
            }
            handles.append(listener.handle)
            if let filter = listener.filter { filters.append(filter) }
        }
        guard !handles.isEmpty else { return }
        // Written down before it leaves: whoever has the frame finds it in the journal.
        LiveFilter.record(event, for: filters)
        WebSocketHandle.send(frame: event.frame, to: handles)
    }
}
