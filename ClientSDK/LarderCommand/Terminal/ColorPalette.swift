import Larder

/// The colours that represent a picture best, found by median cut (Heckbert: Color image quantization, SIGGRAPH 1982), with error
/// diffusion (Floyd and Steinberg, 1976).
struct ColorPalette {
    struct Color: Hashable {
        var red: Int
        var green: Int
        var blue: Int
    }

    /// Pixels whose channels have the same five upper bits.
    private struct Cell {
        var count = 0
        var red = 0
        var green = 0
        var blue = 0

        static func index(_ red: Int, _ green: Int, _ blue: Int) -> Int {
            (red >> 3) << 10 | (green >> 3) << 5 | blue >> 3
        }
    }

    private(set) var colors: [Color] = []

    /// - Parameter countMaximum: the maximum number of colours, from 1 to 256.
    init(_ image: DecodedImage, countMaximum: Int) {
        var cells = [Cell](repeating: Cell(), count: 1 << 15)
        for start in stride(from: 0, to: image.pixels.count, by: 4) {
            let color = Self.color(image, start)
            let index = Cell.index(color.red, color.green, color.blue)
            cells[index].count += 1
            cells[index].red += color.red
            cells[index].green += color.green
            cells[index].blue += color.blue
        }
        cells.removeAll { $0.count == 0 }
        var boxes = cells.isEmpty ? [] : [cells]
        while boxes.count < countMaximum {
            let sizes = boxes.map { $0.count > 1 ? Self.spread($0).error : 0 }
            guard let largest = sizes.indices.max(by: { sizes[$0] < sizes[$1] }), sizes[largest] > 0 else { break }
            let (first, second) = Self.halves(boxes[largest])
            boxes[largest] = first
            boxes.append(second)
        }
        colors = boxes.map { box in
            let count = box.reduce(0) { $0 + $1.count }
            return Color(
                red: box.reduce(count / 2) { $0 + $1.red } / count,
                green: box.reduce(count / 2) { $0 + $1.green } / count,
                blue: box.reduce(count / 2) { $0 + $1.blue } / count
            )
        }
    }

    /// The pixel composited on black.
    private static func color(_ image: DecodedImage, _ start: Int) -> Color {
        let alpha = Int(image.pixels[start + 3])
        return Color(
            red: Int(image.pixels[start]) * alpha / 255,
            green: Int(image.pixels[start + 1]) * alpha / 255,
            blue: Int(image.pixels[start + 2]) * alpha / 255
        )
    }

    private static let channels: [@Sendable (Cell) -> Int] = [
        { $0.red / $0.count }, { $0.green / $0.count }, { $0.blue / $0.count },
    ]

    /// The channel in which a box is longest, and the squared length times the pixels.
    private static func spread(_ box: [Cell]) -> (channel: Int, error: Int) {
        let count = box.reduce(0) { $0 + $1.count }
        var longest = (channel: 0, error: 0)
        for (channel, value) in channels.enumerated() {
            let values = box.map(value)
            let length = (values.max() ?? 0) - (values.min() ?? 0)
            if length * length * count > longest.error { longest = (channel, length * length * count) }
        }
        return longest
    }

    /// The halves of a box with about as many pixels each.
    private static func halves(_ box: [Cell]) -> ([Cell], [Cell]) {
        let value = channels[spread(box).channel]
        let sorted = box.sorted { value($0) < value($1) }
        let half = box.reduce(0) { $0 + $1.count } / 2
        var (count, end) = (0, 0)
        while end < sorted.count - 1, count < half || end == 0 {
            count += sorted[end].count
            end += 1
        }
        return (Array(sorted[..<end]), Array(sorted[end...]))
    }

    /// The index of a colour for every pixel; the difference is spread over the pixels to the right and below.
    func dithered(_ image: DecodedImage) -> [UInt8] {
        var nearest = [Int16](repeating: -1, count: 1 << 15)
        var indices: [UInt8] = []
        indices.reserveCapacity(image.width * image.height)
        // The errors of a row, times 16, with a pixel more on both sides.
        let zero = Color(red: 0, green: 0, blue: 0)
        var below = [Color](repeating: zero, count: image.width + 2)
        for y in 0..<image.height {
            let here = below
            below = [Color](repeating: zero, count: image.width + 2)
            var ahead = zero
            for x in 0..<image.width {
                let color = Self.color(image, (y * image.width + x) * 4)
                func wanted(_ value: Int, _ error: Int) -> Int { min(max(value + error / 16, 0), 255) }
                let red = wanted(color.red, here[x + 1].red + ahead.red)
                let green = wanted(color.green, here[x + 1].green + ahead.green)
                let blue = wanted(color.blue, here[x + 1].blue + ahead.blue)
                let cell = Cell.index(red, green, blue)
                if nearest[cell] < 0 {
                    nearest[cell] = Int16(self.nearest(red & ~7 | 4, green & ~7 | 4, blue & ~7 | 4))
                }
                let index = Int(nearest[cell])
                indices.append(UInt8(index))
                let error = Color(
                    red: red - colors[index].red,
                    green: green - colors[index].green,
                    blue: blue - colors[index].blue
                )
                ahead = Color(red: error.red * 7, green: error.green * 7, blue: error.blue * 7)
                for (offset, weight) in [(0, 3), (1, 5), (2, 1)] {
                    below[x + offset].red += error.red * weight
                    below[x + offset].green += error.green * weight
                    below[x + offset].blue += error.blue * weight
                }
            }
        }
        return indices
    }

    private func nearest(_ red: Int, _ green: Int, _ blue: Int) -> Int {
        func distance(_ color: Color) -> Int {
            let (r, g, b) = (color.red - red, color.green - green, color.blue - blue)
            return r * r + g * g + b * b
        }
        return colors.indices.min { distance(colors[$0]) < distance(colors[$1]) } ?? 0
    }
}
