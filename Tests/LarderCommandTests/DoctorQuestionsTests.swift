import Foundation
import Glibc
import LarderEvents
import LarderTelemetry
import LarderTime
import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: the doctor's five questions", .oneMinute)
struct DoctorQuestionsTests {
    private let directory = try? ScratchDirectory()
    private let clock = ManualClock()

    private func path() throws -> String { try #require(directory).path + "/flight" }

    /// Writes events in one life of a recorder, a second after each other.
    private func record(_ version: String, _ kinds: [TelemetryEvent.Kind]) throws {
        let recorder = try FlightRecorder(path: try path(), capacity: 256)
        let telemetry = Telemetry(recorder: recorder, wall: clock, monotonic: clock)
        telemetry.setLabels(session: "s", appVersion: version)
        for kind in kinds {
            clock.advance(by: .seconds(1))
            telemetry.record(kind)
        }
    }

    private func answers() throws -> [String: String] {
        let history = RunHistory(paths: [try path()])
        #expect(history.problems.isEmpty)
        let answers = DoctorQuestions(history).answers
        #expect(
            answers.map(\.name)
                == ["first screen", "image memory", "failures by version", "memory warnings", "prefetch before a kill"]
        )
        return Dictionary(uniqueKeysWithValues: answers.map { ($0.name, $0.text) })
    }

    private static func request(_ status: Int?, _ failure: String? = nil) -> TelemetryEvent.Kind {
        .request(feature: "feed", status: status, failure: failure, duration: .milliseconds(5), bytesReceived: 10)
    }

    @Test func `each answer states the figures of the records`() throws {
        try record(
            "1.9",
            [
                .note(name: "began", detail: "app"),
                .firstContent(feature: "feed", from: .disk, after: .milliseconds(8)),
                .firstContent(feature: "feed", from: .memory, after: .milliseconds(1)),
                .firstContent(feature: "bank", from: .network, after: .milliseconds(200)),
                .tierHit(.memory, feature: "images"), .tierHit(.memory, feature: "images"),
                .tierMiss(.memory, feature: "images"), .tierMiss(.disk, feature: "images"),
                .tierMiss(.memory, feature: "images.prefetch"),
                .image(.delivered, duration: .milliseconds(30)),
                Self.request(200), Self.request(503), .note(name: "ended"),
            ]
        )
        try record(
            "1.10",
            [
                .note(name: "began", detail: "app"), Self.request(nil, "timedOut"), Self.request(nil, "timedOut"),
                Self.request(404), .image(.delivered, duration: .milliseconds(30)), .image(.failed, duration: .zero),
                .note(name: "imageFailed", detail: "damaged"), .image(.failed, duration: .zero),
                .note(name: "imageFailed", detail: "rejected"),
                .memoryWarning(.warning, cost: 9 << 20, requests: 2, loads: 7),
                .memoryWarning(.critical, cost: 3 << 20, requests: 5, loads: 1), .note(name: "ended"),
            ]
        )
        let answers = try answers()
        #expect(
            answers["first screen"] == "2 of 3 first contents (67 %) needed no server: memory 1 (p50 1 ms), disk 1 "
                + "(p50 8 ms), network 1 (p50 200 ms)."
        )
        #expect(
            answers["image memory"]
                == "Memory had 2 of 3 wanted pictures (67 %). The others took p50 30 ms from disk or network."
        )
        #expect(
            answers["failures by version"] == "1.9: 1 of 2 requests failed (50 %), 1 503; 0 of 1 pictures failed "
                + "(0 %). 1.10: 2 of 3 requests failed (67 %), 2 timedOut; 2 of 3 pictures failed (67 %), 1 damaged, 1 rejected."
        )
        #expect(
            answers["memory warnings"] == "2 warnings. At the last one 3.0 MB were in caches, 5 requests in flight and "
                + "1 load of pictures waiting or running; the most were 9.0 MB, 5 and 7."
        )
        #expect(answers["prefetch before a kill"] == "No recorded run was interrupted.")
    }

    @Test func `without records each answer says so`() throws {
        try record("", [Self.request(200), .note(name: "ended")])
        let answers = try answers()
        #expect(answers["first screen"] == "No first content was recorded.")
        #expect(answers["image memory"] == "No wanted picture was recorded.")
        #expect(answers["failures by version"]?.hasPrefix("No request of a known version") == true)
        #expect(answers["memory warnings"] == "No memory warning was recorded.")
    }

    @Test
    func `after a kill -9 the prefetching and decoding of the last minute is told, with version and memory level`()
        async throws
    {
        let path = try path()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let clock = ManualClock()
            let recorder = try FlightRecorder(path: path, capacity: 256)
            let telemetry = Telemetry(recorder: recorder, wall: clock, monotonic: clock)
            telemetry.setLabels(session: "s", appVersion: "2.0")
            telemetry.record(.note(name: "began", detail: "app"))
            // Too early to count.
            telemetry.record(.tierMiss(.disk, feature: "images.prefetch"))
            clock.advance(by: .seconds(61))
            for _ in 0..<40 { telemetry.record(.tierMiss(.disk, feature: "images.prefetch")) }
            for _ in 0..<12 {
                telemetry.record(.image(.download, duration: .seconds(1), bytes: 1 << 18, isPrefetch: true))
            }
            telemetry.record(.tierMiss(.disk, feature: "images"))
            telemetry.record(.image(.download, duration: .seconds(1), bytes: 999_000))
            for _ in 0..<3 { telemetry.record(.image(.decode, duration: .milliseconds(40), bytes: 1 << 20)) }
            telemetry.record(.memoryLevel(.critical, from: .normal, cause: "stalls"))
            kill(getpid(), SIGKILL)
        }
        #expect(
            try answers()["prefetch before a kill"]
                == "In the last minute before the end of the interrupted run ('app', "
                + "version 2.0) 40 prefetches of pictures began, 12 ended with 3.0 MB, beside 1 wanted download. 3 "
                + "decodes made 3.0 MB of pixels in 120 ms. The memory level was critical."
        )
    }
}
