/// Decoders are chosen by the first bytes of a file and never by its name or media type, which may be wrong.
extension [any ImageDecoder] {
    /// The decoder for a file: the first one that can decode it.
    ///
    /// - Throws: `.unsupportedFormat` with the beginning of the file.
    package func decoder(for bytes: [UInt8]) throws(ImageError) -> any ImageDecoder {
        if let decoder = decoder(recognizing: bytes) { return decoder }
        let names = map(\.name).joined(separator: ", ")
        throw ImageError(
            .unsupportedFormat,
            "\(Self.guess([UInt8](bytes.prefix(Self.startLength)))) There are decoders for \(names.isEmpty ? "nothing" : names). Register one that conforms "
                + "to ImageDecoder, or ask the server for another format."
        )
    }

    /// The decoder for the beginning of a file; nil if none recognizes it.
    func decoder(recognizing bytes: [UInt8]) -> (any ImageDecoder)? {
        let start = [UInt8](bytes.prefix(Self.startLength))
        return first { $0.canDecode(start) }
    }

    /// The number of bytes that `canDecode` gets.
    private static var startLength: Int { 32 }

    private static func guess(_ start: [UInt8]) -> String {
        if start.isEmpty { return "There are no bytes." }
        if start.starts(with: [UInt8]("GIF8".utf8)) { return "This is a GIF." }
        if start.starts(with: [UInt8]("RIFF".utf8)), start.dropFirst(8).starts(with: [UInt8]("WEBP".utf8)) {
            return "This is a WebP."
        }
        if start.dropFirst(4).starts(with: [UInt8]("ftypavif".utf8)) { return "This is an AVIF." }
        if start.dropFirst(4).starts(with: [UInt8]("ftyphei".utf8)) { return "This is a HEIC." }
        if let first = start.first(where: { $0 > 0x20 }), first == UInt8(ascii: "<") || first == UInt8(ascii: "{") {
            return "This is text and no picture; the server may have sent an error page."
        }
        let digits = [Character]("0123456789abcdef")
        let hex = start.prefix(8).map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined(separator: " ")
        return "No decoder knows a file that begins with \(hex)."
    }
}
