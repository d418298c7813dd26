import Foundation
import LarderTelemetry
import LarderTime
import TestSupport
import Testing

@testable import LarderEvents

@Suite("Telemetry totals", .oneMinute)
struct TelemetryTotalsTests {
    private func totals(_ kinds: [TelemetryEvent.Kind]) -> TelemetryTotals {
        kinds.reduce(into: TelemetryTotals()) { $0.add($1) }
    }

    private static let everything: [TelemetryEvent.Kind] = [
        .tierHit(.memory, feature: "feed", bytes: 100), .tierHit(.disk, feature: "feed", bytes: 50),
        .tierMiss(.memory, feature: "feed"), .eviction(.memory, reason: "cost", count: 3, bytes: 30),
        .merged(feature: "feed"), .revalidated(feature: "feed", bytesSaved: 900),
        .retry(feature: "bank", attempt: 2, delay: .seconds(1)), .outbox(.enqueued, depth: 4), .outbox(.sent, depth: 3),
        .sync(feature: "changes", applied: 20, remaining: 5), .image(.decode, duration: .milliseconds(3)),
        .memoryLevel(.warning, from: .normal, cause: "test"),
        .memoryReaction(.warning, loadsCancelled: 2, bytesFreed: 1_000),
        .memoryWarning(.warning, cost: 2_000, requests: 3, loads: 4),
        .networkLevel(.offline, from: .good, cause: "test"), .gateRejected(feature: "bank", reason: "stale"),
        .request(feature: "feed", status: 200, duration: .milliseconds(120), bytesReceived: 700, bytesSent: 10),
        .request(feature: "feed", status: nil, failure: "timedOut", duration: .seconds(30), bytesReceived: 0),
        .firstContent(feature: "feed", from: .disk, after: .milliseconds(9)),
        .storeRecovered(store: "disk", kept: 9, isOutboxWhole: true), .flagChanged(key: "x"),
        .note(name: "n", detail: "d"),
    ]

    @Test func `every kind of event is counted in its place`() {
        let totals = totals(Self.everything)
        let feed = totals.features["feed"]
        #expect(totals.events == 22 && feed?.reads[.memory]?.hitRate == 0.5 && feed?.reads[.disk]?.hits == 1)
        #expect(feed?.reads[.memory]?.bytes == 100 && feed?.reads[.disk]?.bytes == 50 && feed?.bytesReceived == 700)
        #expect(totals.evictions[.memory]?["cost"]?.count == 3 && totals.evictions[.memory]?["cost"]?.bytes == 30)
        #expect(feed?.merged == 1 && feed?.bytesSaved == 900 && totals.features["bank"]?.retries == 1)
        #expect(totals.outboxDepth == 3 && totals.outbox == [.enqueued: 1, .sent: 1])
        #expect(totals.features["changes"]?.changesRemaining == 5 && totals.images[.decode]?.count == 1)
        #expect(totals.memoryLevel == .warning && totals.memoryFreed == 1_000 && totals.loadsCancelled == 2)
        #expect(totals.networkLevel == .offline && totals.features["bank"]?.gatesRejected == 1)
        #expect(feed?.requests.count == 2 && feed?.requestsFailed == 1 && totals.statuses == ["2xx": 1])
        #expect(totals.failures == ["timedOut": 1] && feed?.firstContent.maximum == .milliseconds(9))
        #expect(totals.storesRecovered == 1 && totals.all.bytesSent == 10)
    }

    @Test func `figures of any size are added without a crash`() {
        let most = Int.max
        let totals = totals(
            ["a", "b"].flatMap { feature -> [TelemetryEvent.Kind] in
                [
                    .tierHit(.memory, feature: feature, bytes: most), .revalidated(feature: feature, bytesSaved: most),
                    .sync(feature: feature, applied: most, remaining: most),
                    .request(
                        feature: feature,
                        status: 200,
                        duration: .zero,
                        bytesReceived: .min,
                        bytesSent: most,
                        bytesDecoded: most
                    ),
                ]
            }
        )
        #expect(totals.all.requests.count == 2)
    }

    @Test func `first contents are counted by tier, and prefetched pictures apart`() {
        let totals = totals([
            .firstContent(feature: "feed", from: .disk, after: .milliseconds(9)),
            .firstContent(feature: "feed", from: .network, after: .milliseconds(90)),
            .firstContent(feature: "bank", from: .memory, after: .milliseconds(1)),
            .image(.download, duration: .seconds(1)), .image(.download, duration: .seconds(2), isPrefetch: true),
        ])
        #expect(totals.features["feed"]?.firstContentByTier[.disk]?.maximum == .milliseconds(9))
        #expect(totals.features["feed"]?.firstContentHitRate == 0.5)
        #expect(totals.all.firstContent.count == 3 && totals.features["feed"]?.firstContent.count == 2)
        #expect(abs((totals.all.firstContentHitRate ?? 0) - 2.0 / 3) < 0.001)
        #expect(totals.images[.download]?.maximum == .seconds(1))
        #expect(totals.prefetchedImages[.download]?.maximum == .seconds(2))
        #expect(totals.json.contains(#""firstContentByTier":{"disk":{"count":1"#))
    }

    @Test func `failures are counted by version, within the bound on names`() {
        var totals = TelemetryTotals()
        let failed = TelemetryEvent.Kind.request(
            feature: "f",
            status: nil,
            failure: "timedOut",
            duration: .zero,
            bytesReceived: 0
        )
        totals.add(failed)
        #expect(totals.versions.isEmpty)
        for number in 0..<1_000 {
            totals.add(failed, TelemetryEvent.Labels(session: "a", appVersion: "1.\(number)"))
        }
        totals.add(
            .request(feature: "f", status: 404, duration: .zero, bytesReceived: 0),
            TelemetryEvent.Labels(session: "b\"", appVersion: "1.0")
        )
        #expect(totals.versions.count == TelemetryTotals.namesMaximum)
        #expect(totals.versions["1.0"]?.requests == 2 && totals.versions["1.0"]?.failures == ["timedOut": 1])
        let labels = TelemetryEvent.Labels(session: "b", appVersion: "1.0")
        for stage in [TelemetryEvent.ImageStage.delivered, .failed, .decode, .cancelled] {
            totals.add(.image(stage, duration: .zero, isPrefetch: stage == .delivered), labels)
        }
        totals.add(.note(name: "imageFailed", detail: "damaged"), labels)
        #expect(
            totals.json.contains(
                #""1.0":{"failures":{"timedOut":1},"imageFailures":{"damaged":1},"images":1,"imagesFailed":1,"#
                    + #""requests":2,"requestsFailed":1}"#
            )
        )
    }

    @Test func `memory warnings keep the last figures and the maximum of each`() {
        let totals = totals([
            .memoryWarning(.warning, cost: 900, requests: 1, loads: 8),
            .memoryWarning(.critical, cost: 100, requests: 4, loads: 2),
        ])
        let warnings = totals.memoryWarnings
        #expect(warnings.count == 2 && warnings.last.cost == 100 && warnings.last.requests == 4)
        #expect(warnings.maximum.cost == 900 && warnings.maximum.requests == 4 && warnings.maximum.loads == 8)
    }

    @Test func `identifiers used as names cannot fill memory`() {
        var totals = TelemetryTotals()
        for number in 0..<10_000 {
            totals.add(.tierMiss(.memory, feature: "post_\(number)"))
            totals.add(.eviction(.disk, reason: "r\(number)"))
            let failure = "f\(number)"
            totals.add(
                .request(feature: "x", status: nil, failure: failure, duration: .zero, bytesReceived: 0)
            )
        }
        totals.add(.merged(feature: String(repeating: "é", count: 1_000_000)))
        #expect(totals.features.count <= TelemetryTotals.namesMaximum)
        #expect(totals.features.keys.allSatisfy { $0.utf8.count <= 64 })
        #expect(totals.evictions[.disk]?.count ?? 0 <= TelemetryTotals.namesMaximum)
        #expect(totals.failures.count <= TelemetryTotals.namesMaximum)
        #expect(totals.all.reads[.memory]?.misses == 10_000)
        #expect(totals.features[TelemetryTotals.other] != nil)
    }

    @Test func `the JSON is valid for all names, and equal for equal totals`() throws {
        var totals = totals(Self.everything)
        totals.add(.merged(feature: "a\"\\\n\u{0}\u{1F600}"))
        let object = try JSONSerialization.jsonObject(with: Data(totals.json.utf8)) as? [String: Any]
        let features = object?["features"] as? [String: Any]
        #expect(features?["a\"\\\n\u{0}\u{1F600}"] != nil)
        let requests = (features?["feed"] as? [String: Any])?["requests"] as? [String: Any]
        #expect(requests?["maximum"] as? Int == 30_000_000_000)
        #expect(totals.json == self.totals(Self.everything + [.merged(feature: "a\"\\\n\u{0}\u{1F600}")]).json)
    }
}
