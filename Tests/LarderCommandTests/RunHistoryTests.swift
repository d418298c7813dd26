import Foundation
import LarderCoding
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderCommand
@testable import LarderEvents

@Suite("Command: run history", .oneMinute)
struct RunHistoryTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        .path

    private static let kinds: [TelemetryEvent.Kind] = [
        .tierHit(.disk, feature: "feed", bytes: 7), .tierMiss(.memory, feature: "feed"),
        .eviction(.memory, reason: "cost", count: 3, bytes: 4_096), .merged(feature: "profile"),
        .revalidated(feature: "feed", bytesSaved: 900), .retry(feature: "like", attempt: 2, delay: .milliseconds(250)),
        .outbox(.enqueued, depth: 4), .sync(feature: "changes", applied: 5, remaining: 6),
        .sync(feature: "changes", applied: 5, remaining: nil), .image(.decode, duration: .microseconds(77), bytes: 12),
        .image(.download, duration: .microseconds(7), bytes: 12, isPrefetch: true),
        .memoryWarning(.critical, cost: 5, requests: 3, loads: 2),
        .memoryReaction(.warning, loadsCancelled: 2, bytesFreed: 9),
        .memoryLevel(.critical, from: .normal, cause: "stalls"), .networkLevel(.offline, from: .good, cause: "lost"),
        .gateRejected(feature: "accounts", reason: "notValidated"),
        .request(feature: "feed", status: 304, duration: .milliseconds(3), bytesReceived: 0, bytesSent: 9),
        .request(feature: "feed", status: nil, failure: "reset", duration: .zero, bytesReceived: 1, bytesSent: 0),
        .firstContent(feature: "feed", from: .network, after: .milliseconds(8)),
        .storeRecovered(store: "disk", kept: 2, isOutboxWhole: true), .note(name: "began", detail: "feed 'x' \"y\""),
    ]

    @Test(arguments: kinds)
    func `a recorded event is decoded unchanged`(kind: TelemetryEvent.Kind) throws {
        let event = TelemetryEvent(
            sequence: 1,
            uptime: MonotonicTime(nanoseconds: 0),
            wall: WallTime(seconds: 0),
            kind: kind
        )
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let recorder = try FlightRecorder(path: directory + "/events", capacity: 16)
        recorder.record(event)
        #expect(TelemetryEvent.Kind(try #require(try recorder.records().first)) == kind)
    }

    @Test(arguments: ["{}", #"{"kind":"later"}"#, #"{"kind":"tierHit","tier":"tape"}"#, "[1]", #"{"kind":7}"#])
    func `events of other versions are skipped`(text: String) throws {
        #expect(TelemetryEvent.Kind(recorded: try JSONParser.parse(Array(text.utf8))) == nil)
    }

    @Test func `a request that does not fit its record is not counted as a failed one`() throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let recorder = try FlightRecorder(path: directory + "/events", capacity: 16)
        let telemetry = Telemetry(recorder: recorder)
        telemetry.setLabels(session: UUID().uuidString, appVersion: "2026.11.28-build.12345+abcdefghi")
        for bytes in [5_123, .max] {
            telemetry.record(
                .request(
                    feature: "feed",
                    status: 200,
                    duration: .nanoseconds(12_345_678),
                    bytesReceived: bytes,
                    bytesDecoded: bytes
                )
            )
        }
        let totals = RunHistory(paths: [recorder.path]).totals
        let version = try #require(totals.versions.first?.value)
        #expect(version.requests == 1 && version.requestsFailed == 0 && totals.failures.isEmpty)
    }

    @Test func `runs are separated and their totals added`() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for words in ["feed", "profile"] {
            let recorder = RunRecorder(words, in: directory)
            recorder.telemetry.record(.tierHit(.disk, feature: words))
            recorder.end(words == "feed" ? nil : Failure("It went wrong."))
        }
        let history = RunHistory(directory: directory)
        #expect(history.runs.map { $0.command } == ["feed", "profile"])
        guard case .finished(_, "") = history.runs[0].end, case .finished(_, "It went wrong.") = history.runs[1].end
        else {
            Issue.record("\(history.runs.map { $0.end })")
            return
        }
        #expect(history.totals.features["feed"]?.reads[.disk]?.hits == 1 && history.totals.events == 6)
    }

    @Test func `concurrent runs have their own files, and a run beyond the maximum is not recorded`() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let recorders = (1...RunRecorder.filesMaximum).map { RunRecorder("feed \($0)", in: directory) }
        #expect(recorders.allSatisfy { $0.failure == nil })
        let last = RunRecorder("feed", in: directory)
        #expect(last.failure?.contains("not recorded") == true)
        last.end()
        var history = RunHistory(directory: directory)
        #expect(history.runs.count == RunRecorder.filesMaximum && history.ended.isEmpty)
        for recorder in recorders.dropLast() { recorder.end() }
        history = withExtendedLifetime(recorders) { RunHistory(directory: directory) }
        #expect(history.ended.count == RunRecorder.filesMaximum - 1 && history.interrupted.isEmpty)
    }

    @Test func `a run without an end record counts as interrupted`() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        do { RunRecorder("like", in: directory).telemetry.record(.merged(feature: "feed")) }
        let history = RunHistory(directory: directory)
        #expect(history.interrupted.map { $0.command } == ["like"] && history.ended.count == 1)
        try RunHistory.erase(directory: directory)
        #expect(!FileManager.default.fileExists(atPath: directory))
        #expect(RunHistory(directory: directory).runs.isEmpty)
        try RunHistory.erase(directory: directory)
    }
}
