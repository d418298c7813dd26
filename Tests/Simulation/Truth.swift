import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer

/// The server's state, read without a client.
extension Simulation {
    func list<Item: Codable & Sendable & Hashable>(_ path: String, _ handle: String, of: Item.Type = Item.self)
        -> [Item]
    {
        var items: [Item] = []
        var query = "?limit=100"
        while true {
            let reply = world.perform(ScriptedAction("GET", path + query, as: handle))
            guard reply.status == 200, let page = try? JSONDecoder().decode(Page<Item>.self, from: Data(reply.body))
            else {
                find(.crash, "\(path) as \(handle): \(reply.status)")
                return items
            }
            items += page.items
            guard let next = page.nextCursor else { return items }
            query = "?limit=100&after=\(HTTPSource.escape(next))"
        }
    }

    func feed(as handle: String) -> [(id: String, text: String, author: String, isLiked: Bool)] {
        let posts: [Post] = list("/v1/feed", handle)
        return posts.map { ($0.id, $0.text, self.handle(of: $0.authorID), $0.likedByMe) }
    }

    /// Whether the server has carried out a tap of a person with this key. It then rejects the key for another post, and otherwise reports that
    /// this post does not exist, which uses up no key.
    func hasCarriedOutTap(_ key: String, as handle: String) -> Bool {
        struct Reply: Decodable {
            struct Result: Decodable { let status: Int }
            let results: [Result]
        }
        let item = "{\"postId\":\"post_999999\",\"liked\":true,\"idempotencyKey\":\"\(key)\"}"
        let action = ScriptedAction("POST", "/v1/likes", as: handle, body: "{\"items\":[\(item)]}")
        let reply = world.perform(action)
        guard reply.status == 200, let results = try? JSONDecoder().decode(Reply.self, from: Data(reply.body)).results,
            let status = results.first?.status
        else {
            find(.crash, "a tap with the key \(key) as \(handle): \(reply.status)")
            return false
        }
        return status != 404
    }

    func profile(_ user: String) -> Profile? {
        let reply = world.perform(ScriptedAction("GET", "/v1/profiles/\(user)", as: "ana"))
        return try? JSONDecoder().decode(Profile.self, from: Data(reply.body))
    }

    func handle(of user: String) -> String {
        if let known = handlesByID[user] { return known }
        let handle = profile(user)?.handle ?? ""
        handlesByID[user] = handle
        return handle
    }

    /// An open account of a person, and one of somebody else in its currency.
    func accounts(of handle: String) -> (from: Account, to: Account)? {
        let mine: [Account] = list("/v1/accounts", handle)
        for number in 1...8 {
            let other = self.handle(of: "user_\(number)")
            guard other != handle else { continue }
            let theirs: [Account] = list("/v1/accounts", other)
            for from in mine where from.status == "open" && from.balance.minorUnits > 5_000 {
                let to = theirs.first { $0.status == "open" && $0.balance.currency == from.balance.currency }
                if let to { return (from, to) }
            }
        }
        return nil
    }
}
