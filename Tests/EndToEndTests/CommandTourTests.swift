import Foundation
import LarderCoding
import TestSupport
import Testing

@Suite("larder tour, end to end", .oneMinute)
struct CommandTourTests {
    @Test func `chapters are measured without a server, as JSON and as a page`() async throws {
        let scene = CommandScene()
        try FileManager.default.createDirectory(atPath: scene.directory, withIntermediateDirectories: true)
        let page = scene.directory + "/tour.html"
        let run = try await scene.run(
            ["tour", "death", "reads", "paging", "policies", "tiers", "--json", "--html", page],
            on: "http://127.0.0.1:9"
        )
        #expect(run.code == 0, "\(run)")
        let chapters = try #require(try run.json["chapters"]?.array)
        #expect(chapters.map { $0["name"]?.string } == ["death", "reads", "paging", "policies", "tiers"])

        let death = try #require(chapters[0]["answer"]?.string)
        #expect(death.hasPrefix("The article was left, the code was gone, and 1 unsent like was kept"), "\(death)")

        let reads = try #require(chapters[1]["tables"]?[0]?["rows"]?.array)
        #expect(reads.map { $0[1]?.string } == ["network", "memory", "disk", "network", "network", "memory"])
        #expect(reads.map { $0[3]?.string?.prefix(3) } == ["200", "no ", "no ", "304", "200", "2 ×"])
        #expect(reads.last?[2]?.string == "stale (expired)")

        let paging = try #require(chapters[2]["tables"]?[0]?["rows"]?.array)
        let (position, cursor) = (try #require(paging.first), try #require(paging.last))
        #expect((position[1]?.integer ?? 0) > 0 && (position[2]?.integer ?? 0) > 0, "\(position)")
        #expect(cursor[1]?.integer == 0 && cursor[2]?.integer == 0, "\(cursor)")

        let policies = try #require(chapters[3]["tables"]?[0]?["rows"]?.array)
        let lines = policies.map { row in (row.array ?? []).compactMap(\.string).joined(separator: " | ") }
        #expect(
            lines == [
                "cacheFirst | yes | old | new | new", "staleWhileRevalidate | yes | old | old* → new | new",
                "networkFirst | yes | new | new | new", "cacheAndLoad | yes | old → new | old* → new | new",
                "cacheOnly | yes | old | old* | nothing", "networkOnly | yes | new | new | new",
                "cacheFirst | no | old | old*! | nothing!",
                "staleWhileRevalidate | no | old | old* → old*! | nothing!",
                "networkFirst | no | old! | old*! | nothing!",
                "cacheAndLoad | no | old → old! | old* → old*! | nothing!",
                "cacheOnly | no | old | old* | nothing", "networkOnly | no | nothing! | nothing! | nothing!",
            ]
        )
        let tiers = try #require(chapters[4]["tables"]?[0]?["rows"]?.array)
        #expect(tiers.map { $0[0]?.string } == ["memory", "disk", "server on this machine", "server over 3g"])
        // Measured with a child process that was killed.
        #expect(tiers.map { $0[4]?.string } == ["no", "yes", "–", "–"], "\(tiers)")
        #expect(
            tiers[0][5]?.string == "32.0 MB, read longest ago" && tiers[1][5]?.string == "256.0 MB, read longest ago",
            "\(tiers)"
        )
        for row in tiers {
            let times = (1...3).map { row[$0]?.integer ?? 0 }
            #expect(times[0] > 0 && times[1] <= times[2], "\(row)")
        }
        let html = try String(contentsOfFile: page, encoding: .utf8)
        #expect(html.hasPrefix("<!doctype html>") && html.contains("id=\"policies\""))
    }

    @Test func `a page that cannot be written is one line`() async throws {
        let scene = CommandScene()
        let run = try await scene.run(["tour", "policies", "--html", "/nowhere/tour.html"], on: "http://127.0.0.1:9")
        #expect(run.code == 1 && run.errorLines.count == 1 && run.errors.contains("/nowhere/tour.html"), "\(run)")
        #expect(run.output.split(separator: "\n").allSatisfy { !$0.hasSuffix(" ") }, "\(run.output)")
    }
}
