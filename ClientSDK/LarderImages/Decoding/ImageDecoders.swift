/// The decoders, chosen by the first bytes of a file and never by its name or media type, which may be wrong.
public struct ImageDecoders: Sendable {
    /// The number of bytes that `canDecode` gets.
    public static let startLength = 32

    /// The decoders; the first one that can decode a file is used.
    public var all: [any ImageDecoder]

    /// - Parameter all: the decoders, in the order in which they are tried.
    public init(_ all: [any ImageDecoder] = [PNGDecoder(), JPEGDecoder()]) { self.all = all }

    /// The decoder for a file.
    ///
    /// - Throws: `.unsupportedFormat` with the beginning of the file.
    public func decoder(for bytes: [UInt8]) throws(ImageDecodingError) -> any ImageDecoder {
        let start = Array(bytes.prefix(Self.startLength))
        if let decoder = all.first(where: { $0.canDecode(start) }) { return decoder }
        let names = all.map(\.name).joined(separator: ", ")
        throw ImageDecodingError(
            .unsupportedFormat,
            "\(Self.guess(start)) There are decoders for \(names.isEmpty ? "nothing" : names). Register one that conforms "
                + "to ImageDecoder, or ask the server for another format."
        )
    }

    private static func guess(_ start: [UInt8]) -> String {
        if start.isEmpty { return "There are no bytes." }
        if start.starts(with: Array("GIF8".utf8)) { return "This is a GIF." }
        if start.starts(with: Array("RIFF".utf8)), start.dropFirst(8).starts(with: Array("WEBP".utf8)) {
            return "This is a WebP."
        }
        if start.dropFirst(4).starts(with: Array("ftypavif".utf8)) { return "This is an AVIF." }
        if start.dropFirst(4).starts(with: Array("ftyphei".utf8)) { return "This is a HEIC." }
        if let first = start.first(where: { $0 > 0x20 }), first == UInt8(ascii: "<") || first == UInt8(ascii: "{") {
            return "This is text and no picture; the server may have sent an error page."
        }
        let digits = Array("0123456789abcdef")
        let hex = start.prefix(8).map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined(separator: " ")
        return "No decoder knows a file that begins with \(hex)."
    }
}
