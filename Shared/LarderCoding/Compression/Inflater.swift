/// Decompresses DEFLATE (RFC 1951), plain or framed as zlib (RFC 1950) or gzip (RFC 1952), in steps of any size.
///
/// Output is produced when it is read: a reader that stops after a number of bytes is safe from endless streams. Memory: some 40 KiB,
/// whatever the size of the stream.
package struct Inflater: ~Copyable, Sendable {
    /// Bounds of the output, for streams of unknown origin.
    package struct Limits: Sendable, Hashable {
        /// The most bytes that may be read.
        package var outputBytesMaximum: Int
        /// The most output for each byte of input, judged beyond `ratioFreeBytes` of output. DEFLATE itself stays under 1,033.
        package var ratioMaximum: Int

        /// The output up to which every ratio is accepted.
        package static let ratioFreeBytes = 1 << 20

        package init(outputBytesMaximum: Int = .max, ratioMaximum: Int = 2_000) {
            self.outputBytesMaximum = outputBytesMaximum
            self.ratioMaximum = ratioMaximum
        }
    }

    private let format: CompressionFormat
    private let limits: Limits
    private let stream: Result<InflateStream, InflateError>
    private var inputBytes = 0
    private var outputBytes = 0

    /// Whether the stream has ended with a correct checksum and everything was read. Of gzip, input that follows begins a further member.
    package private(set) var hasEnded = false

    package init(
        _ format: CompressionFormat,
        limits: Limits = Limits(),
        zlib: Result<Zlib, InflateError> = Zlib.system
    ) {
        self.format = format
        self.limits = limits
        stream = zlib.flatMap { zlib in Result { () throws(InflateError) in try InflateStream(format, zlib) } }
    }

    /// Reads up to `count` decompressed bytes.
    ///
    /// - Parameters:
    ///   - offset: where the bytes are written in `target`.
    ///   - input: what follows the input of earlier calls.
    ///   - consumed: the bytes of `input` that earlier calls have consumed, and after the call that this one has.
    /// - Returns: the bytes read. Fewer than `count`: all input is consumed, or the stream has ended.
    /// - Throws: `.damaged`, `.tooLarge` or `.unavailable`; no call may follow.
    package mutating func read(
        _ count: Int,
        into target: inout [UInt8],
        at offset: Int = 0,
        from input: Span<UInt8>,
        consumed: inout Int
    ) throws(InflateError) -> Int {
        precondition(offset >= 0 && count >= 0 && target.count - offset >= count, "There is room for what is read.")
        precondition(consumed >= 0 && consumed <= input.count, "The input has what was consumed of it.")
        let stream = try stream.get()
        var done = 0
        while true {
            if hasEnded {
                // A further gzip member (RFC 1952 §2.2).
                guard format == .gzip, consumed < input.count else { break }
                stream.reset()
                hasEnded = false
            }
            let step = try stream.run(input, from: consumed, into: &target, at: offset + done, count: count - done)
            consumed += step.consumed
            inputBytes += step.consumed
            done += step.produced
            hasEnded = step.hasEnded
            guard hasEnded || (done < count && consumed < input.count && step.consumed + step.produced > 0) else {
                break
            }
        }
        outputBytes += done
        guard outputBytes <= limits.outputBytesMaximum else {
            throw .tooLarge("\(limits.outputBytesMaximum) bytes")
        }
        if outputBytes > Limits.ratioFreeBytes, outputBytes / limits.ratioMaximum > inputBytes {
            throw .tooLarge("\(limits.ratioMaximum) times the compressed data")
        }
        return done
    }
}
