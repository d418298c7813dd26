import Foundation
import Testing

@testable import LarderCommand

@Suite("What is known between runs")
struct StateDirectoryTests {
    @Test func `a damaged note of who logged in is told of, and the next login replaces it`() throws {
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
}
