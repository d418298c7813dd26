import Larder
import LarderCoding

/// Pictures in the terminal graphics protocol of kitty: transmitted directly as RGB or RGBA, and shown at the cursor.
enum KittyGraphics {
    /// The protocol's maximum for a piece of a transmission, in characters of Base64.
    private static let pieceLength = 4_096

    /// The escape sequences for a picture. No reply is requested.
    static func sequence(_ image: DecodedImage) -> String {
        let bytes = image.isOpaque ? opaque(image.pixels) : image.pixels
        let content = Array(Base64.encode(bytes).utf8)
        var text = ""
        var start = 0
        repeat {
            let end = min(start + pieceLength, content.count)
            let more = end < content.count ? 1 : 0
            let keys =
                start == 0
                ? "a=T,f=\(image.isOpaque ? 24 : 32),s=\(image.width),v=\(image.height),q=2,m=\(more)" : "m=\(more)"
            text += "\u{1b}_G\(keys);" + String(decoding: content[start..<end], as: UTF8.self) + "\u{1b}\\"
            start = end
        } while start < content.count
        return text
    }

    private static func opaque(_ pixels: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(pixels.count / 4 * 3)
        for start in stride(from: 0, to: pixels.count, by: 4) { bytes += pixels[start..<(start + 3)] }
        return bytes
    }
}
