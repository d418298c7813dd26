import Foundation
import LarderEvents
public import LarderResources

extension APIClient {
    /// Applies a push notification: maps its payload by `Configuration.events` like an event, then fetches.
    ///
    /// - Parameters:
    ///   - payload: the notification as JSON values: strings, numbers, booleans, arrays, dictionaries.
    ///   - limit: the time for everything. The system ends a process that needs longer in the background.
    ///   - fetch: reads what the notification is about, so that it is stored when the app opens; returns whether that brought new data.
    ///     Nil: what has changed is fetched at its next read. It is cancelled at the limit, and not called for a duplicate.
    public func received(
        push payload: [String: any Sendable],
        within limit: Duration = .seconds(25),
        fetch: (@Sendable (Event) async throws -> Bool)? = nil
    ) async throws(LarderError) -> Bool {
        guard events != nil || fetch != nil else {
            let text = "A push notification cannot be mapped: set 'events' in APIClient.Configuration, or pass 'fetch'."
            throw LarderError(.invalidArgument, text)
        }
        let event = try Self.event(payload, id: events?.pushID)
        guard receivedEvents.insert(event.id) else { return false }
        let clock = cache.configuration.monotonicClock
        do {
            return try await within(limit, clock: clock, sleeper: clock) { [cache, events] in
                var hasChanged = false
                if let events { hasChanged = try await Self.apply(event, events, cache) }
                return try await fetch?(event) ?? false || hasChanged
            }
        } catch {
            receivedEvents.remove(event.id)
            guard let late = error as? TimeLimitExceeded else { throw LarderError(error) }
            let text = "The push notification was not processed within \(late.limit)."
            throw LarderError(.timedOut, text, cause: late)
        }
    }

    /// Returns whether the event has changed something.
    private static func apply(_ event: Event, _ events: Events, _ cache: LarderCache) async throws(LarderError) -> Bool
    {
        var hasChanged = false
        do throws(LarderError) {
            // On a full disk too, memory must not keep the old value as a fresh one.
            try await cache.update(isTolerant: true) { update in
                try events.apply(event, &update)
                hasChanged = !update.isEmpty
            }
        } catch {
            // Something has changed, and it is not known what.
            try await cache.update(isTolerant: true, events.afterGap)
            throw error
        }
        return hasChanged
    }

    private static func event(_ payload: [String: any Sendable], id: String?) throws(LarderError) -> Event {
        guard JSONSerialization.isValidJSONObject(payload) else {
            let text =
                "The payload of the push notification has values that are not JSON. Pass strings, numbers, booleans, arrays and dictionaries."
            throw LarderError(.invalidArgument, text)
        }
        do {
            let data = try JSONSerialization.data(withJSONObject: payload, options: .sortedKeys)
            var event = Event(name: "push", data: String(decoding: data, as: UTF8.self))
            if let id { event.id = event[id] ?? "" }
            return event
        } catch {
            throw LarderError(
                .invalidArgument,
                "The payload of the push notification cannot be encoded: \(error)",
                cause: error
            )
        }
    }
}
