import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderHTTPCache
@testable import LarderTransport

@Suite("HTTP cache: properties", .oneMinute)
struct HTTPCachePropertyTests {
    /// Makes up requests, responses and times.
    private struct Maker {
        var random: SeededGenerator
        let base: Int64 = 1_790_000_000

        init(_ seed: UInt64) { random = SeededGenerator(seed: seed) }

        mutating func pick<Element>(_ choices: [Element]) -> Element { choices[random.uniform(in: 0..<choices.count)] }

        mutating func number() -> String {
            pick(["0", "1", "10", "60", "3600", "99999999999999999999", "-1", "x", "1.5", "", "\"60\"", " 5"])
        }

        mutating func directives(_ names: [String]) -> String {
            (0..<random.uniform(in: 0..<4)).map { _ in
                let name = pick(names)
                return random.uniform(in: 0..<3) == 0 ? name : "\(name)=\(number())"
            }.joined(separator: pick([",", ", ", " , ,"]))
        }

        mutating func date() -> String {
            let offset = Int64(pick([-400_000_000, -86_400, -600, -1, 0, 1, 600, 86_400]))
            return pick([HTTPDate.format(WallTime(seconds: base + offset)), "0", "soon"])
        }

        mutating func response() -> Fields {
            var fields = Fields()
            if random.uniform(in: 0..<4) > 0 {
                let names = [
                    "max-age", "no-cache", "no-store", "must-revalidate", "public", "private", "immutable", "s-maxage",
                    "stale-while-revalidate", "stale-if-error", "must-understand", "no-cache=\"X-A\"",
                ]
                fields.add(.cacheControl, directives(names))
            }
            for (name, chance) in [(FieldName.date, 2), (.expires, 4), (.lastModified, 3)]
            where random.uniform(in: 0..<chance) == 0 { fields.add(name, date()) }
            if random.uniform(in: 0..<3) == 0 { fields.add(.age, number()) }
            if random.uniform(in: 0..<2) == 0 { fields.add(.etag, pick(["\"1\"", "W/\"1\"", "1", "\"2\""])) }
            if random.uniform(in: 0..<4) == 0 { fields.add(.vary, pick(["X-A", "*", "Accept-Encoding, X-A", "a b"])) }
            if random.uniform(in: 0..<4) == 0 { fields.add(.setCookie, "a=1") }
            if random.uniform(in: 0..<4) == 0 { fields.add(.connection, "X-B, close") }
            if random.uniform(in: 0..<4) == 0 { fields.add(.custom("X-B"), "ä\"\\\u{1F600}\t") }
            return fields
        }

        mutating func request() -> Fields {
            var fields = Fields()
            if random.uniform(in: 0..<2) == 0 {
                let names = [
                    "max-age", "max-stale", "min-fresh", "no-cache", "no-store", "only-if-cached", "stale-if-error",
                ]
                fields.add(.cacheControl, directives(names))
            }
            if random.uniform(in: 0..<4) == 0 { fields.add(.custom("X-A"), pick(["1", "2", ""])) }
            if random.uniform(in: 0..<6) == 0 { fields.add(.authorization, pick(["a", "b"])) }
            if random.uniform(in: 0..<8) == 0 { fields.add(.ifNoneMatch, pick(["\"1\"", "*", "x"])) }
            return fields
        }

        mutating func times() -> (requested: WallTime, received: WallTime) {
            let requested = WallTime(seconds: base + Int64(random.uniform(in: -10..<10)))
            return (requested, requested + .seconds(Int64(random.uniform(in: -5..<50))))
        }
    }

    private func entry(_ maker: inout Maker) -> (
        entry: HTTPCacheEntry, response: TransportResponse, sent: TransportRequest
    )? {
        let sent = TransportRequest(url: "http://origin.test/a", fields: maker.request())
        let status = maker.pick([200, 200, 200, 203, 301, 302, 404, 206, 299, 500])
        let response = TransportResponse(status: Status(code: status), fields: maker.response(), body: [1, 2, 3])
        let times = maker.times()
        let decision = HTTPCacheStorageDecision.decide(
            request: sent,
            response: response,
            requestedAt: times.requested,
            receivedAt: times.received
        )
        return decision.entry.map { ($0, response, sent) }
    }

    @Test(arguments: seeds(1))
    func `nothing stale is served as fresh, by an independent model`(seed: UInt64) {
        var maker = Maker(seed)
        var served = 0
        var seen: Set<String> = []
        for round in 0..<20_000 {
            guard let (entry, _, _) = entry(&maker) else { continue }
            let requestDirectives = maker.request()
            let now = entry.receivedAt + .seconds(maker.pick([-100, -1, 0, 1, 9, 59, 60, 61, 3_600, 99_999_999]))
            let isOffline = maker.random.uniform(in: 0..<8) == 0
            let decision = HTTPCacheDecision.decide(
                method: maker.pick([.get, .head]),
                fields: requestDirectives,
                entries: [entry],
                now: now,
                isOffline: isOffline
            )
            let context = Comment(rawValue: "seed \(seed), round \(round): \(decision.explanation)")
            #expect(decision.explanation.hasSuffix("."), context)
            let terms = CacheControl(response: entry.fields)
            let asks = CacheControl(request: requestDirectives)
            let (age, lifetime) = Self.opinion(entry, now)
            switch decision.action {
            case .serve:
                served += 1
                seen.insert("serve")
                #expect(now >= entry.receivedAt && age < lifetime, context)
                #expect(terms.noCache != .all && asks.noCache == .none, context)
                if let limit = asks.maxAge, !terms.isImmutable { #expect(age <= Double(limit), context) }
                if let rest = asks.minFresh { #expect(lifetime - age >= Double(rest), context) }
            case .serveStale(let reason):
                seen.insert("\(reason)")
                #expect(terms.noCache != .all && (!terms.mustRevalidate || age < lifetime), context)
                if reason == .offline { #expect(isOffline, context) } else { #expect(asks.maxStale != nil, context) }
            case .serveWhileRevalidating:
                seen.insert("meanwhile")
                #expect(now >= entry.receivedAt && !terms.mustRevalidate && terms.noCache != .all, context)
                #expect(age - lifetime <= Double(terms.staleWhileRevalidate ?? -1), context)
            case .validate(let conditions):
                seen.insert("validate")
                #expect(conditions.count > 0 && entry.hasValidator && !asks.onlyIfCached && !isOffline, context)
            case .forward:
                seen.insert("forward")
                #expect(!asks.onlyIfCached && !isOffline, context)
            case .gatewayTimeout: #expect(asks.onlyIfCached, context)
            case .unreachable: #expect(isOffline, context)
            }
            // Another account's response is never given out.
            if [.serve, .serveWhileRevalidating].contains(decision.action) {
                #expect(entry.selectors.allSatisfy { $0.matches(requestDirectives) }, context)
            }
        }
        #expect(served > 100 && seen.count >= 6, "seed \(seed): \(served) served, \(seen)")
    }

    /// Age and lifetime once more, in plain seconds.
    private static func opinion(_ entry: HTTPCacheEntry, _ now: WallTime) -> (age: Double, lifetime: Double) {
        func seconds(_ time: WallTime) -> Double { Double(time.nanosecondsSinceEpoch) / 1e9 }
        func date(_ name: FieldName) -> Double? {
            entry.fields[name].flatMap { HTTPDate.parse($0, now: entry.receivedAt) }.map(seconds)
        }
        let (received, requested) = (seconds(entry.receivedAt), seconds(entry.requestedAt))
        let sent = date(.date) ?? received
        let field = entry.fields[.age].map { $0.trimmingPrefix(" ") }.flatMap { text in
            !text.isEmpty && text.allSatisfy(\.isNumber) ? min(Double(text) ?? 0, 2_147_483_648) : nil
        }
        let age = max(max(0, received - sent), (field ?? 0) + max(0, received - requested)) + seconds(now) - received
        if let seconds = CacheControl(response: entry.fields).maxAge { return (age, Double(seconds)) }
        if entry.fields[.expires] != nil { return (age, date(.expires).map { max(0, $0 - sent) } ?? 0) }
        let isGuessed = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(entry.status.code)
        guard isGuessed || CacheControl(response: entry.fields).isPublic, let modified = date(.lastModified) else {
            return (age, 0)
        }
        return (age, min(86_400, max(0, ((sent - modified) / 10).rounded(.down))))
    }

    @Test func `what is stored is what may be, and comes back from its bytes as it was`() {
        let seed: UInt64 = 0x5EED_0044
        var maker = Maker(seed)
        var stored = 0
        for round in 0..<10_000 {
            guard let (entry, response, sent) = entry(&maker) else { continue }
            stored += 1
            let context = Comment(rawValue: "seed \(seed), round \(round)")
            let terms = CacheControl(response: response.fields)
            #expect(!terms.noStore || terms.mustUnderstand, context)
            #expect(!CacheControl(request: sent.fields).noStore, context)
            #expect(response.status != .partialContent && Vary(response.fields) != .any, context)
            #expect(!entry.fields.contains(.connection), context)
            #expect(entry.fields[.setCookie] == response.fields[.setCookie], context)
            if response.fields.contains(.connection) { #expect(!entry.fields.contains(.custom("X-B")), context) }
            #expect(entry.fields[.date].flatMap { HTTPDate.parse($0, now: entry.receivedAt) } != nil, context)
            #expect(entry.selectors.allSatisfy { $0.matches(sent.fields) }, context)
            #expect(HTTPCacheEntry.decode(HTTPCacheEntry.encode([entry, entry])) == [entry, entry], context)
        }
        #expect(stored > 2_000)
    }

    @Test func `damaged bytes are rejected, or decoded to entries that are stored and read again as they are`() {
        let seed: UInt64 = 0x5EED_0045
        var maker = Maker(seed)
        var sample: [UInt8] = []
        while sample.isEmpty { sample = entry(&maker).map { HTTPCacheEntry.encode([$0.entry]) } ?? [] }
        var (accepted, rejected) = (0, 0)
        for round in 0..<5_000 {
            var bytes = sample
            for _ in 0..<maker.random.uniform(in: 1..<4) {
                let place = maker.random.uniform(in: 0..<bytes.count)
                bytes[place] = UInt8(truncatingIfNeeded: maker.random.next())
            }
            for damaged in [bytes, Array(bytes.prefix(maker.random.uniform(in: 0..<bytes.count)))] {
                guard let entries = HTTPCacheEntry.decode(damaged) else {
                    rejected += 1
                    continue
                }
                accepted += 1
                let again = HTTPCacheEntry.decode(HTTPCacheEntry.encode(entries))
                #expect(again == entries, "seed \(seed), round \(round)")
            }
        }
        #expect(accepted > 0 && rejected > 0, "accepted \(accepted), rejected \(rejected)")
    }

    @Test(arguments: seeds(1))
    func `after a change the earlier response is never served as fresh`(seed: UInt64)
        async throws
    {
        var random = SeededGenerator(seed: seed)
        let stage = CacheStage(Origin())
        var version = 0
        var (hits, revalidations) = (0, 0)
        var mayFail = false
        for round in 0..<1_000 {
            let path = random.uniform(in: 0..<2)
            let url = "http://origin.test/\(path)"
            let terms = [
                "max-age=60", "max-age=1, stale-while-revalidate=60", "no-cache", "max-age=5, stale-if-error=600",
                "no-store", "",
            ][random.uniform(in: 0..<6)]
            mayFail = random.uniform(in: 0..<6) == 0
            let now = HTTPDate.format(stage.clock.now)
            let (content, fails) = ("version-\(version)", mayFail)
            stage.origin.answer { request, _ throws(TransportError) in
                if fails, request.method == .get { throw TransportError(.unreachable, "down") }
                let fields: Fields = [.cacheControl: terms, .etag: "\"\(content)\"", .date: now]
                if request.fields[.ifNoneMatch]?.contains("\"\(content)\"") ?? false {
                    return reply(fields, "", status: 304)
                }
                return reply(fields, request.method == .get ? content : "")
            }
            switch random.uniform(in: 0..<10) {
            case 0:
                // The content changes with a change through the cache, at both URLs: one is named by Location.
                version += 1
                stage.origin.answer { _, _ in reply([.location: "/\(1 - path)"], "", status: 204) }
                _ = try await stage.get(url: url, method: .post)
            case 1: stage.clock.advance(by: .seconds(Int64(random.uniform(in: 0..<100))))
            case 2: stage.clock.set(wall: stage.clock.now + .seconds(Int64(random.uniform(in: -5_000..<5_000))))
            default:
                let wish = ["", "max-stale", "no-cache", "max-age=3", "min-fresh=2", "only-if-cached"][
                    random.uniform(in: 0..<6)
                ]
                do {
                    let response = try await stage.get(wish.isEmpty ? Fields() : [.cacheControl: wish], url: url)
                    await stage.cache.finishBackgroundWork()
                    if response.source == .hit { hits += 1 }
                    if response.source == .revalidated { revalidations += 1 }
                    if response.status == .ok {
                        #expect(response.text == content, "seed \(seed), round \(round): \(response.explanation)")
                    }
                } catch { #expect(fails, "seed \(seed), round \(round)") }
            }
        }
        #expect(hits > 20 && revalidations > 20, "\(hits), \(revalidations)")
    }
}
