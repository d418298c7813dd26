import Foundation
import Larder
import LarderDemo
import LarderServer

extension MockBackend {
    /// The directory of the fixture images.
    static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Fixtures").standardized.path

    /// Starts a backend with few users and real images in their posts.
    static func startWithImages(people: Int, posts: Int) throws -> MockBackend {
        var numbers = WorldSize()
        numbers.people = people
        numbers.posts = posts
        numbers.conversations = 2
        numbers.messages = 10
        numbers.transfers = 10
        var configuration = Configuration()
        configuration.seed = 1
        return try start(.generated(numbers, picturesFrom: fixtures), configuration)
    }
}
