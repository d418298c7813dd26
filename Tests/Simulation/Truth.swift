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

    /// Whether the server has carried out a tap of a person with this key, and would replay its result. A tap that it has rejected has used up
    /// its key too.
    func hasCarriedOutTap(_ key: String, as handle: String) -> Bool {
        do { return try world.hasSucceeded("POST /v1/likes", key: key, as: handle) } catch {
            find(.crash, "the keys of \(handle) cannot be read: \(error)")
            return false
        }
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
