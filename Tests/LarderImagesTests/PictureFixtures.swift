import Foundation
import LarderImages
import Testing

/// A small PNG that another program wrote, and the pixels that it must decode to.
struct PictureFixture: Sendable, CustomTestStringConvertible {
    let name: String
    let width: Int
    let height: Int
    let bytes: [UInt8]
    let pixels: [UInt8]

    var testDescription: String { name }

    /// All fixtures, written by `Fixtures/make-png.py` and `make-jpeg.py`.
    static let all: [PictureFixture] = {
        guard let url = Bundle.module.url(forResource: "png", withExtension: "txt", subdirectory: "Fixtures"),
            let text = try? String(contentsOf: url, encoding: .utf8)
        else { return [] }
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count == 5, let width = Int(parts[1]), let height = Int(parts[2]),
                let bytes = Data(base64Encoded: String(parts[3])), let pixels = Data(base64Encoded: String(parts[4]))
            else { return nil }
            return PictureFixture(
                name: String(parts[0]),
                width: width,
                height: height,
                bytes: Array(bytes),
                pixels: Array(pixels)
            )
        }
    }()

    static func named(_ name: String) throws -> PictureFixture { try #require(all.first { $0.name == name }) }

    /// The downsampled part of the picture, by a plain reference computation.
    func averaged(_ plan: ImageTarget.Plan) -> [UInt8] {
        var result: [UInt8] = []
        if plan.width == plan.sourceWidth, plan.height == plan.sourceHeight {
            // Without averaging, transparent pixels keep their colours.
            for y in plan.y..<(plan.y + plan.height) {
                result += pixels[((y * width + plan.x) * 4)..<((y * width + plan.x + plan.width) * 4)]
            }
            return result
        }
        let (scaleX, scaleY) =
            (Double(plan.sourceWidth) / Double(plan.width), Double(plan.sourceHeight) / Double(plan.height))
        for y in 0..<plan.height {
            for x in 0..<plan.width {
                var sums = [0.0, 0.0, 0.0, 0.0]
                for row in Self.covered(y, scaleY, plan.sourceHeight) {
                    let high = min(Double(row + 1), Double(y + 1) * scaleY) - max(Double(row), Double(y) * scaleY)
                    guard high > 1e-9 else { continue }
                    for column in Self.covered(x, scaleX, plan.sourceWidth) {
                        let wide =
                            min(Double(column + 1), Double(x + 1) * scaleX) - max(Double(column), Double(x) * scaleX)
                        guard wide > 1e-9 else { continue }
                        let index = ((row + plan.y) * width + column + plan.x) * 4
                        let alpha = Double(pixels[index + 3]) * high * wide
                        for channel in 0..<3 { sums[channel] += Double(pixels[index + channel]) * alpha }
                        sums[3] += alpha
                    }
                }
                for channel in 0..<3 { result.append(sums[3] > 0 ? UInt8((sums[channel] / sums[3]).rounded()) : 0) }
                result.append(UInt8((sums[3] / (scaleX * scaleY)).rounded()))
            }
        }
        return result
    }

    /// The rows or columns that one of the result covers, and perhaps one more.
    private static func covered(_ index: Int, _ scale: Double, _ count: Int) -> Range<Int> {
        Int(Double(index) * scale)..<min(count, Int(Double(index + 1) * scale) + 1)
    }
}

extension DecodedImage {
    /// Whether both are equal except for the rounding of halves.
    func isNearly(_ other: [UInt8]) -> Bool {
        pixels.count == other.count && zip(pixels, other).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
    }
}
