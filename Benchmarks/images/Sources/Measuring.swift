import Foundation

func milliseconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) * 1_000 + Double(duration.components.attoseconds) / 1e15
}

func shown(_ number: Double) -> String { String(format: "%.1f", number) }

/// A memory value of this process in kilobytes, from `/proc/self/status`.
func memoryOf(_ name: String) -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
    return Int(line.filter(\.isNumber)) ?? 0
}

/// Resets the recorded peak of memory.
func forgetPeak() { try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8) }

func read(_ path: String) throws -> [UInt8] {
    guard let handle = FileHandle(forReadingAtPath: path) else { throw CocoaError(.fileNoSuchFile) }
    defer { try? handle.close() }
    var bytes: [UInt8] = []
    let size = (try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    bytes.reserveCapacity(size)
    while let piece = try handle.read(upToCount: 1 << 16), !piece.isEmpty { bytes += piece }
    return bytes
}
