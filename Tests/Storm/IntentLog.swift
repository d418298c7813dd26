import Foundation
import Synchronization

/// A file of JSON lines that survives `kill -9`: each line is synced before the call returns.
///
/// The harness compares it with the state of the server: an intent without a result was interrupted by a kill.
final class IntentLog: Sendable {
    private let file: Mutex<FileHandle>

    init(path: String) throws {
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
        guard let handle = FileHandle(forWritingAtPath: path) else { throw CocoaError(.fileWriteUnknown) }
        try handle.seekToEnd()
        file = Mutex(handle)
    }

    /// Appends one record and syncs it.
    func write(_ record: [String: any Sendable]) throws {
        var line = try JSONSerialization.data(withJSONObject: record, options: [.sortedKeys])
        line.append(0x0A)
        try file.withLock { handle in
            try handle.write(contentsOf: line)
            try handle.synchronize()
        }
    }
}
