import Larder

extension TourScene {
    private enum Stored: String, CaseIterable {
        case fresh, stale, missing
    }

    /// What each read policy shows, observed and not typed.
    func policies() async throws -> TourChapter {
        let policies: [(String, ReadPolicy)] = [
            ("cacheFirst", .cacheFirst), ("staleWhileRevalidate", .staleWhileRevalidate),
            ("networkFirst", .networkFirst(timeout: nil)), ("cacheAndLoad", .cacheAndLoad), ("cacheOnly", .cacheOnly),
            ("networkOnly", .networkOnly),
        ]
        var rows: [[TourValue]] = []
        for isOnline in [true, false] {
            for (name, policy) in policies {
                var row: [TourValue] = [.text(name), .text(isOnline ? "yes" : "no")]
                for stored in Stored.allCases { row.append(.text(try await observe(policy, stored, isOnline))) }
                rows.append(row)
            }
        }
        return TourChapter(
            name: .policies,
            question:
                "A read policy says what a read shows from the store and whether it asks the server. Each policy is run on a fresh, a stale "
                + "and a missing value, with a server and without.",
            tables: [
                TourTable(
                    title:
                        "What an observer was shown (old: what was stored, new: from the server; *: stale; !: with an error)",
                    columns: ["policy", "server"] + Stored.allCases.map(\.rawValue),
                    rows: rows
                )
            ],
            answer:
                "staleWhileRevalidate and cacheAndLoad show what is stored and then what is new; networkFirst waits for the server and falls "
                + "back; only networkOnly shows nothing of what is stored."
        )
    }

    /// The values that an observer gets, `old* → new`.
    private func observe(_ policy: ReadPolicy, _ stored: Stored, _ isOnline: Bool) async throws -> String {
        let clock = ManualClock()
        var configuration = CacheConfiguration()
        configuration.wallClock = clock
        configuration.monotonicClock = clock
        let cache = try LarderCache(configuration)
        defer { cache.close() }
        // The answer waits until the observer has seen what comes before it: observers get only the newest snapshot.
        let (seen, sees) = AsyncStream.makeStream(of: Void.self)
        let resource = Resource<String>("value", freshness: .timeToLive(.seconds(60))) { _ in
            for await _ in seen { break }
            guard isOnline else { throw LarderError(.offline, "The server cannot be reached.") }
            return .value("new")
        }
        if stored != .missing { try await cache.put("old", for: resource) }
        if stored == .stale { clock.advance(by: .seconds(120)) }
        var shown: [String] = []
        for await snapshot in cache.snapshots(resource, policy) {
            let isLast = !snapshot.isFetching
            sees.finish()
            if snapshot.value != nil || isLast {
                let mark = snapshot.freshness.isFresh || snapshot.value == nil ? "" : "*"
                let text = (snapshot.value ?? "nothing") + mark + (snapshot.refreshError == nil ? "" : "!")
                if shown.last != text { shown.append(text) }
            }
            if isLast { break }
        }
        return shown.joined(separator: " → ")
    }
}
