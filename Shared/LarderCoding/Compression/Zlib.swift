import Glibc

/// The system's zlib (`libz.so.1`), loaded on first use. Contains all calls of it.
///
@safe package final class Zlib: Sendable {
    /// The balance of speed and size.
    package enum Level: Int32, Sendable, Hashable {
        case fast = 1
        case good = 6
    }

    /// `z_stream` of zlib.h.
    @unsafe fileprivate struct Stream {
        var input: UnsafePointer<UInt8>?
        var inputCount: UInt32 = 0
        var inputTotal: UInt = 0
        var output: UnsafeMutablePointer<UInt8>?
        var outputCount: UInt32 = 0
        var outputTotal: UInt = 0
        var message: UnsafePointer<CChar>?
        var state: OpaquePointer?
        var allocate: OpaquePointer?
        var free: OpaquePointer?
        var allocator: OpaquePointer?
        var dataType: Int32 = 0
        var checksum: UInt = 0
        var reserved: UInt = 0
    }

    /// A pointer to a `Stream`, as C functions take it.
    fileprivate typealias Handle = UnsafeMutableRawPointer

    /// The library; an error that says what to install if it is missing.
    package static let system: Result<Zlib, InflateError> = load("libz.so.1")

    package static var isAvailable: Bool { (try? system.get()) != nil }

    fileprivate let beginInflating: @Sendable @convention(c) (Handle, Int32, UnsafePointer<CChar>, Int32) -> Int32
    fileprivate let inflate: @Sendable @convention(c) (Handle, Int32) -> Int32
    fileprivate let resetInflating: @Sendable @convention(c) (Handle) -> Int32
    fileprivate let endInflating: @Sendable @convention(c) (Handle) -> Int32
    private let beginDeflating:
        @Sendable @convention(c) (Handle, Int32, Int32, Int32, Int32, Int32, UnsafePointer<CChar>, Int32) -> Int32
    private let deflate: @Sendable @convention(c) (Handle, Int32) -> Int32
    private let deflatedBound: @Sendable @convention(c) (Handle, UInt) -> UInt
    private let endDeflating: @Sendable @convention(c) (Handle) -> Int32
    private let crc: @Sendable @convention(c) (UInt, UnsafePointer<UInt8>?, UInt32) -> UInt

    private init(_ library: UnsafeMutableRawPointer) throws(InflateError) {
        func symbol<Function>(_ name: String) throws(InflateError) -> Function {
            guard let address = unsafe dlsym(library, name) else {
                throw .unavailable("The system's zlib has no function '\(name)'. Install zlib 1.2 or later.")
            }
            return unsafe unsafeBitCast(address, to: Function.self)
        }
        unsafe beginInflating = try symbol("inflateInit2_")
        unsafe inflate = try symbol("inflate")
        unsafe resetInflating = try symbol("inflateReset")
        unsafe endInflating = try symbol("inflateEnd")
        unsafe beginDeflating = try symbol("deflateInit2_")
        unsafe deflate = try symbol("deflate")
        unsafe deflatedBound = try symbol("deflateBound")
        unsafe endDeflating = try symbol("deflateEnd")
        unsafe crc = try symbol("crc32")
    }

    package static func load(_ name: String) -> Result<Zlib, InflateError> {
        guard let library = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else {
            return .failure(
                .unavailable(
                    "Compressed data and PNG need the system's zlib, and '\(name)' was not found. Install it (Debian, Ubuntu: apt-get "
                        + "install zlib1g; Fedora: dnf install zlib; Alpine: apk add zlib)."
                )
            )
        }
        return Result { () throws(InflateError) in try unsafe Zlib(library) }
    }

    /// Compresses content as one stream.
    ///
    /// - Parameter head: bytes that the result begins with.
    /// - Returns: nil if there is no memory for it, or the content has 4 GiB or more.
    package func deflated(
        _ content: [UInt8],
        _ format: CompressionFormat,
        _ level: Level,
        after head: [UInt8] = []
    ) -> [UInt8]? {
        guard content.count < 1 << 31 else { return nil }
        var stream = unsafe Stream()
        return unsafe withUnsafeMutablePointer(to: &stream) { stream in
            let size = unsafe Int32(MemoryLayout<Stream>.size)
            // Method 8 is DEFLATE, 8 the default memory level, 0 the default strategy.
            guard unsafe beginDeflating(stream, level.rawValue, 8, format.windowBits, 8, 0, "1", size) == ZlibCode.ok
            else { return nil }
            defer { _ = unsafe endDeflating(stream) }
            let bound = unsafe Int(deflatedBound(stream, UInt(content.count)))
            return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bound) { output in
                unsafe content.withUnsafeBufferPointer { content in
                    unsafe (stream.pointee.input, stream.pointee.inputCount) = (
                        content.baseAddress, UInt32(content.count)
                    )
                    unsafe (stream.pointee.output, stream.pointee.outputCount) = (output.baseAddress, UInt32(bound))
                    guard unsafe deflate(stream, ZlibCode.finish) == ZlibCode.streamEnd else { return nil }
                    return unsafe head + output.prefix(bound - Int(stream.pointee.outputCount))
                }
            }
        }
    }

    /// The CRC-32 of gzip and of PNG's chunks (RFC 1952 §8).
    package func crc32(_ bytes: [UInt8], _ range: Range<Int>) -> UInt32 {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count, "The bytes are there.")
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            var (sum, start) = (UInt(0), range.lowerBound)
            while start < range.upperBound {
                let count = min(range.upperBound - start, 1 << 30)
                sum = unsafe crc(sum, bytes.baseAddress?.advanced(by: start), UInt32(count))
                start += count
            }
            return UInt32(truncatingIfNeeded: sum)
        }
    }
}

/// Numbers of zlib.h.
private enum ZlibCode {
    static let (ok, streamEnd, needsDictionary, noMemory, noProgress): (Int32, Int32, Int32, Int32, Int32) = (
        0, 1, 2, -4, -5
    )
    static let finish: Int32 = 4
}

extension CompressionFormat {
    /// The window of 32 KiB, and the framing as `inflateInit2` and `deflateInit2` take it.
    fileprivate var windowBits: Int32 {
        switch self {
        case .deflate: -15
        case .zlib: 15
        case .gzip: 31
        }
    }
}

/// A stream that is decompressed.
///
/// `@unchecked Sendable`: a data race cannot happen, because only an `Inflater` refers to a stream. It cannot be copied, and its `read` is
/// mutating, so that no two threads use the stream at once.
@safe final class InflateStream: @unchecked Sendable {
    private let zlib: Zlib
    private let handle: UnsafeMutablePointer<Zlib.Stream>

    init(_ format: CompressionFormat, _ zlib: Zlib) throws(InflateError) {
        self.zlib = zlib
        unsafe handle = .allocate(capacity: 1)
        unsafe handle.initialize(to: Zlib.Stream())
        let size = unsafe Int32(MemoryLayout<Zlib.Stream>.size)
        guard unsafe zlib.beginInflating(handle, format.windowBits, "1", size) == ZlibCode.ok else {
            throw Self.noMemory
        }
    }

    deinit {
        // Of a stream that was never begun it reports an error, and does nothing.
        _ = unsafe zlib.endInflating(handle)
        unsafe handle.deallocate()
    }

    /// Begins a further gzip member.
    func reset() { _ = unsafe zlib.resetInflating(handle) }

    /// Decompresses until the input is used up, the output is full or the stream ends.
    func run(
        _ input: Span<UInt8>,
        from start: Int,
        into target: inout [UInt8],
        at offset: Int,
        count: Int
    ) throws(InflateError) -> (consumed: Int, produced: Int, hasEnded: Bool) {
        let input = input.extracting(start..<min(input.count, start + 1 << 30))
        let room = min(count, 1 << 30)
        let code = unsafe input.withUnsafeBufferPointer { source in
            unsafe target.withUnsafeMutableBufferPointer { target in
                // zlib rejects a null pointer, also where it may write nothing.
                var none: UInt8 = 0
                return unsafe withUnsafeMutablePointer(to: &none) { none in
                    unsafe (handle.pointee.input, handle.pointee.inputCount) = (
                        source.baseAddress, UInt32(source.count)
                    )
                    unsafe handle.pointee.output = target.baseAddress?.advanced(by: offset) ?? none
                    unsafe handle.pointee.outputCount = UInt32(room)
                    return unsafe zlib.inflate(handle, 0)
                }
            }
        }
        let consumed = unsafe input.count - Int(handle.pointee.inputCount)
        let produced = unsafe room - Int(handle.pointee.outputCount)
        switch code {
        case ZlibCode.ok, ZlibCode.noProgress: return (consumed, produced, false)
        case ZlibCode.streamEnd: return (consumed, produced, true)
        case ZlibCode.needsDictionary: throw .damaged("The compressed data needs a preset dictionary.")
        case ZlibCode.noMemory: throw Self.noMemory
        default:
            let reason = unsafe handle.pointee.message.map { unsafe String(cString: $0) } ?? "error \(code)"
            throw .damaged("The compressed data is damaged: \(reason).")
        }
    }

    private static var noMemory: InflateError { .unavailable("There is no memory for decompressing.") }
}
