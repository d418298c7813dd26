import Foundation
import LarderCoding
import LarderHTTP
import LarderTime

@testable import LarderBackend
@testable import LarderServer

/// Reads one object of a settings document; nil if it has an error.
private func settings<Value>(_ object: JSONObject, _ read: (BodyReader) -> Value?) -> Value? {
    let reader = BodyReader(object)
    let value = read(reader)
    do { try reader.check() } catch { return nil }
    return value
}

/// Documents of the control plane: faults, scripts, change-feed faults, gates, scripted actions, filters, expectations, drift.
func fuzzControl(_ bytes: [UInt8]) throws {
    _ = try? FaultScript(json: bytes)
    guard case .object(let object)? = try? JSONParser.parse(bytes) else { return }
    if var fault = settings(object, { Fault.read($0) }) {
        // A fault without a name gets one before it is shown.
        if fault.id.isEmpty { fault.id = "f" }
        guard let again = settings(fault.json.object ?? JSONObject(), { Fault.read($0) }) else {
            fail("A fault's own document is rejected: \(text(fault.json.encoded))")
        }
        requireEqual(again.json, fault.json, "A fault changes.")
        var generator = SeededGenerator(seed: 1)
        if let latency = fault.action.effect as? Latency {
            for delay in [latency.connect, latency.firstByte, latency.body] { _ = delay?.draw(&generator, ordinal: 1) }
        }
        _ = Matcher(fault.match).names(.get, Array("/v1/feed".utf8)[...])
    }
    _ = settings(object) { ScriptedAction.read($0)?.json }
    _ = settings(object) { Gate.read($0).json }
    _ = settings(object) { Expectation.read($0) }
    _ = settings(object) { JournalFilter.read($0) }
    if let drift = settings(object, { SchemaDrift.read($0) }) {
        _ = drift.json
        _ = drift.apply(.object(object))
    }
    for member in object.members {
        _ = JSONValue.object(object).value(at: "/" + JSONPointer.escape(member.name) + "/0/a")
    }
    _ = Secrets.masked(body: bytes)
}

/// Recordings.
func fuzzRecording(_ bytes: [UInt8]) {
    _ = try? RecordedReplies(bytes, readsWorldPaths: true)
}

private let fixtureDirectory: String = {
    let path = "/dev/shm/larder-fuzz-\(getpid())"
    do { try FileManager.default.createDirectory(atPath: path + "/images", withIntermediateDirectories: true) } catch {
        fail("\(path) cannot be made: \(error)")
    }
    return path
}()

/// A directory of fixtures: the input is its files, each after a line with `== ` and its name.
func fuzzFixtures(_ bytes: [UInt8]) throws {
    let names = [
        "world", "people", "posts", "accounts", "transfers", "conversations", "messages", "tasks", "images",
    ]
    var contents = Dictionary(uniqueKeysWithValues: names.map { ($0, [UInt8]()) })
    var name = "world"
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
        if line.starts(with: "== ".utf8) {
            name = String(decoding: line.dropFirst(3), as: UTF8.self)
        } else {
            contents[name]? += line + [UInt8(ascii: "\n")]
        }
    }
    for (name, bytes) in contents {
        try Data(bytes).write(to: URL(filePath: "\(fixtureDirectory)/\(name).json"))
    }
    _ = try? FixtureReader.read(fixtureDirectory)
}
