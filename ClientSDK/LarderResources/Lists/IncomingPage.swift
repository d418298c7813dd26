import LarderStorage
import LarderTime

/// A fetched page, and the facts that its merge depends on.
struct IncomingPage: Sendable {
    /// The items, without those that are known to be deleted.
    var keys: [EntityKey]
    /// The cursor of the next page; nil for the last page.
    var cursor: String?
    /// The number of items that were asked for.
    var limit: Int
    /// When its request began: its content is not older.
    var times: Freshness.Times
    /// The validator, if the page was requested for a place (`RunList.take`): it belongs to the cursor.
    var validator: String?
    /// The cursor of the page of newer items; nil if the server has stated none.
    var newerCursor: String?
    /// When the page is stored.
    var receivedAt: WallTime

    /// How long an item that was inserted here may be missing on a replica that answers.
    static let replicaLagMaximum = Duration.seconds(60)

    var startedAt: WallTime { times.validatedAt }

    /// What a "not modified" reply to a request with its validator confirms.
    var confirmation: PageFacts.Confirmation? {
        validator.map { PageFacts.Confirmation(validator: $0, limit: limit, digest: PageFacts.digest(keys)) }
    }

    /// Whether its request began before the one that a run came with.
    func isBefore(_ run: RunList.Run) -> Bool { times.asked < run.facts.asked }

    /// Whether its request began before an item was inserted.
    func isBefore(_ insertion: RunList.Insertion) -> Bool {
        startedAt <= WallTime(nanosecondsSinceEpoch: insertion.insertedAt)
    }

    /// Whether an item of a run stays although this page covers its place and does not contain it: it came after the request began, or it was
    /// inserted a short time before, and a replica may not have it yet.
    ///
    /// - Parameter isUnbroken: whether its neighbors are those that it had before.
    func keeps(_ item: RunList.Item, of run: RunList.Run, isUnbroken: Bool) -> Bool {
        guard let insertion = item.insertion else { return isBefore(run) }
        let insertedAt = WallTime(nanosecondsSinceEpoch: insertion.insertedAt)
        // An item of the future was inserted before the clock was set back.
        guard insertedAt <= receivedAt else { return false }
        return isBefore(insertion)
            || !insertion.isPlaced && (insertion.isOwn || isUnbroken) && startedAt - insertedAt < Self.replicaLagMaximum
    }

    /// The items of the page, and those of the covered runs that stay, each behind the item of the page that it followed.
    func items(replacing covered: [RunList.Run]) -> [RunList.Item] {
        let places = Dictionary(keys.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        // By the number of items of the page above them.
        var followers = [[RunList.Item]](repeating: [], count: keys.count + 1)
        var above = 0
        var missing: [(item: RunList.Item, run: RunList.Run)] = []
        func decide(next: Int) {
            let isUnbroken = next == above || above == 0 && next == keys.count
            followers[above] += missing.filter { keeps($0.item, of: $0.run, isUnbroken: isUnbroken) }.map(\.item)
            missing = []
        }
        for run in covered {
            for item in run.items {
                guard let place = places[item.key] else {
                    missing.append((item, run))
                    continue
                }
                // The place of an own item says nothing about its neighbors.
                if item.isOwn { continue }
                decide(next: place)
                above = place + 1
            }
        }
        decide(next: keys.count)
        return followers[0] + zip(keys, followers.dropFirst()).flatMap { [RunList.Item($0)] + $1 }
    }
}
