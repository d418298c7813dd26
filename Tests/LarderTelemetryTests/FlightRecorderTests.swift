import Foundation
import Glibc
import Larder
import LarderTelemetry
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderEvents

@Suite("Flight recorder", .oneMinute)
struct FlightRecorderTests {
    private let directory = StoreDirectory()
    private let clock = ManualClock()
    private var path: String { directory.path + "/flight" }

    init() throws {
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    }

    private func event(_ number: Int, _ kind: TelemetryEvent.Kind? = nil) -> TelemetryEvent {
        TelemetryEvent(
            sequence: UInt64(number),
            uptime: clock.uptime,
            wall: clock.now,
            kind: kind ?? .note(name: "event \(number)")
        )
    }

    @Test func `the last events are in the file, in order, and no more than it holds`() throws {
        let recorder = try FlightRecorder(path: path, capacity: 16)
        for number in 1...50 { recorder.record(event(number)) }
        let records = try FlightRecorder.records(path: path)
        #expect(records.map(\.sequence) == Array(35...50))
        #expect(records.last?.json == #"{"kind":"note","name":"event 50"}"# && records.last?.name == "note")
        #expect(records.last?.wall == clock.now && recorder.failureCount == 0)
        #expect(directory.bytes("flight").count == 256 + 16 * 256)
        var status = stat()
        #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test func `each record has the session and the version of its event, and long events are truncated for them`()
        throws
    {
        let recorder = try FlightRecorder(path: path, capacity: 16)
        let telemetry = Telemetry(recorder: recorder, wall: clock, monotonic: clock)
        telemetry.record(.note(name: "before"))
        let labels = TelemetryEvent.Labels(session: "5f3a", appVersion: String(repeating: "9", count: 100))
        #expect(labels.appVersion.utf8.count == 24)
        telemetry.setLabels(session: labels.session, appVersion: labels.appVersion)
        telemetry.record(.note(name: "after", detail: String(repeating: "x", count: 500)))
        telemetry.record(
            .request(
                feature: String(repeating: "f", count: 64),
                status: 200,
                duration: .seconds(100_000),
                bytesReceived: 1 << 40,
                bytesSent: 1 << 40,
                bytesDecoded: 1 << 40
            )
        )
        let records = try FlightRecorder.records(path: path)
        #expect(records.map(\.labels) == [.none, labels, labels])
        #expect(records.map(\.name) == ["note", "note", "request"])
        #expect(telemetry.totals.labels == labels && telemetry.labels == labels)
    }

    @Test func `events from before a restart stay readable until they are overwritten`() throws {
        do {
            let recorder = try FlightRecorder(path: path, capacity: 16)
            #expect(recorder.life == 1)
            for number in 1...10 { recorder.record(event(number)) }
        }
        let recorder = try FlightRecorder(path: path, capacity: 16)
        #expect(recorder.life == 2)
        for number in 1...8 { recorder.record(event(number)) }
        let records = try recorder.records()
        #expect(records.map(\.life) == Array(repeating: 1, count: 8) + Array(repeating: 2, count: 8))
        #expect(records.map(\.sequence) == Array(3...10) + Array(1...8))
    }

    @Test func `a file is released with its recorder, even while a child is being forked`() throws {
        var recorder: FlightRecorder? = try FlightRecorder(path: path, capacity: 16)
        let twin = try DescriptorTwin(of: path)
        let error = #expect(throws: FlightRecorderError.self) { try FlightRecorder(path: path, capacity: 16) }
        #expect(error?.code == .busy && recorder != nil)
        recorder = nil
        _ = try FlightRecorder(path: path, capacity: 16)
        withExtendedLifetime(twin) {}
    }

    @Test func `events survive a kill -9`() async throws {
        let path = path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let recorder = try FlightRecorder(path: path, capacity: 64)
            let telemetry = Telemetry(totals: false, recorder: recorder)
            telemetry.record(.note(name: "began"))
            telemetry.record(.memoryLevel(.critical, from: .warning, cause: "the kernel is looking for a victim"))
            kill(getpid(), SIGKILL)
        }
        #expect(try FlightRecorder.records(path: path).map(\.name) == ["note", "memoryLevel"])
    }

    @Test func `torn and overwritten records are skipped and the others are read`() throws {
        for seed in UInt64(1)...60 {
            var generator = SeededGenerator(seed: seed)
            try? FileManager.default.removeItem(atPath: path)
            var written: [UInt64: String] = [:]
            do {
                let recorder = try FlightRecorder(path: path, capacity: 32)
                for number in 1...32 {
                    recorder.record(event(number))
                    written[UInt64(number)] = #"{"kind":"note","name":"event \#(number)"}"#
                }
            }
            // Damage behind the preface.
            for _ in 0..<generator.uniform(in: 1..<6) {
                let offset = generator.uniform(in: 256..<(256 + 32 * 256))
                let count = min(generator.uniform(in: 1..<300), 256 + 32 * 256 - offset)
                let noise = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
                try directory.overwrite("flight", at: offset, with: noise)
            }
            if generator.uniform(in: 0..<3) == 0 {
                try directory.truncate("flight", to: generator.uniform(in: 256..<(256 + 32 * 256)))
            }
            for record in try FlightRecorder.records(path: path) {
                #expect(written[record.sequence] == record.json, "seed \(seed)")
            }
            // And it can be opened and written again.
            let recorder = try FlightRecorder(path: path, capacity: 32)
            recorder.record(event(99))
            #expect(try recorder.records().last?.sequence == 99, "seed \(seed)")
        }
    }

    @Test func `files of another kind are rejected and not changed`() throws {
        let foreign = Array("somebody's diary, and a long one".utf8)
        try Data(foreign).write(to: URL(fileURLWithPath: path))
        #expect(throws: FlightRecorderError.self) { try FlightRecorder(path: path) }
        #expect(throws: FlightRecorderError.self) { try FlightRecorder.records(path: path) }
        #expect(directory.bytes("flight") == foreign)
        for bad in [directory.path, directory.path + "/no/such", ""] {
            #expect(throws: FlightRecorderError.self, "\(bad)") { try FlightRecorder(path: bad) }
        }
    }

    @Test func `two recorders do not write one file`() throws {
        let first = try FlightRecorder(path: path)
        do {
            _ = try FlightRecorder(path: path)
            Issue.record("It was opened twice.")
        } catch {
            #expect(error.code == .busy)
        }
        #expect(first.life == 1)
    }

    @Test func `long texts are cut so that the record fits, and stays JSON`() throws {
        let recorder = try FlightRecorder(path: path, capacity: 16)
        let long = String(repeating: "\u{1}é\u{1F600}", count: 10_000)
        recorder.record(event(1, .note(name: long, detail: long)))
        recorder.record(event(2, .memoryLevel(.warning, from: .normal, cause: long)))
        for record in try recorder.records() {
            #expect(record.json.utf8.count <= 208)
            #expect((try? JSONSerialization.jsonObject(with: Data(record.json.utf8))) != nil, "\(record.json)")
        }
        #expect(try recorder.records().count == 2)
    }

    @Test func `telemetry records events with and without totals`() throws {
        let recorder = try FlightRecorder(path: path, capacity: 16)
        let telemetry = Telemetry(totals: false, recorder: recorder, wall: clock, monotonic: clock)
        telemetry.record(.gateRejected(feature: "bank", reason: "stale"))
        #expect(try recorder.records().map(\.name) == ["gateRejected"] && telemetry.totals.events == 0)
    }
}
