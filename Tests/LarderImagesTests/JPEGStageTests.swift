import TestSupport
import Testing

@testable import LarderImages

@Suite("JPEG decoder, stages", .oneMinute)
struct JPEGStageTests {
    private func preview(
        _ start: [UInt8],
        beyond detail: Int = 0,
        into target: ImageTarget? = nil
    ) -> (image: DecodedImage, detail: Int)? {
        JPEGDecoder().preview(start, beyond: detail, into: target, limits: DecodedImage.Limits())
    }

    @Test(arguments: ["pillow-420-progressive", "cjpeg-scans-bits", "magick-progressive"])
    func `each scan that has arrived makes a better picture`(_ name: String) throws {
        let fixture = try JPEGFixture.named(name)
        let scans = JPEGEditor.markers(0xDA, in: fixture.bytes).count
        var stages: [(image: DecodedImage, detail: Int)] = []
        for count in 0..<fixture.bytes.count {
            guard let stage = preview(Array(fixture.bytes[..<count]), beyond: stages.last?.detail ?? 0) else {
                continue
            }
            #expect(stage.image.sourceWidth == fixture.width && stage.image.isOpaque)
            stages.append(stage)
        }
        #expect(stages.map { $0.detail } == Array(stages[0].detail..<scans) || stages.last?.detail == scans)
        #expect(stages.count > scans / 2)
        // Coarse ones of the first coefficients, then full ones that come nearer and nearer.
        #expect(stages[0].image.width <= (fixture.width + 7) / 8)
        let likeness = stages.filter { $0.image.width == fixture.width }.map { $0.image.similarity(to: fixture.pixels) }
        #expect(likeness.count >= 3 && (likeness.last ?? 0) > likeness[0] + 3, "\(likeness)")
        let whole = try #require(preview(fixture.bytes))
        #expect(whole.image.pixels == fixture.pixels && whole.detail == scans)
        #expect(preview(fixture.bytes, beyond: scans) == nil)
    }

    @Test func `the first scans of a photo are its means over eight pixels`() throws {
        let fixture = try JPEGFixture.named("pillow-gray-progressive")
        let scans = JPEGEditor.markers(0xDA, in: fixture.bytes)
        let stage = try #require(preview(Array(fixture.bytes[..<(scans[1] + 2)])))
        #expect(stage.detail == 1 && stage.image.width == 4 && stage.image.height == 2)
        let plan = ImageTarget.plan(width: fixture.width, height: fixture.height, target: nil)
            .limited(width: 4, height: 2)
        #expect(stage.image.similarity(to: fixture.picture.averaged(plan)) > 20)
    }

    @Test func `a preview has the size of its target, and is turned`() throws {
        let fixture = try JPEGFixture.named("pillow-420-progressive")
        let target = ImageTarget(width: 9, height: 9, mode: .fill)
        let stage = try #require(preview(Array(fixture.bytes.dropLast(20)), into: target))
        #expect(stage.image.width == 9 && stage.image.height == 9)
        // A transposing orientation, in an Exif segment behind the first marker.
        let exif: [UInt8] =
            [0xFF, 0xE1, 0, 34] + Array("Exif\0\0MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1]
            + [1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        let turned = Array(fixture.bytes[..<2] + exif + fixture.bytes[2...])
        let half = try #require(preview(Array(turned.dropLast(20))))
        #expect(half.image.width == fixture.height && half.image.height == fixture.width)
    }

    @Test func `sequential files have no previews`() throws {
        for name in ["pillow-420", "cjpeg-scans-components"] {
            let file = try JPEGFixture.named(name).bytes
            for count in stride(from: 0, through: file.count, by: 50) {
                #expect(preview(Array(file[..<count])) == nil)
            }
        }
    }
}
