import Foundation
import Larder
import Measuring

/// An entity with an index, and the same without.
private struct Indexed: CacheEntity {
    static let entityType = "indexed"
    static let indices: [Index] = [
        Index("author", \.author), Index("likes", \.likes), .text(\.text),
    ]
    var id: String
    var author: String
    var text: String
    var likes: Int
}

/// Measures local queries over 10,000 entities: filtered, sorted and limited.
func measureQueries(_ directory: String) async throws {
    let count = 10_000
    do {
        let larder = try LarderCache(directory: directory)
        // Built before: otherwise the first query does it.
        _ = try await larder.entities(Indexed.self).values()
        for start in stride(from: 0, to: count, by: 1_000) {
            try await larder.update { update in
                for number in start..<(start + 1_000) {
                    let plain = post(number)
                    update.put(plain)
                    update.put(Indexed(id: plain.id, author: plain.author, text: plain.text, likes: plain.likes))
                }
            }
        }
        larder.close()
    }
    var configuration = CacheConfiguration(.directory(directory))
    configuration.memoryEntriesMaximum = 4 * count
    let larder = try LarderCache(configuration)
    let indexed = larder.entities(Indexed.self).where(\.author, .equal("user_7"))
        .sorted(by: \.likes, descending: true).limit(50)
    let first = larder.entities(Indexed.self).where(\.likes, .atLeast(10)).sorted(by: \.likes).limit(50)
    let found = larder.entities(Indexed.self).matching("7th thing").limit(50)
    let plain = larder.entities(Post.self).where(\.likes, .atLeast(10)).sorted(by: \.likes).limit(50)
    try await show("33 of 10,000 by an index, from the disk at first", indexed, goal: "2 ms")
    try await show("the first 50 of 9,000 by the index of the order", first, goal: "2 ms")
    try await show("50 of 10,000 by words", found)
    let clock = ContinuousClock()
    let start = clock.now
    _ = try await plain.values()
    say("10,000 without an index, read and decoded once: \(clock.now - start)")
    try await show("10,000 without an index, decoded in memory", plain, goal: "20 ms")
    larder.close()
}

private func show<Entity>(_ name: String, _ query: EntityQuery<Entity>, goal: String = "–") async throws {
    let clock = ContinuousClock()
    var samples = Samples()
    for _ in 0..<31 {
        let start = clock.now
        _ = try await query.values()
        samples.add(clock.now - start, operations: 1)
    }
    samples.show("local query: \(name)", goal: goal)
}

/// The entity of an earlier version of the app, which declares no indices.
private struct Before: CacheEntity {
    static let entityType = Indexed.entityType
    var id: String
    var author: String
    var text: String
    var likes: Int
}

private struct Star: Codable, Sendable {
    var post: String

    static let operation = WriteBehind<Star, Void>(
        "star",
        scope: { $0.post },
        changes: { star, local in local.modify(Indexed.self, star.post) { $0.likes += 1 } },
        send: { stars in stars.map { _ in .accepted(()) } }
    )
}

/// Measures the first query of 100,000 stored entities after an app has declared indices, and what waits for it.
func measureIndexing(_ directory: String) async throws {
    let count = 100_000
    do {
        let larder = try LarderCache(directory: directory)
        for start in stride(from: 0, to: count, by: 1_000) {
            try await larder.update { update in
                for number in start..<(start + 1_000) {
                    let plain = post(number)
                    update.put(Before(id: plain.id, author: plain.author, text: plain.text, likes: plain.likes))
                }
            }
        }
        larder.close()
    }
    var configuration = CacheConfiguration(.directory(directory))
    configuration.operations = [Star.operation]
    let larder = try LarderCache(configuration)
    let clock = ContinuousClock()
    let start = clock.now
    let query = Task {
        let found = try await larder.entities(Indexed.self).where(\.author, .equal("user_7")).count()
        return (found, clock.now - start)
    }
    let watching = Task {
        var (taps, updates, reads) = (Duration.zero, Duration.zero, Duration.zero)
        var number = 0
        while !Task.isCancelled {
            number += 1
            var begun = clock.now
            try larder.enqueue(Star(post: "post_\(number % count)"), Star.operation)
            taps = max(taps, clock.now - begun)
            begun = clock.now
            try await larder.update { $0.put(post(number)) }
            updates = max(updates, clock.now - begun)
            begun = clock.now
            _ = try await larder.snapshot(single("post_\(number)"), .cacheOnly)
            reads = max(reads, clock.now - begun)
            await Task.yield()
        }
        return (taps, updates, reads)
    }
    let (found, duration) = try await query.value
    watching.cancel()
    say("the first query of \(count) entities after three indices were declared: \(duration) (\(found) found)")
    let (taps, updates, reads) = try await watching.value
    say("    meanwhile at most: a tap \(taps), an update \(updates), a read \(reads)")
    larder.close()
}
