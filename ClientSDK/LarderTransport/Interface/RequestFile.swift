import Glibc

/// The content of a file, read in pieces.
struct RequestFile: RequestContent {
    let path: String
    var isReplayable: Bool { true }

    func length() async throws -> Int? { try await Self.run { () throws(TransportError) in try OpenFile(path).size } }

    func write(to sink: ([UInt8]) async throws -> Void) async throws {
        let file = try await Self.run { () throws(TransportError) in try OpenFile(path) }
        while true {
            let piece = try await Self.run { () throws(TransportError) in try file.read(RequestBody.pieceMaximum) }
            guard !piece.isEmpty else { return }
            try await sink(piece)
        }
    }

    /// Runs system calls on the global concurrent executor, never on that of the caller.
    @concurrent private static func run<Value: Sendable>(
        _ work: @Sendable () throws(TransportError) -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        return try work()
    }
}

/// A file that is open for reading. Read by one task.
private final class OpenFile: Sendable {
    private let path: String
    private let descriptor: Int32
    /// The size when it was opened, in bytes.
    let size: Int

    init(_ path: String) throws(TransportError) {
        self.path = path
        // Without waiting for the writer of a pipe.
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Self.failure(path, "cannot be opened: \(SocketCall.describe(errno))") }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            let code = errno
            close(descriptor)
            throw Self.failure(path, "has no size: \(SocketCall.describe(code))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Self.failure(path, "is not a regular file")
        }
        size = Int(status.st_size)
    }

    deinit { close(descriptor) }

    /// Reads up to `count` bytes; none at the end.
    func read(_ count: Int) throws(TransportError) -> [UInt8] {
        while true {
            var result = 0
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                result = unsafe systemRead(descriptor, buffer.baseAddress, count)
                filled = max(0, result)
            }
            if result >= 0 { return bytes }
            let code = errno
            guard code == EINTR else { throw Self.failure(path, "cannot be read: \(SocketCall.describe(code))") }
        }
    }

    private static func failure(_ path: String, _ reason: String) -> TransportError {
        TransportError(.bodyFailed, "The file '\(path)' \(reason). The request was not completed.")
    }
}

private func systemRead(_ descriptor: Int32, _ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int {
    unsafe read(descriptor, start, count)
}
