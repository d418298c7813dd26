import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Bounds of hostile input", .oneMinute)
struct BoundsTests {
    @Test func `a cursor with the largest row is rejected, and one with the smallest row ends the list`()
        async throws
    {
        let scene = try Scene()
        let conversation = try await scene.ask("GET", "/v1/conversations").json["items"]?[0]?["id"]?.string ?? ""
        let owner = try #require(EntityID(.conversation, parsing: conversation)?.row)
        let lists: [(String, Cursor.List, Int64)] = [
            ("/v1/feed", .feed, 0), ("/v1/conversations/\(conversation)/messages", .messages, owner),
        ]
        for (path, list, owner) in lists {
            for side in ["after", "before"] {
                let last = Cursor(list, owner: owner, row: .max).text
                let reply = try await scene.ask("GET", "\(path)?\(side)=\(last)")
                #expect(reply.problem == "invalid-cursor")
                #expect(try reply.json["errors"]?[0]?["pointer"] == .string(side))
                let first = Cursor(list, owner: owner, row: 0).text
                let page = try await scene.ask("GET", "\(path)?\(side)=\(first)&limit=1").json
                #expect(page["items"]?.array?.count == (side == "after" ? 0 : 1))
                #expect(page["previousCursor"]?.string != nil)
            }
        }
    }

    @Test func `a flood of new addresses takes bounded memory, and active callers keep their count`() {
        let limiter = RateLimiter(quota: 2, window: .seconds(60))
        let start = WallTime(seconds: 1_790_000_000)
        for number in 0..<40_000 {
            #expect(limiter.take("caller \(number)", now: start + .milliseconds(number)).isAllowed)
            #expect(limiter.callerCount <= RateLimiter.callersMaximum)
        }
        let last = start + .milliseconds(40_000)
        #expect(limiter.take("caller 39999", now: last).remaining == 0)
        #expect(!limiter.take("caller 39999", now: last).isAllowed)
    }

    @Test func `a distant timer on a very slow clock does not overflow`() async throws {
        let stage = try Stage()
        stage.world.clock.run(factor: 0.000_001)
        stage.world.clock.plan(after: .seconds(31_536_000)) {}
        #expect(stage.world.clock.untilNextTimer.map { $0 > .seconds(31_000_000) } == true)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        stage.world.clock.run(factor: .nan)
        #expect(stage.world.clock.mode == .running(factor: 0.000_001))
    }

    @Test func `a window whose period rounds to zero never ends`() async throws {
        let stage = try Stage()
        let faults = #"{"action":{"type":"respond","status":503},"match":{"path":"/v1/feed","periodSeconds":1e-10}}"#
        #expect(try await stage.ask("POST", "/_larder/faults", faults, as: nil).status == 201)
        #expect(try await stage.ask("GET", "/v1/feed").status == 503)
    }

    @Test func `an invalid path pattern matches nothing and is reported`() async throws {
        let stage = try Stage()
        let fault = Fault(.reset, when: FaultMatch("GET", "v1/feed"))
        #expect(fault.whyNeverMatched != nil)
        try stage.world.set(fault)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        let report = await stage.world.verify(.none(JournalFilter("GET", "v1/feed")))
        #expect(report.description.contains("is no pattern"))
        for (query, name) in [
            ("kind=frames", "kind"), ("status=abc", "status"), ("path=v1/feed", "path"), ("limit=1&methd=GET", "methd"),
        ] {
            let reply = try await stage.ask("GET", "/_larder/journal?\(query)", as: nil)
            #expect(reply.status == 400)
            #expect(try reply.json["errors"]?[0]?["pointer"] == .string(name))
        }
    }
}
