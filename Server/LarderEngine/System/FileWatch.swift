import Glibc
import Synchronization

/// Reports files in directories that were written, moved or removed, and directories that were made (inotify). It waits on a thread of its own, without a time limit.
///
/// Safe from any thread. `stop` ends the thread.
package final class FileWatch: Sendable {
    private let descriptor: Int32
    private let wakeUp: WakeUp
    /// The names that each watched directory was added under.
    private let directories = Mutex<[Int32: Set<String>]>([:])
    private let isStopped = Atomic(false)

    /// - Parameter changed: called with the paths that have changed; not while it runs.
    package init(_ changed: @escaping @Sendable (Set<String>) -> Void) throws(EngineError) {
        descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard descriptor >= 0 else { throw EngineError("Watching files failed", errno) }
        wakeUp = try WakeUp()
        SystemThread.start { [self] in
            while let paths = wait() { if !paths.isEmpty { changed(paths) } }
        }
    }

    deinit { close(descriptor) }

    /// Watches the files of a directory, which may be watched already.
    package func add(_ directory: String) throws(EngineError) {
        let mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE
        let code: Int32? = directories.withLock { directories in
            let number = unsafe inotify_add_watch(descriptor, directory, UInt32(mask))
            guard number >= 0 else { return errno }
            directories[number, default: []].insert(directory)
            return nil
        }
        if let code { throw EngineError("Watching '\(directory)' failed", code) }
    }

    package func stop() {
        isStopped.store(true, ordering: .releasing)
        wakeUp.signal()
    }

    /// Waits for changes; nil after `stop`.
    private func wait() -> Set<String>? {
        var polled = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        _ = unsafe poll(&polled, 2, -1)
        guard !isStopped.load(ordering: .acquiring) else { return nil }
        var paths: Set<String> = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return paths }
            paths.formUnion(changes(buffer[..<count]))
        }
    }

    /// The paths in a sequence of `inotify_event`: watch, mask, cookie and length, 4 bytes each, and a name with zeros behind it.
    private func changes(_ bytes: ArraySlice<UInt8>) -> [String] {
        func number(_ offset: Int) -> Int32 {
            Int32(littleEndian: (0..<4).reduce(0) { $0 | Int32(bytes[offset + $1]) << Int32(8 * $1) })
        }
        var (paths, offset): ([String], Int) = ([], bytes.startIndex)
        while offset + 16 <= bytes.endIndex {
            let end = min(bytes.endIndex, offset + 16 + Int(number(offset + 12)))
            let name = String(decoding: bytes[(offset + 16)..<end].prefix { $0 != 0 }, as: UTF8.self)
            let mask = UInt32(bitPattern: number(offset + 4))
            // A new file is reported when it is written.
            let isUnwritten = mask & UInt32(IN_CREATE) != 0 && mask & UInt32(IN_ISDIR) == 0
            if !isUnwritten {
                paths += directories.withLock { $0[number(offset)] ?? [] }.map { $0 + "/" + name }
            }
            offset = end
        }
        return paths
    }
}
