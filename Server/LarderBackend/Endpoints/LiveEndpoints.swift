import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Changes in real time, over a WebSocket or as Server-Sent Events.
///
/// Both begin with `hello` and the token from which the channel delivers everything. Changes between the reader's own token
/// (`since` or `Last-Event-ID`) and that one are sent first, up to `backlogMaximum`. A reader whose token differs from an
/// event's `previousToken` has a gap and reads `/v1/changes` from its own token.
enum LiveEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/live", .optional, webSocket),
        Route(.get, "/v1/live/events", .optional, eventStream),
    ]

    /// How many missed changes are sent when a channel opens; further ones must be read from the change feed.
    static let backlogMaximum = 500
    /// The WebSocket subprotocol of the channel.
    static let subprotocol = "larder.live.v1"

    static func webSocket(_ call: Call) throws(Problem) -> Reply? {
        guard call.request.isWebSocketUpgrade else {
            throw ProblemType.upgradeRequired(
                "Connect with a WebSocket client.",
                fields: [.upgrade: "websocket", .connection: "upgrade", .secWebSocketVersion: "13"]
            )
        }
        let opening = try opening(call, since: call.query.first("since"))
        let channel = LiveChannel(opening, call, filter: filter(call), isStream: false)
        return .webSocket(WebSocketAcceptance(handler: channel, subprotocols: [subprotocol]))
    }

    static func eventStream(_ call: Call) throws(Problem) -> Reply? {
        if let accept = call.request.fields.combined(.accept), !Accept(parsing: accept).accepts("text/event-stream") {
            throw ProblemType.notAcceptable("The resource is a text/event-stream.")
        }
        let opening = try opening(call, since: call.request.fields[.lastEventID] ?? call.query.first("since"))
        let fields: Fields = [.cacheControl: "no-store", .vary: "Authorization, Origin"]
        return .eventStream(fields, LiveChannel(opening, call, filter: filter(call), isStream: true))
    }

    /// The filter of the channel's frames: a fault's, or one that only records; nil for none.
    private static func filter(_ call: Call) -> (any LiveFilter)? {
        call.owner.deviations.live
            ?? call.world.hooks.frameRecorder(for: call.world, opening: call.request, viewer: call.viewer)
    }

    /// The parameters of a new channel.
    struct Opening: Sendable {
        let token: ChangeToken?
        let filter: ChangeFilter
        let viewer: Int64
    }

    private static func opening(_ call: Call, since text: String?) throws(Problem) -> Opening {
        let filter = try ChangeEndpoints.filter(call)
        let since = try ChangeEndpoints.since(text, in: call.world)
        let world = call.world
        guard let token = since.token else { return Opening(token: nil, filter: filter ?? .all, viewer: call.viewer) }
        // Rejected now, while a status code can still be sent.
        let started = try world.read { store in
            try world.changeReader(store).start(since: token, filter: filter, viewer: call.viewer)
        }
        return Opening(token: started, filter: started.filter, viewer: call.viewer)
    }

    /// Adds a channel to the hub and sends it the missed changes, under one lock of the store.
    ///
    /// - Returns: the reader's number in the hub.
    static func begin(
        _ opening: Opening,
        _ world: World,
        _ sink: any LiveSink,
        hello: (_ json: [UInt8], _ token: String) -> Void
    ) throws(Problem) -> UInt64 {
        try world.read { store in
            let reader = world.changeReader(store)
            let scope = try store.scope(of: opening.viewer)
            let present = try reader.present(filter: opening.filter, viewer: opening.viewer)
            var missed: [ChangeRow] = []
            var start = present
            if let token = opening.token {
                // The state may have been replaced since the request was checked.
                let token = try reader.start(since: token, filter: nil, viewer: opening.viewer)
                let found = try reader.changes(after: token, scope: scope, limit: backlogMaximum)
                if !found.hasMore { (missed, start) = (found.rows, token) }
            }
            hello(Self.hello(start.text), start.text)
            for change in missed {
                let json = try ChangeJSON.encode(change, viewer: opening.viewer, from: store)
                let next = start.advanced(to: change.position)
                sink.receive(.event(LiveEvent(token: next.text, previous: start.text, change: json)))
                start = next
            }
            return world.live.add(sink, scope: scope, from: start)
        }
    }

    private static func hello(_ token: String) -> [UInt8] {
        JSONValue.members(["type": .string("hello"), "token": .string(token)]).encoded
    }
}
