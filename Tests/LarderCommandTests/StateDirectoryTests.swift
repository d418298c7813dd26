import Foundation
import LarderTesting
import Synchronization
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

    @Test func `a private file is never readable by others, even if a temporary file was left`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/export.json"
        #expect(FileManager.default.createFile(atPath: path + ".part", contents: Data(count: 3)))
        let data = Data(repeating: 7, count: 4 << 20)
        // The leftover file is replaced, with its permissions.
        try PrivateFile.write(data, to: path)
        let isWritten = Mutex(false)
        let open = Mutex<Set<String>>([])
        let watching = Task {
            while !isWritten.withLock({ $0 }) {
                for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                    let attributes = try? FileManager.default.attributesOfItem(atPath: folder + "/" + name)
                    guard let mode = attributes?[.posixPermissions] as? Int, mode & 0o077 != 0 else { continue }
                    open.withLock { _ = $0.insert(name) }
                }
                await Task.yield()
            }
        }
        defer { isWritten.withLock { $0 = true } }
        for _ in 0..<20 {
            try PrivateFile.write(data, to: path)
            await Task.yield()
        }
        isWritten.withLock { $0 = true }
        await watching.value
        #expect(open.withLock { $0 } == [])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == data)
        let rejected = #expect(throws: Failure.self) { try PrivateFile.write(data, to: folder) }
        #expect(rejected?.message.contains("cannot be written") == true)
        #expect(!FileManager.default.fileExists(atPath: folder + ".part"))
    }
}
