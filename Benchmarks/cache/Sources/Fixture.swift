import Larder
import Synchronization

/// What the feed of an application shows.
struct Post: CacheEntity {
    static let entityType = "post"

    var id: String
    var author: String
    var text: String
    var likes: Int
    var isLiked: Bool
}

func post(_ number: Int) -> Post {
    Post(
        id: "post_\(number)",
        author: "user_\(number % 300)",
        text: "The \(number)th of many things that somebody wished to say to everyone who follows them.",
        likes: number % 97,
        isLiked: false
    )
}

/// The number of requests to the source.
let requests = Atomic<Int>(0)

func single(_ id: String) -> Resource<Post> {
    .entity(id, freshness: .reference) { _ in
        requests.wrappingAdd(1, ordering: .relaxed)
        return .value(post(1), validator: "\"1\"")
    }
}

func feed(_ name: String, from first: Int, count: Int = 50) -> Resource<EntityList<Post>> {
    .list(name, ["limit": "\(count)"], freshness: .reference) { _ in
        requests.wrappingAdd(1, ordering: .relaxed)
        return .value(EntityList((first..<(first + count)).map(post)), validator: "\"1\"")
    }
}
