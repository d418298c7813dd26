import Foundation
import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: state directory", .oneMinute)
struct StateDirectoryTests {
    @Test func `a damaged users.json is reported, and the next login replaces it`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let state = try StateDirectory(path, environment: [:])
        #expect(state.user(on: "http://a") == nil && state.problem == nil)
        try state.remember("ben", on: "http://a")
        #expect(state.user(on: "http://a") == "ben" && state.problem == nil)
        try Data("{\"http://a\":".utf8).write(to: URL(fileURLWithPath: path + "/users.json"))
        #expect(state.user(on: "http://a") == nil)
        #expect(state.problem?.contains("users.json is damaged") == true)
        try state.remember("chidi", on: "http://a")
        #expect(state.user(on: "http://a") == "chidi" && state.problem == nil)
    }

    @Test func `the directory is its owner's, and one that cannot be written is named`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try StateDirectory(path, environment: [:]).remember("ben", on: "http://a")
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
        let inside = try StateDirectory(path + "/users.json", environment: [:])
        let error = #expect(throws: Failure.self) { try inside.remember("ben", on: "http://a") }
        #expect(error?.message.contains("cannot be written") == true)
    }
}
