import Foundation
import LarderServer

/// Serves the fixture images on a free port until the standard input ends.
func serve(_ fixtures: String) throws {
    var numbers = WorldSize()
    numbers.people = 5
    numbers.posts = 5
    numbers.conversations = 1
    numbers.messages = 5
    numbers.transfers = 5
    let backend = try MockBackend.start(.generated(numbers, picturesFrom: fixtures))
    print(backend.url)
    fflush(nil)
    while let data = try FileHandle.standardInput.read(upToCount: 1_024), !data.isEmpty {}
}

/// The server as a child process, so that its memory is not counted.
final class ServerProcess {
    let url: String
    private let process = Process()
    private let input = Pipe()

    init(_ fixtures: String) throws {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["serve", fixtures]
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        url = line.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func stop() throws {
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}

/// The IDs of fixture images with a large rendition.
func pictures(_ fixtures: String) throws -> [String] {
    let data = try Data(contentsOf: URL(fileURLWithPath: "\(fixtures)/images.json"))
    let list = try JSONSerialization.jsonObject(with: data) as? [[String: Any]] ?? []
    return list.filter { ($0["width"] as? Int ?? 0) >= 1_280 }.compactMap { $0["id"] as? String }.sorted()
}
