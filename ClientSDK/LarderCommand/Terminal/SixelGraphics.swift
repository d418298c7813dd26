import Larder

/// Pictures as sixel graphics (DEC STD 070, chapter 9): bands of six rows, in which each colour draws its pixels.
enum SixelGraphics {
    /// The escape sequence for a picture on black, in at most 256 colours of its own.
    static func sequence(_ image: DecodedImage) -> String {
        let palette = ColorPalette(image, countMaximum: 256)
        let indices = palette.dithered(image)
        // Pixels that no colour draws keep the background; the pixels are square.
        var text = Array("\u{1b}P0;1;0q\"1;1;\(image.width);\(image.height)".utf8)
        for (number, color) in palette.colors.enumerated() {
            let (red, green, blue) = (percent(color.red), percent(color.green), percent(color.blue))
            text += Array("#\(number);2;\(red);\(green);\(blue)".utf8)
        }
        for top in stride(from: 0, to: image.height, by: 6) {
            band(indices, image.width, top..<min(top + 6, image.height), palette.colors.count, &text)
        }
        return String(decoding: text, as: UTF8.self) + "\u{1b}\\"
    }

    private static func percent(_ value: Int) -> Int { (value * 100 + 127) / 255 }

    private static func band(_ indices: [UInt8], _ width: Int, _ rows: Range<Int>, _ count: Int, _ text: inout [UInt8])
    {
        var isUsed = [Bool](repeating: false, count: count)
        for index in indices[(rows.lowerBound * width)..<(rows.upperBound * width)] { isUsed[Int(index)] = true }
        for color in 0..<count where isUsed[color] {
            text += Array("#\(color)".utf8)
            var (last, length) = (UInt8(0), 0)
            for x in 0..<width {
                var bits: UInt8 = 0
                for row in rows where indices[row * width + x] == color { bits |= 1 << UInt8(row - rows.lowerBound) }
                if bits == last {
                    length += 1
                } else {
                    run(last, length, &text)
                    (last, length) = (bits, 1)
                }
            }
            // Empty columns at the end need not be written.
            if last != 0 { run(last, length, &text) }
            text.append(UInt8(ascii: "$"))
        }
        text.append(UInt8(ascii: "-"))
    }

    /// A number of equal columns; from four on, the repetition is shorter.
    private static func run(_ bits: UInt8, _ length: Int, _ text: inout [UInt8]) {
        guard length > 3 else {
            for _ in 0..<length { text.append(63 + bits) }
            return
        }
        text += Array("!\(length)".utf8)
        text.append(63 + bits)
    }
}
