import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Verdicts: what a perfect cache would have done", .oneMinute)
struct VerdictTests {
    private let profile = "/v1/profiles/user_2"

    private func verdicts(_ stage: Stage) async -> [[String]] { await stage.world.journal().map(\.verdicts) }

    @Test func `a fresh resource, a known entity tag and a validation are told apart`() async throws {
        let stage = try Stage()
        let tag = try #require(try await stage.ask("GET", profile).field("ETag"))
        stage.world.clock.advance(by: .seconds(259))
        _ = try await stage.ask("GET", profile, fields: ["If-None-Match": tag])
        stage.world.clock.advance(by: .seconds(301))
        let full = try await stage.ask("GET", profile)
        stage.world.clock.advance(by: .seconds(301))
        _ = try await stage.ask("GET", profile, fields: ["If-None-Match": tag])
        let all = await verdicts(stage)
        #expect(all[0] == ["nothing was held"])
        #expect(all[1] == ["was fresh for 41 s more"])
        #expect(all[2] == ["304 possible: this client held \(tag)"])
        #expect(all[3] == ["validated, and \(full.body.count) bytes saved"])
        let report = await stage.world.conduct
        // Asking for what is fresh with a validator is waste, and no finding.
        #expect(report.findings.map(\.rule) == [.downloadedTwice])
        let sent = await stage.world.journal()[1].bytesSent
        #expect(report.bytesWasted == sent + full.body.count)
        #expect(report.bytesSaved == 2 * full.body.count)
    }

    @Test func `a change, a reload and other devices are no waste`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/me")
        _ = try await stage.ask("GET", "/v1/me", fields: ["Larder-Device": "tablet"])
        _ = try await stage.ask("GET", "/v1/me", as: "person2")
        var edit = ScriptedAction("PATCH", "/v1/me", as: "ana", body: #"{"bio":"new"}"#)
        edit.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        #expect(stage.world.perform(edit).status == 200)
        stage.world.clock.advance(by: .seconds(301))
        _ = try await stage.ask("GET", "/v1/me")
        _ = try await stage.ask("GET", "/v1/feed?limit=2")
        _ = try await stage.ask("GET", "/v1/feed?limit=2", fields: ["Cache-Control": "no-cache"])
        let all = await verdicts(stage)
        #expect(all.prefix(3).allSatisfy { $0 == ["nothing was held"] })
        #expect(all[3] == ["had changed since #1"])
        #expect(all[5].first?.hasPrefix("304 possible") ?? false)
    }

    @Test func `accounts on one device do not share what was received, nor a request in flight`() async throws {
        let stage = try Stage()
        func read(_ path: String, as handle: String) throws -> RawClient {
            try stage.send("GET", path, as: handle, fields: ["Larder-Device": "phone"])
        }
        for path in [profile, "/v1/feed"] {
            for handle in ["ana", "person2", "ana"] { _ = try await read(path, as: handle).reply() }
        }
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/me"), stage: .request))
        let waiting = [try read("/v1/me", as: "ana"), try read("/v1/me", as: "person2")]
        #expect(await stage.world.wait(for: .held(2), limit: .seconds(3_600)))
        stage.world.releaseAll()
        for client in waiting { _ = try await client.reply() }
        #expect(await stage.world.conduct.findings.isEmpty)
        _ = try await read(profile, as: "ana").reply()
        #expect(await stage.world.conduct.findings.map(\.entries) == [[3, 9], [3, 9]])
    }

    /// The routes of an own API whose replies are fresh for a minute.
    private func site(_ name: String, _ value: String) throws -> RouteSite {
        let fields = #"{"Cache-Control":"max-age=60","\#(name)":"\#(value)"}"#
        let site = try RouteSite(routes: #"{"path":"/a","fields":\#(fields),"json":{"n":"{{counter c}}"}}"#)
        site.backend.main.clock.freeze(at: WallTime(seconds: 1_790_000_000))
        return site
    }

    @Test func `a reply in another language is not what a request asks for`() async throws {
        let site = try site("Vary", "Accept-Language")
        for language in ["en", "pt", "en"] {
            let fields = ["Larder-Device": "phone", "Accept-Language": language]
            #expect(try await site.ask("GET", "/a", nil, fields).status == 200)
        }
        #expect(await site.backend.main.conduct.findings.isEmpty)
        _ = try await site.ask("GET", "/a", nil, ["Larder-Device": "phone", "Accept-Language": "EN"])
        #expect(await site.backend.main.conduct.findings.map(\.rule) == [.refetchedFresh])
    }

    @Test(arguments: [(9, 1), (11, 0)])
    func `the age of a reply counts towards its lifetime`(_ seconds: Int, _ count: Int) async throws {
        let site = try site("Age", "50")
        #expect(try await site.ask("GET", "/a", nil, ["Larder-Device": "phone"]).field("Age") == "50")
        site.backend.main.clock.advance(by: .seconds(seconds))
        _ = try await site.ask("GET", "/a", nil, ["Larder-Device": "phone"])
        #expect(await site.backend.main.conduct.findings.count { $0.rule == .refetchedFresh } == count)
    }

    @Test(arguments: [
        ("max-age=60", "Accept", "*/*", 1), ("max-age=60", "Cache-Control", "no-cache", 0),
        ("max-age=60", "Cache-Control", "max-age=0", 0), ("max-age=60", "Pragma", "no-cache", 0),
        ("max-age=60", "If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT", 0),
        ("max-age=60, no-store", "Accept", "*/*", 0), ("max-age=60, no-cache", "Accept", "*/*", 0),
        ("max-age=0", "Accept", "*/*", 0),
    ])
    func `a reply without an entity tag is fresh too, and a reload of it is no waste`(
        _ control: String,
        _ name: String,
        _ value: String,
        _ count: Int
    ) async throws {
        let stage = try Stage()
        var canned = CannedReply(status: 200)
        (canned.body, canned.headers) = ("own", ["Cache-Control": control])
        try stage.world.set(Fault(.respond(canned), when: FaultMatch("GET", "/own")))
        #expect(try await stage.ask("GET", "/own").field("ETag") == nil)
        #expect(try await stage.ask("GET", "/own", fields: [name: value]).text == "own")
        let findings = await stage.world.conduct.findings
        #expect(findings.count == count && findings.allSatisfy { $0.rule == .refetchedFresh }, "\(findings)")
    }

    @Test func `a retry says after what it comes, and how much too soon`() async throws {
        let stage = try Stage()
        var rejection = CannedReply(status: 503)
        rejection.retryAfter = .seconds(30)
        var occurrence = Fault.Occurrence()
        occurrence.count = 2
        try stage.world.set(
            Fault(id: "busy", .respond(rejection), when: FaultMatch("GET", profile), occurrence: occurrence)
        )
        _ = try await stage.ask("GET", profile)
        stage.world.clock.advance(by: .seconds(27))
        _ = try await stage.ask("GET", profile)
        stage.world.clock.advance(by: .seconds(31))
        _ = try await stage.ask("GET", profile)
        let all = await verdicts(stage)
        #expect(all == [[], ["retried 3 s too soon"], ["retry of #2 after 31 s"]])
        let items = try await stage.ask("GET", "/_larder/journal").json["items"]?.array ?? []
        let verdict = items[1]["verdicts"]?.array?.first
        #expect(verdict?["entry"] == .integer(1))
        #expect(verdict?["rule"] == .string("retriedTooSoon"))
        #expect(verdict?["wastedBytes"] == items[1]["bytesSent"])
        occurrence.count = 1
        try stage.world.set(
            Fault(id: "again", .respond(rejection), when: FaultMatch("GET", "/v1/me"), occurrence: occurrence)
        )
        for _ in 0..<2 { _ = try await stage.ask("GET", "/v1/me") }
        let last = try await stage.ask("GET", "/_larder/journal").json["items"]?.array?.last?["verdicts"]?.array?.first
        #expect(last?["rule"] == .string("retriedTooSoon"))
        // The reply that came too soon was necessary.
        #expect(last?["wastedBytes"] == nil)
    }

    @Test func `of two equal requests in flight the later one is the duplicate, whichever ends first`() async throws {
        for releasesFirst in [0, 1] {
            let stage = try Stage()
            try stage.world.set(Gate(id: "g", when: FaultMatch("GET", profile), stage: .request, count: 2))
            var clients: [RawClient] = []
            for count in 1...2 {
                clients.append(try stage.send("GET", profile))
                #expect(await stage.world.wait(for: .held(count), limit: .seconds(3_600)))
            }
            let held = stage.world.held
            for index in [releasesFirst, 1 - releasesFirst] {
                stage.world.release(held[index])
                _ = try await clients[index].reply()
            }
            let all = await verdicts(stage)
            let (first, second) = releasesFirst == 0 ? (0, 1) : (1, 0)
            #expect(all[second].contains("duplicate of #\(first + 1), which was in flight"), "\(all)")
            #expect(!all[first].contains { $0.hasPrefix("duplicate") }, "\(all)")
            #expect(await stage.world.conduct.findings.count { $0.rule == .duplicateInFlight } == 1)
            await stage.backend.stop()
        }
    }

    @Test func `verdicts are in the archive, and a cleared journal forgets what was held`() async throws {
        let stage = try Stage()
        for _ in 0..<2 { _ = try await stage.ask("GET", profile) }
        let har = try JSONParser.parse(await stage.world.har)
        let entry = har.value(at: "/log/entries/1")
        #expect(entry?["comment"]?.string?.contains("was fresh for 300 s more") ?? false)
        #expect(entry?.value(at: "/_verdicts/0/text") == .string("was fresh for 300 s more"))
        stage.world.clearJournal()
        _ = try await stage.ask("GET", profile)
        #expect(await verdicts(stage) == [["nothing was held"]])
    }

    @Test func `a small ring keeps the verdicts of its entries and no others`() async throws {
        let stage = try Stage { $0.journalCapacity = 4 }
        for _ in 0..<6 { _ = try await stage.ask("GET", profile) }
        // What was dropped before anybody asked is not known.
        #expect(await verdicts(stage)[0] == ["nothing was held"])
        for _ in 0..<30 {
            _ = try await stage.ask("GET", profile)
            #expect(await verdicts(stage).last?.contains("was fresh for 300 s more") ?? false)
        }
        let all = await stage.world.journal()
        #expect(all.map(\.number) == [33, 34, 35, 36])
        #expect(all.allSatisfy { $0.verdicts.contains("was fresh for 300 s more") })
    }

    @Test func `durations are short`() {
        let texts = [0, 0.0004, 0.04, 0.3, 1, 9.94, 9.96, 41, 61.6].map { ExchangeVerdict.seconds(.seconds($0)) }
        #expect(texts == ["0 s", "1 ms", "40 ms", "0.3 s", "1 s", "9.9 s", "10 s", "41 s", "62 s"])
    }

    @Test func `what the journal has dropped is not held against a client`() async throws {
        let stage = try Stage { $0.journalCapacity = 4 }
        for number in 2...6 {
            _ = try await stage.ask("GET", "/v1/profiles/user_\(number)")
            #expect(await verdicts(stage).last == ["nothing was held"])
        }
        _ = try await stage.ask("GET", profile)
        #expect(await verdicts(stage).last == ["nothing was held"])
        // The oldest entry that the journal has is still compared with.
        _ = try await stage.ask("GET", "/v1/profiles/user_5")
        #expect(await verdicts(stage).last?.first?.hasPrefix("was fresh for") ?? false)
    }

    @Test func `the memory of the judge is bounded by the capacity of the journal`() async throws {
        let stage = try Stage()
        for number in 1...60 { _ = try await stage.ask("GET", "/v1/profiles/user_\(number)") }
        var judge = ExchangeJudge(capacity: 10)
        for entry in stage.world.world.control.journal.entries {
            _ = judge.judge(entry)
            // Three values of each entry, of twice as many as are kept, and one of the client.
            #expect(judge.memoryCount <= 3 * 2 * 10 + 1, "after \(entry.number)")
        }
        #expect(judge.memoryCount >= 10)
    }

    @Test func `a clock that follows the system again goes on from the time that it had`() async throws {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let stage = try Stage { $0.use(clock) }
        var rejection = CannedReply(status: 503)
        rejection.retryAfter = .seconds(30)
        var once = Fault.Occurrence()
        once.count = 1
        try stage.world.set(Fault(.respond(rejection), when: FaultMatch("GET", profile), occurrence: once))
        stage.world.clock.advance(by: .seconds(3_600))
        #expect(try await stage.ask("GET", profile).status == 503)
        stage.world.clock.followSystem()
        clock.advance(by: .seconds(60))
        #expect(try await stage.ask("GET", profile).status == 200)
        #expect(await verdicts(stage).last == ["retry of #1 after 60 s"])
        #expect(await stage.world.conduct.findings.isEmpty)
        // The last activity is now.
        #expect(stage.world.world.control.journal.lastActivity == stage.world.clock.uptime)
    }

    @Test(arguments: [
        (FaultAction.truncate(.byte(1 << 30)), nil as Fault.Stage?, 1), (.malformedChunk, nil, 1), (.reset, .end, 0),
    ])
    func `a reply that lacks its last byte or cannot be parsed was lost, and one that is cut behind it was not`(
        _ action: FaultAction,
        _ at: Fault.Stage?,
        _ count: Int
    ) async throws {
        let stage = try Stage()
        var once = Fault.Occurrence()
        once.count = 1
        let posts = FaultMatch("POST", "/v1/posts")
        let fault = at.map { Fault(action, when: posts, occurrence: once, stage: $0) }
        try stage.world.set(fault ?? Fault(action, when: posts, occurrence: once))
        _ = await (try stage.send("POST", "/v1/posts", #"{"text":"one"}"#)).readToEnd()
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"one"}"#).status == 201)
        let findings = await stage.world.conduct.findings
        #expect(findings.count == count && findings.allSatisfy { $0.rule == .keyMissing }, "\(findings)")
    }
}
