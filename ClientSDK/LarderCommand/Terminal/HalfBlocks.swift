import Larder

/// Images as text: each cell shows two pixels, the upper one in the foreground colour of `▀`, the lower one in the background colour.
enum HalfBlocks {
    /// Rows of text in 24-bit colours. An odd last row of pixels has no background.
    static func lines(_ image: DecodedImage) -> [String] {
        stride(from: 0, to: image.height, by: 2).map { y in
            var line = ""
            var last: (upper: Color, lower: Color?)?
            for x in 0..<image.width {
                let upper = Color(image, x, y)
                let lower = y + 1 < image.height ? Color(image, x, y + 1) : nil
                // The colours are written only where they change.
                if last?.upper != upper || last?.lower != lower || last == nil {
                    line += "\u{1b}[38;2;\(upper.text)"
                    line += lower.map { ";48;2;\($0.text)m" } ?? ";49m"
                    last = (upper, lower)
                }
                line += "▀"
            }
            return line + "\u{1b}[0m"
        }
    }

    /// The same without colours, in five shades.
    static func shades(_ image: DecodedImage) -> [String] {
        let shades: [Character] = [" ", "░", "▒", "▓", "█"]
        return stride(from: 0, to: image.height, by: 2).map { y in
            String(
                (0..<image.width).map { x in
                    let upper = Color(image, x, y).brightness
                    let lower = y + 1 < image.height ? Color(image, x, y + 1).brightness : upper
                    return shades[min(4, (upper + lower) * 5 / 512)]
                }
            )
        }
    }

    /// A pixel composited on black.
    private struct Color: Hashable {
        let red: Int
        let green: Int
        let blue: Int

        init(_ image: DecodedImage, _ x: Int, _ y: Int) {
            let start = (y * image.width + x) * 4
            let alpha = Int(image.pixels[start + 3])
            (red, green, blue) = (
                Int(image.pixels[start]) * alpha / 255,
                Int(image.pixels[start + 1]) * alpha / 255,
                Int(image.pixels[start + 2]) * alpha / 255
            )
        }

        var text: String { "\(red);\(green);\(blue)" }
        var brightness: Int { (red * 54 + green * 183 + blue * 18) / 255 }
    }
}
