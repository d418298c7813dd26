import LarderCoding
import LarderSQLite
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Chunks of the feed", .oneMinute)
struct FeedChunkTests {
    private func faults(_ world: World) throws -> [Int64] {
        try world.read { try FeedChunkTable.faults(in: $0.database) }
    }

    private func chunkCount(_ world: World) throws -> Int64 {
        try world.read { try $0.database.integer("SELECT count(*) FROM feed_chunks") }
    }

    private func page(_ store: Store, limit: Int = 50, viewer: Int64 = 1) throws -> (json: [UInt8], digest: [UInt8]) {
        var json: [UInt8] = []
        let page = try store.posts.appendPage(
            .newest,
            author: nil,
            viewer: viewer,
            limit: limit,
            wantsAuthors: false,
            to: &json
        )
        return (json, page.digest)
    }

    @Test func `whatever is written, the chunks say what the posts say`() async throws {
        let seed: UInt64 = 0x5EED_C401
        var random = SeededGenerator(seed: seed)
        let scene = try Scene()
        let world = scene.backend.plane.worlds.main
        #expect(try faults(world) == [])
        for step in 0..<400 {
            let row = Int64.random(in: 1...(60 + Int64(step) / 8), using: &random)
            let text = String(repeating: "é", count: Int.random(in: 1..<1_500, using: &random))
            _ = try world.write { store, commit in
                switch Int.random(in: 0..<8, using: &random) {
                case 0: _ = try FeedEndpoints.add(text: text, image: nil, author: 1, to: store, &commit)
                case 1: try store.posts.delete(row)
                case 2:
                    guard var post = try store.posts.find(row) else { return }
                    post.members["text"] = .string(text)
                    post.version += 1
                    post.updated = commit.now
                    try store.posts.replace(post)
                default:
                    _ = try LikeEndpoints.apply(Bool.random(using: &random), post: row, user: 1, in: store, &commit)
                }
            }
            #expect(try faults(world) == [], "seed \(seed), step \(step)")
        }
        // A chunk goes with the last of its posts.
        try world.write { store, _ in for row in 16..<32 as Range<Int64> { try store.posts.delete(row) } }
        #expect(try faults(world) == [])
        #expect(try world.read { try $0.database.integer("SELECT count(*) FROM feed_chunks WHERE id = 1") } == 0)
        await scene.backend.stop()
    }

    @Test func `a page out of chunks is to the byte the page out of the posts themselves`() async throws {
        let scene = try Scene()
        let world = scene.backend.plane.worlds.main
        for (limit, viewer) in [(1, 0), (16, 1), (17, 2), (20, 1), (60, 1), (100, 3)] as [(Int, Int64)] {
            let chunks = try world.read { try page($0, limit: limit, viewer: viewer) }
            // Within a transaction the posts themselves are read.
            let rows = try world.write { store, _ in
                let (json, digest) = try page(store, limit: limit, viewer: viewer)
                return [json, digest]
            }
            #expect(chunks.json == rows[0] && chunks.digest == rows[1])
        }
        await scene.backend.stop()
    }

    @Test func `a page of the past is the page of then, and so is what its tag is made from`() async throws {
        let scene = try Scene()
        let world = scene.backend.plane.worlds.main
        // The past is remembered for as long as a fault may ask for it.
        try scene.backend.main.set(Fault(.lag(FaultAction.Lag(commits: 1)), when: FaultMatch("GET", "/nowhere")))
        let before = try world.read { try page($0) }
        try world.write { store, commit in
            _ = try LikeEndpoints.apply(true, post: 58, user: 1, in: store, &commit)
            _ = try LikeEndpoints.apply(false, post: 58, user: 2, in: store, &commit)
            _ = try FeedEndpoints.add(text: "new", image: nil, author: 1, to: store, &commit)
            try store.posts.delete(57)
        }
        let after = try world.read { try page($0) }
        let past = try world.readPast(upTo: .commits(1)) { store in
            let (json, digest) = try page(store)
            return [json, digest]
        }
        #expect(after.json != before.json)
        #expect(past == [before.json, before.digest])
        #expect(try world.read { try page($0) } == after)
        await scene.backend.stop()
    }

    @Test func `a database of the first schema gets its chunks when it is opened`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.path + "/db"
        do {
            let database = try Database(.file(path))
            let steps = Array(WorldSchema.steps.prefix(1))
            try Migrations(applicationID: WorldSchema.applicationID, steps).run(on: database)
            try database.execute("INSERT INTO meta (name, value) VALUES ('instance', 5)")
            try database.execute(
                """
                INSERT INTO profiles VALUES (1, 'ana', '{"id":"user_1"', 1, 0);
                WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 3 FROM n WHERE id < 120)
                INSERT INTO posts SELECT id, 1, '{"id":"post_' || id || '"', id % 12, 1 + id, 1780000000000 + id FROM n
                """
            )
        }
        let scene = try Scene { $0.databasePath = path }
        let world = scene.backend.plane.worlds.main
        #expect(try faults(world) == [])
        #expect(try chunkCount(world) == 8)
        let reply = try await scene.ask("GET", "/v1/feed?limit=2", as: nil)
        #expect(
            String(decoding: reply.body, as: UTF8.self).hasPrefix(
                """
                {"items":[{"id":"post_121","likeCount":1,"likedByMe":false,"version":122,"updatedAt":"2026-05-28T20:26:40.121Z"},\
                {"id":"post_118","likeCount":10,"likedByMe":false,"version":119,"updatedAt":"2026-05-28T20:26:40.118Z"}],
                """
            )
        )
        #expect(try await scene.ask("PUT", "/v1/posts/post_118/like", as: nil).status == 401)
        await scene.backend.stop()
    }

    @Test func `a damaged chunk is an error that says so, for whom it serves and for whom it is checked`() async throws
    {
        let directory = try ScratchDirectory()
        let path = directory.path + "/db"
        let scene = try Scene { $0.databasePath = path }
        let world = scene.backend.plane.worlds.main
        try world.write { store, _ in
            try store.database.execute("UPDATE feed_chunks SET posts = substr(posts, 1, 700) WHERE id = 2")
        }
        #expect(try await scene.ask("GET", "/v1/feed?limit=5", as: nil).status == 200)
        #expect(try await scene.ask("GET", "/v1/feed?limit=40", as: nil).problem == "storage-unavailable")
        #expect(try faults(world) == [2])
        await scene.backend.stop()
        let report = try DatabaseCheck.run(path)
        #expect(
            !report.isSound && report.lines.contains { $0.hasPrefix("feed: ") && $0.contains("post_32 to post_47") }
        )
    }

    @Test func `bytes that are no chunk are refused, whichever of them are wrong`() {
        let seed: UInt64 = 0x5EED_C402
        var random = SeededGenerator(seed: seed)
        var chunk = FeedChunk()
        for row in 32..<48 as Range<Int64> {
            let json = Array("{\"id\":\"post_\(row)\",\"likedByMe\":false},".utf8)
            chunk.put(FeedChunk.Post(row: row, author: row % 5, json: json[...], likeOffset: json.count - 7))
        }
        let bytes = chunk.bytes
        #expect(FeedChunk(bytes)?.bytes == bytes)
        #expect(FeedChunk(bytes)?.posts.map(\.row) == Array((32..<48).reversed()))
        for length in 0..<bytes.count { #expect(FeedChunkLayout(Array(bytes[..<length]).span) == nil) }
        for _ in 0..<5_000 {
            var other = bytes
            for _ in 0..<Int.random(in: 1..<4, using: &random) {
                other[Int.random(in: 0..<660, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let layout = FeedChunkLayout(other.span) else { continue }
            // What is taken for a chunk can be read to its last byte.
            #expect((0..<layout.count).allSatisfy { layout.textEnd($0, in: other.span) <= other.count }, "seed \(seed)")
            #expect(FeedChunk(other)?.bytes == other, "seed \(seed)")
        }
    }
}
