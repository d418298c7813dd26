import LarderBackend
import LarderCoding

extension Scenario {
    private static func following(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        _ change: (inout LiveFault) -> Void
    ) -> Scenario {
        var live = LiveFault()
        change(&live)
        var webSocket = Fault.scenario(.live(live), FaultMatch("GET", "/v1/live"))
        webSocket.id = "fault-websocket"
        return Scenario(
            name,
            .follow,
            problem,
            requirement,
            faults: [.scenario(.live(live), FaultMatch("GET", "/v1/live/events")), webSocket],
            exercise: [.fault("fault"), .reports(1)],
            checks: [.reports(2), .converged(), .conduct(.polledBesideLive)],
            afterFirstReport: { world, variables in
                try Self.change(world, variables)
                let edited = try world.text("/v1/feed", "/items/6/id")
                let author = try world.author(of: edited)
                for text in ["first edit", "second edit"] {
                    try world.perform("PATCH", "/v1/posts/" + edited, as: author, .members(["text": .string(text)]))
                }
            }
        )
    }

    static let live = [
        following(
            "duplicate-events",
            "every live event is delivered twice",
            "apply it twice without harm"
        ) { $0.duplicate = 1 },
        following(
            "reordered-events",
            "live events arrive in another order",
            "decide by version, and close gaps from the change feed"
        ) { $0.reorder = 1 },
        following(
            "lost-event",
            "the second live event is lost",
            "notice by previousToken that one is missing, and read the change feed"
        ) { $0.loseFrame = 2 },
        following(
            "channel-ends",
            "the live channel ends after one event, without a word",
            "open it again, from the last token"
        ) { $0.endAfterFrames = 1 },
    ]
}
