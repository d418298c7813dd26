import Glibc
package import LarderCoding
package import LarderHTTP

/// Files of the user that cannot be used: a line of text for each error, with the file, and the line, the index or the member.
package struct FileError: Error, Sendable, CustomStringConvertible {
    private static let linesMaximum = 20

    /// The first ones of many.
    private let lines: [String]
    private let count: Int

    package var description: String {
        lines.joined(separator: "\n") + (count > lines.count ? "\nand \(count - lines.count) more" : "")
    }

    package init(_ description: String) { (lines, count) = ([description], 1) }

    /// The errors of several files.
    package init(_ errors: [FileError]) {
        lines = Array(errors.flatMap(\.lines).prefix(Self.linesMaximum))
        count = errors.reduce(0) { $0 + $1.count }
    }

    /// - Parameters:
    ///   - pointer: the place in the document (RFC 6901), whose line is named.
    ///   - detail: what is wrong there, as the rest of a sentence.
    package init(_ file: String, _ bytes: [UInt8], at pointer: String, _ detail: String) {
        self.init(file, bytes, [Problem.FieldError(pointer: pointer, detail: detail)])
    }

    /// The errors of a document, in the order of its lines.
    package init(_ file: String, _ bytes: [UInt8], _ errors: [Problem.FieldError]) {
        // A misspelled name explains a missing one.
        let hints = errors.filter(\.isHint)
        let kept = (hints + errors.filter { !$0.isHint }).prefix(Self.linesMaximum)
        // In the order in which each object of the document was read.
        var places: [String: Int] = [:]
        for (place, error) in errors.enumerated() where places[error.parent] == nil { places[error.parent] = place }
        lines =
            kept.map { (line: JSONParser.line(of: $0.pointer, in: bytes), place: places[$0.parent] ?? 0, error: $0) }
            .sorted { ($0.line, $0.place) < ($1.line, $1.place) }
            .map { line, _, error in
                "\(file):\(line): \(error.pointer.isEmpty ? "" : error.pointer + " ")\(error.detail)"
            }
        count = errors.count
    }
}

extension Problem.FieldError {
    fileprivate var isHint: Bool { detail.contains("did you mean") }

    /// The pointer of the object or array that it is in.
    fileprivate var parent: String { pointer.lastIndex(of: "/").map { String(pointer[..<$0]) } ?? "" }
}

/// Access to files of the user: data, routes, descriptions, scripts, recordings.
package enum SourceFile {
    /// The contents of a file, or of standard input for `-`.
    package static func bytes(_ path: String) throws(FileError) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw error(path) }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw error(path) }
            if count == 0 { return bytes }
            bytes.append(contentsOf: buffer[..<count])
        }
    }

    /// The document in a file.
    package static func json(_ path: String) throws(FileError) -> JSONValue { try json(bytes(path), named: path) }

    package static func json(_ bytes: [UInt8], named name: String, maximumDepth: Int = 64) throws(FileError)
        -> JSONValue
    {
        guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else {
            throw FileError("\(name):1: begins with a byte order mark; save the file as UTF-8 without one")
        }
        do { return try JSONParser.parse(bytes, maximumDepth: maximumDepth) } catch {
            throw FileError("\(name):\(error.line): column \(error.column): \(error.reason)")
        }
    }

    /// The names of files of a directory, in order. Hidden files do not count.
    package static func names(in directory: String, endingWith suffix: String = ".json") throws(FileError) -> [String] {
        guard let handle = unsafe opendir(directory) else { throw error(directory) }
        defer { unsafe closedir(handle) }
        var names: [String] = []
        while let entry = unsafe readdir(handle) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name.hasSuffix(suffix), !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// The directory itself, or that of a file.
    package static func folder(of path: String) -> String { isDirectory(path) ? path : parent(of: path) }

    /// The directory in which a file or a directory is.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes a directory that only its owner may use, and those above it, unless they exist.
    package static func makeDirectory(_ path: String) throws(FileError) {
        var built = ""
        for part in path.split(separator: "/") {
            built += (built.isEmpty && !path.hasPrefix("/") ? "" : "/") + part
            if unsafe mkdir(built, 0o700) != 0, errno != EEXIST { throw error(path) }
        }
        guard isDirectory(path) else { throw FileError("\(path): Not a directory") }
    }

    /// Writes a file that only its owner may read, over what is there.
    package static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw error(path) }
        defer { close(descriptor) }
        guard write(bytes, descriptor) else { throw error(path) }
    }

    /// Replaces a file as a whole: it has the old contents or the new ones, also after a crash.
    ///
    /// - Parameter mode: nil keeps the mode of the present file.
    package static func replace(_ path: String, with bytes: [UInt8], mode: UInt32? = nil) throws(FileError) {
        var status = stat()
        let mode = unsafe mode ?? (stat(path, &status) == 0 ? status.st_mode & 0o777 : 0o600)
        let name = path.split(separator: "/").last ?? ""
        let temporary = "\(path.dropLast(name.count)).\(name).new"
        // Of a process that was killed. An existing file could have another mode, or be one of somebody else.
        unsafe unlink(temporary)
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw error(path) }
        let isWritten = fchmod(descriptor, mode) == 0 && write(bytes, descriptor) && fsync(descriptor) == 0
        close(descriptor)
        guard isWritten, unsafe rename(temporary, path) == 0 else {
            let error = error(path)
            unsafe unlink(temporary)
            throw error
        }
    }

    /// Writes all bytes; false after an error.
    package static func write(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { return false }
            rest = rest.dropFirst(max(0, count))
        }
        return true
    }

    private static func error(_ path: String) -> FileError {
        FileError("\(path): \(unsafe String(cString: strerror(errno)))")
    }
}
