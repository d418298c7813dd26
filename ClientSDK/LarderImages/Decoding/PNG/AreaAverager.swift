/// Downsamples a picture row by row: every pixel of the result is the exact mean of the area that it covers.
///
/// Colours are weighted by alpha. Uses memory for the result and two rows of sums.
struct AreaAverager {
    private let plan: ImageTarget.Plan
    /// 1 for gray, 3 for RGB, 4 for RGBA.
    private let channels: Int
    /// The sum of rows that lie entirely in the current row of the result.
    private var sums: [UInt32]
    /// The sum of rows that lie in it partially, in units of a row by the result's height. Both sums fit 32 bits, because sides fit
    /// 16.
    private var parts: [UInt32]
    private var hasParts = false
    private var sourceRow = 0
    private var row = 0
    private var out = 0
    private(set) var pixels: [UInt8]

    init(_ plan: ImageTarget.Plan, channels: Int) {
        self.plan = plan
        self.channels = channels
        sums = plan.isCopy ? [] : [UInt32](repeating: 0, count: plan.sourceWidth * channels)
        parts = sums
        pixels = [UInt8](repeating: 255, count: plan.width * plan.height * 4)
    }

    /// Adds the next used row; its first used sample is at `start`.
    mutating func add(_ source: [UInt8], at start: Int) {
        precondition(row < plan.height && source.count - start >= plan.sourceWidth * channels, "The row is wanted.")
        if plan.isCopy {
            copy(source, start)
            row += 1
            return
        }
        let top = sourceRow * plan.height
        let boundary = (row + 1) * plan.sourceHeight
        sourceRow += 1
        if top + plan.height <= boundary {
            addWhole(source, start)
            if top + plan.height == boundary { finishRow() }
        } else {
            // The result is not taller than the source: a source row overlaps at most one more row of the result.
            addPart(source, start, UInt32(boundary - top))
            finishRow()
            addPart(source, start, UInt32(top + plan.height - boundary))
        }
    }

    private mutating func copy(_ source: [UInt8], _ start: Int) {
        let width = plan.width
        let channels = channels
        let first = out
        unsafe pixels.withUnsafeMutableBufferPointer { pixels in
            unsafe source.withUnsafeBufferPointer { source in
                let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                switch channels {
                case 4: unsafe target.update(from: source, count: width * 4)
                case 3:
                    for pixel in 0..<width {
                        unsafe target[pixel &* 4] = source[pixel &* 3]
                        unsafe target[pixel &* 4 &+ 1] = source[pixel &* 3 &+ 1]
                        unsafe target[pixel &* 4 &+ 2] = source[pixel &* 3 &+ 2]
                    }
                default:
                    for pixel in 0..<width {
                        let gray = unsafe source[pixel]
                        unsafe target[pixel &* 4] = gray
                        unsafe target[pixel &* 4 &+ 1] = gray
                        unsafe target[pixel &* 4 &+ 2] = gray
                    }
                }
            }
        }
        out += width * 4
    }

    private mutating func addWhole(_ source: [UInt8], _ start: Int) {
        let count = plan.sourceWidth * channels
        let hasAlpha = channels == 4
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe source.withUnsafeBufferPointer { source in
                let sums = unsafe sums.baseAddress.unsafelyUnwrapped
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                if hasAlpha {
                    var index = 0
                    while index < count {
                        let alpha = unsafe UInt32(source[index &+ 3])
                        unsafe sums[index] &+= UInt32(source[index]) &* alpha
                        unsafe sums[index &+ 1] &+= UInt32(source[index &+ 1]) &* alpha
                        unsafe sums[index &+ 2] &+= UInt32(source[index &+ 2]) &* alpha
                        unsafe sums[index &+ 3] &+= alpha
                        index &+= 4
                    }
                } else {
                    for index in 0..<count { unsafe sums[index] &+= UInt32(source[index]) }
                }
            }
        }
    }

    private mutating func addPart(_ source: [UInt8], _ start: Int, _ weight: UInt32) {
        let count = plan.sourceWidth * channels
        let hasAlpha = channels == 4
        hasParts = true
        unsafe parts.withUnsafeMutableBufferPointer { parts in
            unsafe source.withUnsafeBufferPointer { source in
                let parts = unsafe parts.baseAddress.unsafelyUnwrapped
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                if hasAlpha {
                    var index = 0
                    while index < count {
                        let alpha = unsafe UInt32(source[index &+ 3]) &* weight
                        unsafe parts[index] &+= UInt32(source[index]) &* alpha
                        unsafe parts[index &+ 1] &+= UInt32(source[index &+ 1]) &* alpha
                        unsafe parts[index &+ 2] &+= UInt32(source[index &+ 2]) &* alpha
                        unsafe parts[index &+ 3] &+= alpha
                        index &+= 4
                    }
                } else {
                    for index in 0..<count { unsafe parts[index] &+= UInt32(source[index]) &* weight }
                }
            }
        }
    }

    /// Completes a row of the result and clears the sums.
    private mutating func finishRow() {
        let (width, sourceWidth, channels) = (plan.width, plan.sourceWidth, channels)
        let height = UInt32(plan.height)
        let hadParts = hasParts
        let area = UInt64(plan.sourceWidth) * UInt64(plan.sourceHeight)
        let first = out
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe parts.withUnsafeMutableBufferPointer { parts in
                unsafe pixels.withUnsafeMutableBufferPointer { pixels in
                    let sums = unsafe sums.baseAddress.unsafelyUnwrapped
                    let parts = unsafe parts.baseAddress.unsafelyUnwrapped
                    let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                    for index in 0..<(sourceWidth * channels) { unsafe sums[index] &*= height }
                    if hadParts {
                        for index in 0..<(sourceWidth * channels) { unsafe sums[index] &+= parts[index] }
                        unsafe parts.update(repeating: 0, count: sourceWidth * channels)
                    }
                    for column in 0..<width {
                        // From `left` to `right` in units of a column by the result's width.
                        let (left, right) = (column * sourceWidth, (column + 1) * sourceWidth)
                        let (firstColumn, lastColumn) = (left / width, (right - 1) / width)
                        var totals = SIMD4<UInt64>()
                        for channel in 0..<channels {
                            var inner: UInt64 = 0
                            var index = (firstColumn + 1) * channels + channel
                            while index < lastColumn * channels {
                                inner &+= unsafe UInt64(sums[index])
                                index &+= channels
                            }
                            var total = inner &* UInt64(width)
                            let head = unsafe UInt64(sums[firstColumn * channels + channel])
                            if firstColumn == lastColumn {
                                total &+= head &* UInt64(right - left)
                            } else {
                                let tail = unsafe UInt64(sums[lastColumn * channels + channel])
                                total &+= head &* UInt64((firstColumn + 1) * width - left)
                                total &+= tail &* UInt64(right - lastColumn * width)
                            }
                            totals[channel] = total
                        }
                        let pixel = AreaMean.pixel(totals, channels: channels, area: area)
                        for channel in 0..<4 { unsafe target[column * 4 + channel] = pixel[channel] }
                    }
                    unsafe sums.update(repeating: 0, count: sourceWidth * channels)
                }
            }
        }
        hasParts = false
        out += width * 4
        row += 1
    }
}

/// Converts sums over an area to a pixel, rounded to the nearest.
enum AreaMean {
    /// - Parameters:
    ///   - totals: weighted sums: of samples, or of colours multiplied with alpha and of alpha, where there are four.
    ///   - area: the sum of the weights.
    static func pixel(_ totals: SIMD4<UInt64>, channels: Int, area: UInt64) -> SIMD4<UInt8> {
        func mean(_ total: UInt64, _ weight: UInt64) -> UInt8 {
            UInt8(truncatingIfNeeded: min(255, (total &+ weight / 2) / weight))
        }
        switch channels {
        case 4:
            guard totals[3] > 0 else { return SIMD4() }
            let alpha = totals[3]
            return SIMD4(mean(totals[0], alpha), mean(totals[1], alpha), mean(totals[2], alpha), mean(alpha, area))
        case 3: return SIMD4(mean(totals[0], area), mean(totals[1], area), mean(totals[2], area), 255)
        default:
            let gray = mean(totals[0], area)
            return SIMD4(gray, gray, gray, 255)
        }
    }
}
