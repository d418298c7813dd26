import Foundation
import LarderTime

/// The photo that people send: the head of a PNG, and content in two pieces.
enum PhotoFile {
    /// The path; made once for the process.
    static let shared = Result<String, any Error> {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
        bytes += [0, 0, 2, 128, 0, 0, 1, 224, 8, 2, 0, 0, 0]
        var random = SeededGenerator(seed: 1)
        while bytes.count < 300_000 { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
        let path = NSTemporaryDirectory() + "/larder-photo-\(ProcessInfo.processInfo.processIdentifier).png"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }
}
