import Foundation
import LarderServer

/// Serves the fixture images on a free port until the standard input ends, over the network of a journey if one is given.
func serve(_ fixtures: String, _ journey: String?) throws {
    var numbers = WorldSize()
    numbers.people = 5
    numbers.posts = 5
    numbers.conversations = 1
    numbers.messages = 5
    numbers.transfers = 5
    let backend = try MockBackend.start(.generated(numbers, picturesFrom: fixtures))
    if let journey = journey.flatMap(Journey.init) { try backend.main.set(journey) }
    print(backend.url)
    fflush(nil)
    while let data = try FileHandle.standardInput.read(upToCount: 1_024), !data.isEmpty {}
}

/// The server as a child process, so that its memory is not counted.
final class ServerProcess {
    let url: String
    private let process = Process()
    private let input = Pipe()

    init(_ fixtures: String, _ journey: String? = nil) throws {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["serve", fixtures] + (journey.map { [$0] } ?? [])
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

/// The IDs of fixture images with a large rendition of a type, or of any.
func pictures(_ fixtures: String, type: String? = nil) throws -> [String] {
    let data = try Data(contentsOf: URL(fileURLWithPath: "\(fixtures)/images.json"))
    let list = try JSONSerialization.jsonObject(with: data) as? [[String: Any]] ?? []
    let large = list.filter { image in
        let renditions = image["renditions"] as? [[String: Any]] ?? []
        return (image["width"] as? Int ?? 0) >= 1_280
            && (type == nil || renditions.contains { $0["type"] as? String == type && $0["width"] as? Int == 1_280 })
    }
    return large.compactMap { $0["id"] as? String }.sorted()
}
