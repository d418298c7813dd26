/// How a picture is turned to be shown (Exif 2.3 §4.6.4 A, tag 274).
enum ExifOrientation: UInt8, Sendable, Hashable, CaseIterable {
    case up = 1
    case upMirrored
    case down
    case downMirrored
    case leftMirrored
    case right
    case rightMirrored
    case left

    /// Whether width and height are exchanged.
    var isTransposed: Bool { rawValue >= 5 }

    /// Whether the stored columns are shown in the opposite order, as columns or as rows.
    private var reversesColumns: Bool { [.upMirrored, .down, .rightMirrored, .left].contains(self) }

    /// Whether the stored rows are shown in the opposite order, as rows or as columns.
    private var reversesRows: Bool { [.down, .downMirrored, .right, .rightMirrored].contains(self) }

    /// Finds the orientation in the first directory of an Exif segment; nil if there is none or it is invalid.
    init?(exif segment: ArraySlice<UInt8>) {
        guard segment.starts(with: Array("Exif\0\0".utf8)) else { return nil }
        let tiff = Array(segment.dropFirst(6))
        guard tiff.count >= 8, tiff[0] == tiff[1], tiff[0] == UInt8(ascii: "I") || tiff[0] == UInt8(ascii: "M") else {
            return nil
        }
        let isLittle = tiff[0] == UInt8(ascii: "I")
        func number(_ place: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 << 8 | Int(tiff[place + (isLittle ? count - 1 - $1 : $1)]) }
        }
        let directory = number(4, 4)
        guard number(2, 2) == 42, directory <= tiff.count - 2 else { return nil }
        for index in 0..<number(directory, 2) {
            let entry = directory + 2 + index * 12
            guard tiff.count - entry >= 12 else { return nil }
            guard number(entry, 2) == 0x112 else { continue }
            guard number(entry + 2, 2) == 3, number(entry + 4, 4) == 1 else { return nil }
            guard let value = UInt8(exactly: number(entry + 8, 2)) else { return nil }
            self.init(rawValue: value)
            return
        }
        return nil
    }

    /// The plan for the stored picture that becomes `plan` when it is turned.
    ///
    /// - Parameters:
    ///   - width: the width of the stored picture.
    ///   - height: its height.
    func stored(_ plan: ImageTarget.Plan, width: Int, height: Int) -> ImageTarget.Plan {
        let (x, y) = isTransposed ? (plan.y, plan.x) : (plan.x, plan.y)
        let (usedWidth, usedHeight) =
            isTransposed ? (plan.sourceHeight, plan.sourceWidth) : (plan.sourceWidth, plan.sourceHeight)
        return ImageTarget.Plan(
            x: reversesColumns ? width - x - usedWidth : x,
            y: reversesRows ? height - y - usedHeight : y,
            sourceWidth: usedWidth,
            sourceHeight: usedHeight,
            width: isTransposed ? plan.height : plan.width,
            height: isTransposed ? plan.width : plan.height
        )
    }

    /// Turns a stored picture of four bytes a pixel. Needs memory for a second one unless it is `.up`.
    func shown(_ pixels: [UInt8], width: Int, height: Int) -> [UInt8] {
        if self == .up { return pixels }
        precondition(pixels.count == width * height * 4, "A picture has four bytes for every pixel.")
        // The stored pixel that is shown first, and the way from each to the ones shown to its right and below.
        let first = (reversesColumns ? width - 1 : 0) + (reversesRows ? (height - 1) * width : 0)
        let (column, row) = (reversesColumns ? -1 : 1, reversesRows ? -width : width)
        let (right, below) = isTransposed ? (row, column) : (column, row)
        let (shownWidth, shownHeight) = isTransposed ? (height, width) : (width, height)
        return unsafe [UInt8](unsafeUninitializedCapacity: pixels.count) { target, count in
            unsafe pixels.withUnsafeBytes { source in
                // Each index below is that of a pixel. Tiles keep the rows of both pictures in the processor's cache.
                let target = UnsafeMutableRawBufferPointer(target)
                for top in stride(from: 0, to: shownHeight, by: 32) {
                    for left in stride(from: 0, to: shownWidth, by: 32) {
                        for y in top..<min(top + 32, shownHeight) {
                            for x in left..<min(left + 32, shownWidth) {
                                let pixel = unsafe source.loadUnaligned(
                                    fromByteOffset: (first + y * below + x * right) * 4,
                                    as: UInt32.self
                                )
                                unsafe target.storeBytes(
                                    of: pixel,
                                    toByteOffset: (y * shownWidth + x) * 4,
                                    as: UInt32.self
                                )
                            }
                        }
                    }
                }
            }
            count = pixels.count
        }
    }
}
