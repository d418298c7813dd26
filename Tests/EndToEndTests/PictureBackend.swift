import Foundation
import LarderServer

extension MockBackend {
    /// Where the pictures are that the server comes with.
    static let pictures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Fixtures").standardized.path

    /// A backend with a few people, and real pictures in their posts.
    static func startWithPictures(people: Int, posts: Int) throws -> MockBackend {
        var numbers = WorldNumbers()
        numbers.people = people
        numbers.posts = posts
        numbers.conversations = 2
        numbers.messages = 10
        numbers.transfers = 10
        var configuration = Configuration()
        configuration.seed = 1
        return try start(.generated(numbers, picturesFrom: pictures), configuration)
    }
}
