import LarderEngine

/// A WebSocket without frame faults: events can be sent to many of them at once.
package struct LiveListener: Sendable {
    let handle: WebSocketHandle
    /// Records the frames in the journal.
    let filter: (any LiveFilter)?

    /// Sends an event to sinks with the same view, with as few calls as possible. Called while the store is locked.
    static func tell(_ event: LiveEvent, to sinks: [any LiveSink]) {
        var handles: [WebSocketHandle] = []
        var filters: [any LiveFilter] = []
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
        // Recorded before it is sent: a peer that has the frame finds it in the journal.
        filters.first?.record(event, for: filters)
        WebSocketHandle.send(frame: event.frame, to: handles)
    }
}
