import Foundation
import LarderImages
import Testing

/// A small JPEG that another program wrote, and the pixels that libjpeg-turbo decodes it to.
struct JPEGFixture: Sendable, CustomTestStringConvertible {
    let name: String
    let width: Int
    let height: Int
    let bytes: [UInt8]
    /// RGBA.
    let pixels: [UInt8]

    var testDescription: String { name }

    var image: DecodedImage { DecodedImage(width: width, height: height, pixels: pixels, isOpaque: true) }

    /// All of them, as `Fixtures/make-jpeg.py` wrote them.
    static let all: [JPEGFixture] = {
        guard let url = Bundle.module.url(forResource: "jpeg", withExtension: "txt", subdirectory: "Fixtures"),
            let text = try? String(contentsOf: url, encoding: .utf8)
        else { return [] }
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count == 5, let width = Int(parts[1]), let height = Int(parts[2]),
                let bytes = Data(base64Encoded: String(parts[3])), let rgb = Data(base64Encoded: String(parts[4]))
            else { return nil }
            var pixels = [UInt8](repeating: 255, count: width * height * 4)
            for (index, sample) in rgb.enumerated() { pixels[index / 3 * 4 + index % 3] = sample }
            return JPEGFixture(
                name: String(parts[0]),
                width: width,
                height: height,
                bytes: Array(bytes),
                pixels: pixels
            )
        }
    }()

    static func named(_ name: String) throws -> JPEGFixture { try #require(all.first { $0.name == name }) }

    /// A photo of the demo data.
    static func photo(_ name: String) throws -> [UInt8] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return Array(try Data(contentsOf: root.appending(path: "Fixtures/images/\(name)")))
    }
}

/// Finds and changes the segments of a JPEG.
enum JPEGEditor {
    /// The places of all markers of a kind, of their first bytes.
    static func markers(_ kind: UInt8, in file: [UInt8]) -> [Int] {
        file.indices.dropLast().filter { file[$0] == 0xFF && file[$0 + 1] == kind }
    }

    static func frame(of file: [UInt8]) -> Int {
        (0xC0...0xC2).compactMap { markers($0, in: file).first }.min() ?? 0
    }

    /// The places of restart markers.
    static func restarts(in file: [UInt8]) -> [Int] {
        (UInt8(0xD0)...0xD7).flatMap { markers($0, in: file) }.sorted()
    }

    static func resized(_ file: [UInt8], width: Int, height: Int) -> [UInt8] {
        var file = file
        let place = frame(of: file) + 5
        let size = [height >> 8, height & 255, width >> 8, width & 255].map { UInt8($0) }
        file.replaceSubrange(place..<(place + 4), with: size)
        return file
    }
}

extension DecodedImage {
    /// A part of the picture.
    func cropped(x: Int, y: Int, width: Int, height: Int) -> [UInt8] {
        (y..<(y + height)).flatMap { row -> ArraySlice<UInt8> in
            let start = (row * self.width + x) * 4
            return pixels[start..<(start + width * 4)]
        }
    }

    /// The ratio of the largest value to the mean difference of two pictures in decibels; infinite for equal ones.
    func similarity(to other: [UInt8]) -> Double {
        guard pixels.count == other.count else { return 0 }
        var sum = 0
        for index in pixels.indices where index & 3 != 3 {
            let difference = Int(pixels[index]) - Int(other[index])
            sum += difference * difference
        }
        let mean = Double(sum) / Double(pixels.count * 3 / 4)
        return 10 * log10(65_025 / mean)
    }
}
