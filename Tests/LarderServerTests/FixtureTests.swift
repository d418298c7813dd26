import Foundation
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

/// Errors of invalid fixtures.
@Suite("Fixtures", .oneMinute)
struct FixtureTests {
    private let directory: ScratchDirectory

    private static let files = [
        "world.json": #"{"name":"t","instant":"2026-05-01T00:00:00Z"}"#,
        "people.json": """
        [{"id":1,"handle":"ana","displayName":"A","bio":"","location":"","avatar":null,"cover":null,
          "joinedAt":"2026-01-01T00:00:00Z"},
         {"id":2,"handle":"ben","displayName":"B","bio":"","location":"","avatar":null,"cover":null,
          "joinedAt":"2026-01-01T00:00:00Z"}]
        """,
        "posts.json": """
        [{"id":1,"author":1,"text":"x","image":null,"createdAt":"2026-02-01T00:00:00Z","editedAt":null,"likedBy":[2]}]
        """,
        "accounts.json": """
        [{"id":1,"owner":null,"name":"m","kind":"mint","currency":"EUR","status":"open","openedAt":"2026-01-01T00:00:00Z"},
         {"id":2,"owner":1,"name":"a","kind":"checking","currency":"EUR","status":"open","openedAt":"2026-01-01T00:00:00Z"}]
        """,
        "transfers.json": """
        [{"id":1,"at":"2026-02-01T00:00:00Z","from":1,"to":2,"minorUnits":5,"note":""}]
        """,
        "conversations.json": """
        [{"id":1,"title":null,"members":[1,2],"createdAt":"2026-02-01T00:00:00Z"}]
        """,
        "messages.json": """
        [{"id":1,"conversation":1,"author":2,"text":"hi","sentAt":"2026-02-02T00:00:00Z","editedAt":null,"deletedAt":null}]
        """,
        "tasks.json": """
        [{"id":1,"creator":1,"title":"t","status":"open","assignee":2,"due":"2026-03-01",
          "createdAt":"2026-02-02T00:00:00Z","updatedAt":"2026-02-02T00:00:00Z"}]
        """,
        "images.json": "[]",
    ]

    private static func image(bytes: Int, width: Int = 8) -> String {
        """
        [{"id":"i","width":8,"height":8,"alt":"","placeholder":"","renditions":
          [{"width":\(width),"height":8,"type":"image/png","file":"i.png","sha256":"00","bytes":\(bytes)}]}]
        """
    }

    init() throws {
        directory = try ScratchDirectory()
        for (name, text) in Self.files { try write(name, text) }
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name))
    }

    private func start() throws -> MockBackend {
        var configuration = MockBackend.Configuration()
        configuration.databasePath = directory.path + "/\(UUID().uuidString).sqlite"
        return try MockBackend.start(.fixtures(directory: directory.path), configuration)
    }

    @Test func `valid fixtures are served`() async throws {
        let backend = try start()
        #expect(try backend.main.ledgerFaults() == [])
        await backend.stop()
    }

    @Test(arguments: [
        ("posts.json", #""author":1"#, #""author":9"#, ["/0/", "author", "9", "people.json"]),
        ("posts.json", #""likedBy":[2]"#, #""likedBy":[2,8]"#, ["/0/", "likedBy", "8", "people.json"]),
        ("posts.json", #""likedBy":[2]"#, #""likedBy":[2,2]"#, ["/0/", "likedBy", "2"]),
        ("posts.json", #""image":null"#, #""image":"img_no""#, ["/0/", "image", "img_no", "images.json"]),
        ("people.json", #""avatar":null"#, #""avatar":"img_no""#, ["/0/", "avatar", "img_no", "images.json"]),
        ("people.json", #""handle":"ben""#, #""handle":"ana""#, ["/1/", "handle", "ana"]),
        ("people.json", #""id":2"#, #""id":1"#, ["/1/", "id", "1"]),
        ("people.json", #""id":2"#, #""id":0"#, ["/1/", "id", "0"]),
        ("accounts.json", #""owner":1"#, #""owner":7"#, ["/1/", "owner", "7", "people.json"]),
        ("transfers.json", #""to":2"#, #""to":5"#, ["/0/", "to", "5", "accounts.json"]),
        (
            "transfers.json", #""minorUnits":5"#, #""minorUnits":9000000000000000000"#,
            ["/0/", "minorUnits", "1000000000000"]
        ),
        ("transfers.json", #""minorUnits":5"#, #""minorUnits":0"#, ["/0/", "minorUnits", "1 to"]),
        ("images.json", "[]", image(bytes: -1), ["/0/", "renditions", "bytes", "0 to"]),
        ("images.json", "[]", image(bytes: 1, width: 0), ["/0/", "renditions", "width", "1 to"]),
        ("conversations.json", "[1,2]", "[1,6]", ["/0/", "members", "6", "people.json"]),
        ("messages.json", #""conversation":1"#, #""conversation":3"#, ["/0/", "conversation", "3"]),
        ("messages.json", #""author":2"#, #""author":4"#, ["/0/", "author", "4", "people.json"]),
        ("tasks.json", #""creator":1"#, #""creator":9"#, ["/0/", "creator", "9", "people.json"]),
        ("tasks.json", #""assignee":2"#, #""assignee":5"#, ["/0/", "assignee", "5", "people.json"]),
        ("tasks.json", #""status":"open""#, #""status":"new""#, ["/0/", "status", "open"]),
        ("tasks.json", "2026-03-01", "2026-03-32", ["/0/", "due", "YYYY-MM-DD"]),
    ])
    func `a dangling reference is reported with its file, line and member`(
        file: String,
        old: String,
        new: String,
        words: [String]
    ) throws {
        let text = try #require(Self.files[file])
        try write(file, text.replacing(old, with: new, maxReplacements: 1))
        let error = #expect(throws: FileError.self) { try start() }
        let description = "\(try #require(error))"
        for word in [file] + words { #expect(description.contains(word), "\(description)") }
        #expect(!description.contains("SQLite") && !description.contains("INSERT"), "\(description)")
    }
}
