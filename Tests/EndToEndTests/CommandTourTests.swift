import LarderCoding
import TestSupport
import Testing

@Suite("larder tour, end to end", .oneMinute)
struct CommandTourTests {
    @Test func `chapters are measured without a server, as JSON`() async throws {
        let scene = CommandScene()
        let run = try await scene.run(["tour", "reads", "paging", "tiers", "--json"], on: "http://127.0.0.1:9")
        #expect(run.code == 0, "\(run)")
        let chapters = try #require(try run.json["chapters"]?.array)
        #expect(chapters.map { $0["name"]?.string } == ["reads", "paging", "tiers"])

        let reads = try #require(chapters[0]["tables"]?[0]?["rows"]?.array)
        let origins = ["network", "memory", "memory", "memory", "disk", "network", "network", "memory"]
        #expect(reads.map { $0[2]?.string } == origins)
        #expect(reads.map { $0[4]?.string?.prefix(3) } == ["200", "no ", "no ", "no ", "no ", "304", "200", "2 ×"])
        // The lifetime drains while a person looks, and the server is asked when nothing is left.
        let left = reads.map { row in row[1]?.integer.map { $0 / 1_000_000_000 } }
        #expect(left == [300, 300, 210, 60, 60, 300, 300, 0], "\(left)")
        #expect(reads.last?[3]?.string == "stale (expired)")

        let paging = try #require(chapters[1]["tables"]?[0]?["rows"]?.array)
        let (position, cursor) = (try #require(paging.first), try #require(paging.last))
        #expect((position[1]?.integer ?? 0) > 0 && (position[2]?.integer ?? 0) > 0, "\(position)")
        #expect(cursor[1]?.integer == 0 && cursor[2]?.integer == 0, "\(cursor)")

        let tiers = try #require(chapters[2]["tables"]?[0]?["rows"]?.array)
        #expect(tiers.map { $0[0]?.string } == ["memory", "disk", "server on this machine", "server over 3g"])
        for row in tiers {
            let times = (1...3).map { row[$0]?.integer ?? 0 }
            #expect(times[0] > 0 && times[1] <= times[2], "\(row)")
        }
        // Measured with a child process that was killed.
        let killed = try #require(chapters[2]["tables"]?[1]?["rows"]?.array)
        #expect(killed.map { $0[0]?.string } == ["article", "code", "unsent like"])
        #expect(killed.map { $0[2]?.string } == ["yes", "no", "yes"], "\(killed)")
    }
}
