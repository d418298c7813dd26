import LarderCoding
import LarderImages
import LarderTime
import Testing

@testable import LarderCommand

@Suite("Command: graphics in a terminal")
struct GraphicsTests {
    /// A gradient with noise.
    private func picture(_ width: Int, _ height: Int, isOpaque: Bool = true) -> DecodedImage {
        var random = SeededGenerator(seed: 5)
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                pixels += [UInt8(x * 255 / width), UInt8(y * 255 / height), UInt8(random.uniform(in: 60..<90)), 255]
            }
        }
        return DecodedImage(width: width, height: height, pixels: pixels, isOpaque: isOpaque)
    }

    // MARK: Choice

    @Test func `the environment names kitty and its relatives, and a terminal within tmux must be asked`() {
        #expect(TerminalGraphics(environment: ["TERM": "xterm-kitty"]) == .kitty)
        #expect(TerminalGraphics(environment: ["TERM": "xterm-256color", "KITTY_WINDOW_ID": "3"]) == .kitty)
        #expect(TerminalGraphics(environment: ["TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"]) == .kitty)
        #expect(TerminalGraphics(environment: ["TERM": "dumb", "KITTY_WINDOW_ID": "3"]) == .blocks)
        #expect(TerminalGraphics(environment: ["TERM": "tmux-256color", "KITTY_WINDOW_ID": "3"]) == nil)
        #expect(TerminalGraphics(environment: ["TERM": "xterm-256color"]) == nil)
    }

    @Test func `the answer of a terminal is complete with its device attributes`() {
        func graphics(_ text: String) -> TerminalGraphics? { TerminalGraphics(answer: Array(text.utf8)) }
        #expect(graphics("") == nil && graphics("\u{1b}_Gi=31;OK\u{1b}\\") == nil && graphics("\u{1b}[?62;4;2") == nil)
        #expect(graphics("\u{1b}_Gi=31;OK\u{1b}\\\u{1b}[?62;c") == .kitty)
        #expect(graphics("\u{1b}[?62;4;22c") == .sixel)
        // 42 is not 4, and other replies come before.
        #expect(graphics("\u{1b}[?62;42;22c") == .blocks)
        #expect(graphics("\u{1b}[?1;2R\u{1b}[?63;1;4c") == .sixel)
        #expect(graphics("\u{1b}_Gi=31;EINVAL\u{1b}\\\u{1b}[?6c") == .blocks)
    }

    // MARK: Kitty

    /// The keys of the first piece and the bytes of all pieces.
    private func transmitted(_ text: String) throws -> (keys: Substring, bytes: [UInt8]) {
        let pieces = text.components(between: "\u{1b}_G", and: "\u{1b}\\")
        var (keys, content) = (Substring(), "")
        for (number, piece) in pieces.enumerated() {
            let parts = piece.split(separator: ";", maxSplits: 1)
            let isLast = number == pieces.count - 1
            #expect(parts[0].hasSuffix("m=\(isLast ? 0 : 1)") && parts[1].count <= 4_096)
            #expect(isLast || parts[1].count % 4 == 0)
            if number == 0 { keys = parts[0] }
            content += parts[1]
        }
        return (keys, try #require(Base64.decode(content)))
    }

    @Test(arguments: [(3, 2), (40, 30), (64, 48)])
    func `kitty gets all pixels in pieces`(_ width: Int, _ height: Int) throws {
        let opaque = picture(width, height)
        let (keys, bytes) = try transmitted(try #require(TerminalGraphics.kitty.sequence(opaque)))
        #expect(keys.hasPrefix("a=T,f=24,s=\(width),v=\(height),q=2,"))
        #expect(bytes == opaque.pixels.indices.filter { $0 % 4 < 3 }.map { opaque.pixels[$0] })
        let translucent = picture(width, height, isOpaque: false)
        let (others, all) = try transmitted(try #require(TerminalGraphics.kitty.sequence(translucent)))
        #expect(others.hasPrefix("a=T,f=32,") && all == translucent.pixels)
    }

    // MARK: Sixel

    @Test func `a sixel picture of few colours has exactly these`() throws {
        let colors: [[UInt8]] = [
            [255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255, 255, 255, 255], [0, 0, 0, 255],
        ]
        let pixels = (0..<(11 * 13)).flatMap { colors[($0 * $0 / 7) % 5] }
        let image = DecodedImage(width: 11, height: 13, pixels: pixels, isOpaque: true)
        let decoded = try SixelDecoder(try #require(TerminalGraphics.sixel.sequence(image)))
        #expect(decoded.width == 11 && decoded.height == 13 && decoded.colorCount == 5)
        #expect(decoded.pixels == image.pixels)
    }

    @Test func `a sixel picture has the colours of the original on average, and transparency on black`() throws {
        let image = picture(96, 80)
        let decoded = try SixelDecoder(try #require(TerminalGraphics.sixel.sequence(image)))
        #expect(decoded.colorCount == 256)
        // Means of blocks of 8 × 8 pixels: dithering errs by pixel, not by area.
        var worst = 0
        for block in 0..<120 {
            let (left, top) = (block % 12 * 8, block / 12 * 8)
            for channel in 0..<3 {
                var sum = 0
                for place in 0..<64 {
                    let index = ((top + place / 8) * 96 + left + place % 8) * 4 + channel
                    sum += Int(decoded.pixels[index]) - Int(image.pixels[index])
                }
                worst = max(worst, abs(sum) / 64)
            }
        }
        #expect(worst <= 6, "\(worst) levels")
        let clear = DecodedImage(width: 2, height: 1, pixels: [200, 100, 50, 0, 200, 100, 50, 255])
        #expect(try SixelDecoder(try #require(TerminalGraphics.sixel.sequence(clear))).pixels[..<4] == [0, 0, 0, 255])
    }

    @Test func `blocks have no sequence, and an empty picture draws nothing`() throws {
        #expect(TerminalGraphics.blocks.sequence(picture(4, 4)) == nil)
        let empty = DecodedImage(width: 0, height: 0, pixels: [])
        #expect(try SixelDecoder(try #require(TerminalGraphics.sixel.sequence(empty))).pixels.isEmpty)
    }
}

extension String {
    /// The texts between marks.
    fileprivate func components(between start: String, and end: String) -> [Substring] {
        var found: [Substring] = []
        var rest = Substring(self)
        while let first = rest.firstRange(of: start) {
            rest = rest[first.upperBound...]
            guard let last = rest.firstRange(of: end) else { return found }
            found.append(rest[..<last.lowerBound])
            rest = rest[last.upperBound...]
        }
        return found
    }
}

/// Reads sixel graphics as a terminal does: colours, repetitions, bands.
private struct SixelDecoder {
    struct Invalid: Error {}

    private(set) var width = 0
    private(set) var height = 0
    private(set) var pixels: [UInt8] = []
    var colorCount: Int { colors.count }
    private var colors: [Int: [UInt8]] = [:]

    init(_ text: String) throws {
        guard text.hasPrefix("\u{1b}P0;1;0q\""), text.hasSuffix("\u{1b}\\") else { throw Invalid() }
        var rest = Array(text.utf8.dropFirst("\u{1b}P0;1;0q\"".utf8.count).dropLast(2))[...]
        func numbers() -> [Int] {
            let end = rest.firstIndex { !($0 >= 48 && $0 <= 57 || $0 == 59) } ?? rest.endIndex
            defer { rest = rest[end...] }
            return rest[..<end].split(separator: 59).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
        }
        let raster = numbers()
        guard raster.count == 4, raster[0] == 1, raster[1] == 1 else { throw Invalid() }
        (width, height) = (raster[2], raster[3])
        pixels = [UInt8](repeating: 0, count: width * height * 4)
        var (x, band, color) = (0, 0, 0)
        while let byte = rest.popFirst() {
            var (count, bits) = (1, byte)
            switch byte {
            case UInt8(ascii: "#"):
                let values = numbers()
                color = values[0]
                if values.count == 5 { colors[color] = values[2...].map { UInt8(($0 * 255 + 50) / 100) } + [255] }
                continue
            case UInt8(ascii: "$"):
                x = 0
                continue
            case UInt8(ascii: "-"):
                (x, band) = (0, band + 6)
                continue
            case UInt8(ascii: "!"):
                guard let repeated = numbers().first, let next = rest.popFirst() else { throw Invalid() }
                (count, bits) = (repeated, next)
            default: break
            }
            guard bits >= 63, bits <= 126, x + count <= width, let rgba = colors[color] else { throw Invalid() }
            for column in x..<(x + count) {
                for row in 0..<6 where (bits - 63) >> UInt8(row) & 1 == 1 {
                    guard band + row < height else { throw Invalid() }
                    let start = ((band + row) * width + column) * 4
                    pixels.replaceSubrange(start..<(start + 4), with: rgba)
                }
            }
            x += count
        }
    }
}
