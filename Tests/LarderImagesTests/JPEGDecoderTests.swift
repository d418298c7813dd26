import LarderTime
import TestSupport
import Testing

@testable import LarderImages

@Suite("JPEG decoder", .oneMinute)
struct JPEGDecoderTests {
    private func decode(
        _ bytes: [UInt8],
        into target: ImageTarget? = nil,
        limits: DecodedImage.Limits = DecodedImage.Limits()
    ) throws(ImageError) -> DecodedImage {
        try JPEGDecoder().decode(bytes, into: target, limits: limits)
    }

    @Test func `there are files of three encoders in every layout`() {
        #expect(JPEGFixture.all.count >= 60)
    }

    @Test(arguments: JPEGFixture.all)
    func `files of other encoders decode to the pixels of libjpeg`(_ fixture: JPEGFixture) throws {
        let image = try decode(fixture.bytes)
        #expect(image.width == fixture.width && image.height == fixture.height)
        #expect(image.sourceWidth == fixture.width && image.sourceHeight == fixture.height)
        #expect(image.isOpaque)
        #expect(image.pixels == fixture.pixels)
        try JPEGDecoder().verify(fixture.bytes)
    }

    @Test(arguments: JPEGFixture.all)
    func `a downsampled pixel is the mean of the pixels that it covers, for every file layout`(
        _ fixture: JPEGFixture
    ) throws {
        let whole = fixture.picture
        for (width, height) in [(1, 1), (2, 2), (4, 2), (9, 9), (17, 9), (35, 3), (5, 19), (40, 40)] {
            for mode in [ImageTarget.ContentMode.fit, .fill] {
                let target = ImageTarget(width: width, height: height, mode: mode)
                let plan = ImageTarget.plan(width: fixture.width, height: fixture.height, target: target)
                let image = try decode(fixture.bytes, into: target)
                #expect(image.width == plan.width && image.height == plan.height)
                let expected = whole.averaged(plan)
                let similarity = image.similarity(to: expected)
                // The full size is exact, and means are rounded.
                let isExact = plan.width == plan.sourceWidth && plan.height == plan.sourceHeight
                #expect(
                    similarity >= (isExact ? .infinity : 48),
                    "\(fixture.name) into \(width) × \(height), \(mode): \(similarity) dB"
                )
            }
        }
    }

    @Test(arguments: ["harbour-640.jpg", "aurora-640.jpg"])
    func `a photo shown smaller is the mean of its pixels within 45 decibels`(_ name: String) throws {
        let file = try JPEGFixture.photo(name)
        let whole = try decode(file)
        let picture = PictureFixture(
            name: name,
            width: whole.width,
            height: whole.height,
            bytes: [],
            pixels: whole.pixels
        )
        for width in [80, 101, 160, 250, 320, 400] {
            let target = ImageTarget(width: width, height: width, mode: width == 101 ? .fill : .fit)
            let plan = ImageTarget.plan(width: whole.width, height: whole.height, target: target)
            let similarity = try decode(file, into: target).similarity(to: picture.averaged(plan))
            #expect(similarity > 45, "\(width): \(similarity) dB")
        }
    }

    @Test func `a turned picture is cropped as it is shown`() throws {
        for orientation in ExifOrientation.allCases {
            let fixture = try JPEGFixture.named("pillow-orientation-\(orientation.rawValue)")
            #expect((fixture.width < fixture.height) == orientation.isTransposed)
            for (width, height) in [(12, 19), (19, 12), (7, 7), (35, 4), (4, 35)] {
                let target = ImageTarget(width: width, height: height, mode: .fill)
                let plan = ImageTarget.plan(width: fixture.width, height: fixture.height, target: target)
                let image = try decode(fixture.bytes, into: target)
                if plan.width == plan.sourceWidth, plan.height == plan.sourceHeight {
                    let expected = fixture.image.cropped(x: plan.x, y: plan.y, width: plan.width, height: plan.height)
                    #expect(image.pixels == expected, "\(orientation), \(width) × \(height)")
                } else {
                    #expect(image.similarity(to: fixture.picture.averaged(plan)) > 30, "\(orientation)")
                }
            }
        }
    }

    @Test func `an invalid orientation is ignored`() throws {
        let fixture = try JPEGFixture.named("pillow-orientation-6")
        let up = try JPEGFixture.named("pillow-orientation-1").pixels
        let tag = try #require(fixture.bytes.indices.first { Array(fixture.bytes[$0...].prefix(2)) == [0x01, 0x12] })
        for (offset, value) in [(0, 2), (2, 1), (3, 4), (7, 2), (9, 0), (9, 9)] as [(Int, UInt8)] {
            var file = fixture.bytes
            file[tag + offset] = value
            #expect(try decode(file).pixels == up, "byte \(offset) = \(value)")
        }
    }

    @Test func `12 megapixels shown at 400 × 300 need far less memory than their bitmap`() throws {
        let file = JPEGEditor.resized(try JPEGFixture.named("pillow-420").bytes, width: 4_000, height: 3_000)
        let parsed = try JPEGFile(file, limits: DecodedImage.Limits())
        #expect(!parsed.needsCoefficients && JPEGLayout(parsed.frame).byteCount < 250_000)
    }

    @Test func `the name and the signature`() {
        #expect(JPEGDecoder().name == "JPEG")
        #expect(JPEGDecoder().canDecode([0xFF, 0xD8, 0xFF]) && !JPEGDecoder().canDecode([0xFF, 0xD8]))
        #expect(
            (try? ([PNGDecoder(), JPEGDecoder()] as [any ImageDecoder]).decoder(for: [0xFF, 0xD8, 0xFF]))?.name
                == "JPEG"
        )
    }

    @Test func `a cancelled decode ends`() async throws {
        let file = try JPEGFixture.named("pillow-420").bytes
        let decoding = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try JPEGDecoder().decode(file, into: nil, limits: DecodedImage.Limits())
        }
        await #expect { try await decoding.value } throws: { ($0 as? ImageError)?.code == .cancelled }
    }
}

extension JPEGFixture {
    /// For the plain computation of means.
    var picture: PictureFixture {
        PictureFixture(name: name, width: width, height: height, bytes: bytes, pixels: pixels)
    }
}
