import Glibc

/// Files named on the command line.
enum TextFile {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    /// The contents of a file; `-` is standard input.
    static func bytes(_ path: String) throws -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(description: "\(path): \(unsafe String(cString: strerror(errno)))")
        }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(description: "\(path): cannot be read") }
            if count == 0 { return bytes }
            bytes.append(contentsOf: buffer[..<count])
        }
    }

    /// Writes a file that only its owner may read.
    static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(description: "\(path): \(unsafe String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var offset = 0
        while offset < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe systemWrite(descriptor, raw.baseAddress.map { unsafe $0 + offset }, bytes.count - offset)
            }
            guard count > 0 else { throw Failure(description: "\(path): cannot be written") }
            offset += count
        }
    }
}

/// write(2), which `TextFile` shadows.
private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, start, count)
}
