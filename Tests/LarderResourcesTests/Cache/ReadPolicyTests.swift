import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

/// The table at `ReadPolicy`, row by row, for observers and for one-shot reads.
@Suite("Read policies", .oneMinute)
struct ReadPolicyTests {
    enum Stored: String, CaseIterable, Sendable { case nothing, fresh, stale }
    enum Network: String, CaseIterable, Sendable { case answers, confirms, fails }

    struct Case: Sendable, CustomStringConvertible {
        var name: String
        var policy: ReadPolicy
        var stored: Stored
        var network: Network
        var expected: [String]
        var description: String { "\(name), \(stored) stored, network \(network)" }
    }

    static let names: [(String, ReadPolicy)] = [
        ("cacheFirst", .cacheFirst), ("staleWhileRevalidate", .staleWhileRevalidate),
        ("networkFirst", .networkFirst(timeout: nil)), ("cacheAndLoad", .cacheAndLoad), ("cacheOnly", .cacheOnly),
        ("networkOnly", .networkOnly),
    ]

    /// The expected snapshots, written from the table and not computed by a cache.
    static func expected(_ name: String, _ stored: Stored, _ network: Network) -> [String] {
        let failed = stored == .nothing || name == "networkOnly" ? "– missing !fetchFailed" : ""
        let end =
            switch network {
            case .answers: "new fresh network"
            case .confirms: stored == .nothing ? "– missing !unexpectedReply" : "old fresh network"
            case .fails: failed
            }
        let old = stored == .fresh ? "old fresh disk" : "old stale(expired) disk"
        let oldLater = old.replacing("disk", with: "memory") + " !fetchFailed"
        switch name {
        case "cacheOnly": return stored == .nothing ? ["– missing"] : [old]
        case "cacheFirst" where stored == .fresh, "staleWhileRevalidate" where stored == .fresh: return [old]
        case "staleWhileRevalidate" where stored == .stale, "cacheAndLoad" where stored != .nothing:
            return ["\(old) …", end.isEmpty ? oldLater : end]
        default: return ["– missing …", end.isEmpty ? oldLater : end]
        }
    }

    static var cases: [Case] {
        names.flatMap { name, policy in
            Stored.allCases.flatMap { stored in
                Network.allCases.map { network in
                    Case(
                        name: name,
                        policy: policy,
                        stored: stored,
                        network: network,
                        expected: expected(name, stored, network)
                    )
                }
            }
        }
    }

    private func prepare(_ stored: Stored, _ scene: CacheScene) async throws {
        guard stored != .nothing else { return }
        let source = ScriptedSource<String>()
        source.prepare(.value("old", validator: "1"))
        let cache = try scene.cache()
        _ = try await cache.value(resource(source))
        cache.close()
        if stored == .stale { scene.clock.advance(by: .seconds(100)) }
    }

    private func resource(_ source: ScriptedSource<String>) -> Resource<String> {
        Resource("word", ["n": "1"], freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    @Test(arguments: cases)
    func `an observer sees exactly the documented snapshots`(_ row: Case) async throws {
        let scene = CacheScene()
        try await prepare(row.stored, scene)
        let source = ScriptedSource<String>()
        let cache = try scene.cache()
        let seen = SequenceRecorder(cache.snapshots(resource(source), row.policy))
        await seen.wait(for: 1)
        if row.expected.count > 1 {
            await source.waitForRequests(1)
            switch row.network {
            case .answers: source.answer(0, .value("new", validator: "2"))
            case .confirms: source.answer(0, .notModified())
            case .fails: source.fail(0, Broken())
            }
        }
        await seen.wait(for: row.expected.count)
        cache.close()
        await seen.waitForEnd()
        #expect(seen.elements.map { $0.line { $0 } } == row.expected)
        #expect(source.requests.count == (row.expected.count > 1 ? 1 : 0))
        // A value that can be confirmed is requested with its validator under each policy.
        if row.expected.count > 1 { #expect(source.requests[0].validator == (row.stored == .nothing ? nil : "1")) }
    }

    @Test(arguments: cases)
    func `a one-shot read returns the first snapshot with a value that its policy allows`(
        _ row: Case
    ) async throws {
        let scene = CacheScene()
        try await prepare(row.stored, scene)
        let source = ScriptedSource<String>()
        switch row.network {
        case .answers: source.prepare(.value("new", validator: "2"))
        case .confirms: source.prepare(.notModified())
        case .fails: source.prepare(failure: Broken())
        }
        let cache = try scene.cache()
        let first = row.expected.first { !$0.hasPrefix("–") }
        do {
            let snapshot = try await cache.snapshot(resource(source), row.policy)
            // The error names the failed request only if the read waited for it.
            let line = snapshot.line { $0 }.replacing(" !fetchFailed", with: "")
            #expect(line == first?.replacing(" !fetchFailed", with: ""))
        } catch {
            #expect(first == nil, "\(error)")
            let code =
                row.policy.remote == .never ? "notCached" : row.network == .fails ? "fetchFailed" : "unexpectedReply"
            #expect(error.code.rawValue == code)
        }
    }

    @Test func `network-first falls back after its timeout, and still delivers the late answer`() async throws {
        let scene = CacheScene()
        try await prepare(.stale, scene)
        let source = ScriptedSource<String>()
        let cache = try scene.cache()
        let seen = SequenceRecorder(cache.snapshots(resource(source), .networkFirst(timeout: .seconds(3))))
        await source.waitForRequests(1)
        await seen.wait(for: 1)
        // One sleeper is the time limit of the fetch, the other the fallback delay.
        try await scene.clock.waitForSleepers(2)
        scene.clock.advance(by: .seconds(3))
        await seen.wait(for: 2)
        source.answer(0, .value("late"))
        await seen.wait(for: 3)
        #expect(
            seen.elements.map { $0.line { $0 } } == [
                "– missing …", "old stale(expired) memory …", "late fresh network",
            ]
        )
    }

    @Test func `a one-shot network-first read falls back, and its late answer is stored for the next`() async throws {
        let scene = CacheScene()
        try await prepare(.stale, scene)
        let source = ScriptedSource<String>()
        let cache = try scene.cache()
        let resource = resource(source)
        async let first = cache.snapshot(resource, .networkFirst(timeout: .seconds(3)))
        await source.waitForRequests(1)
        try await scene.clock.waitForSleepers(2)
        scene.clock.advance(by: .seconds(3))
        let fallback = try await first
        #expect(fallback.value == "old" && fallback.refreshError?.code == .timedOut && fallback.isFetching == true)
        #expect(source.cancelled == 0)
        let seen = SequenceRecorder(cache.snapshots(resource, .cacheOnly))
        await seen.wait(for: 1)
        source.answer(0, .value("late"))
        await seen.wait { $0.last?.value == "late" }
        #expect(try await cache.value(resource) == "late" && source.requests.count == 1)
    }
}
