/// Downsamples a picture row by row: every pixel of the result is the exact mean of the area that it covers.
///
/// Colours are weighted by alpha. Uses memory for the result and two rows of sums.
struct AreaAverager {
    private let plan: ImageTarget.Plan
    /// 1 for gray, 3 for RGB, 4 for RGBA.
    private let channels: Int
    private let hasAlpha: Bool
    /// The side of a sample in pixels of the source.
    private let step: Int
    /// The used samples of a row.
    private let used: Range<Int>
    /// The sum of rows that lie entirely in the current row of the result.
    private var sums: [UInt32]
    /// The sum of rows that lie in it partially, in units of a row by the result's height. Both sums fit 32 bits, because sides fit
    /// 16.
    private var parts: [UInt32]
    private var hasParts = false
    private var sourceRow: Int
    private var row = 0
    private var out = 0
    private(set) var pixels: [UInt8]

    /// - Parameters:
    ///   - hasAlpha: whether the fourth of four channels is alpha; otherwise it is ignored. Nil: if there are four.
    ///   - step: the side of a sample in pixels of the source, where the samples are means of squares of pixels.
    /// - Precondition: with steps beyond 1, both sides of the used part are at least `step` times those of the result.
    init(_ plan: ImageTarget.Plan, channels: Int, hasAlpha: Bool? = nil, step: Int = 1) {
        precondition(
            step == 1 || (plan.sourceWidth >= plan.width * step && plan.sourceHeight >= plan.height * step),
            "A sample covers at most two pixels of the result on each side."
        )
        self.plan = plan
        self.channels = channels
        self.hasAlpha = hasAlpha ?? (channels == 4)
        self.step = step
        used = (plan.x / step)..<((plan.x + plan.sourceWidth - 1) / step + 1)
        sourceRow = plan.y / step
        sums = plan.isCopy ? [] : [UInt32](repeating: 0, count: used.count * channels)
        parts = sums
        pixels = [UInt8](repeating: 255, count: plan.width * plan.height * 4)
    }

    /// The rows of samples to add, in order.
    var usedRows: Range<Int> { (plan.y / step)..<((plan.y + plan.sourceHeight - 1) / step + 1) }

    /// The samples of a row to add.
    var usedColumns: Range<Int> { used }

    /// Adds the next used row; its first used sample is at `start`.
    mutating func add(_ source: [UInt8], at start: Int) {
        precondition(row < plan.height && source.count - start >= used.count * channels, "The row is wanted.")
        if plan.isCopy {
            copy(source, start)
            row += 1
            return
        }
        // What is used of the row, in units of a row by the result's height.
        let top = max(0, sourceRow * step - plan.y) * plan.height
        let bottom = min(plan.sourceHeight, (sourceRow + 1) * step - plan.y) * plan.height
        let boundary = (row + 1) * plan.sourceHeight
        sourceRow += 1
        if bottom <= boundary {
            if bottom - top == step * plan.height {
                addWhole(source, start)
            } else {
                addPart(source, start, UInt32(bottom - top))
            }
            if bottom == boundary { finishRow() }
        } else {
            // The result is not taller than the source: a source row overlaps at most one more row of the result.
            addPart(source, start, UInt32(boundary - top))
            finishRow()
            addPart(source, start, UInt32(bottom - boundary))
        }
    }

    private mutating func copy(_ source: [UInt8], _ start: Int) {
        let width = plan.width
        let (channels, hasAlpha) = (channels, hasAlpha)
        let first = out
        unsafe pixels.withUnsafeMutableBufferPointer { pixels in
            unsafe source.withUnsafeBufferPointer { source in
                let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                switch channels {
                case 4:
                    unsafe target.update(from: source, count: width * 4)
                    if !hasAlpha { for pixel in 0..<width { unsafe target[pixel &* 4 &+ 3] = 255 } }
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
        let count = used.count * channels
        let hasAlpha = hasAlpha
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
        let count = used.count * channels
        let hasAlpha = hasAlpha
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
        let (width, sourceWidth, channels, step, x) = (plan.width, plan.sourceWidth, channels, step, plan.x)
        let count = used.count * channels
        let height = UInt32(plan.height * step)
        let hadParts = hasParts
        let meanChannels = hasAlpha ? 4 : min(channels, 3)
        let area = UInt64(plan.sourceWidth) * UInt64(plan.sourceHeight)
        let first = out
        let origin = used.lowerBound
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe parts.withUnsafeMutableBufferPointer { parts in
                unsafe pixels.withUnsafeMutableBufferPointer { pixels in
                    let sums = unsafe sums.baseAddress.unsafelyUnwrapped
                    let parts = unsafe parts.baseAddress.unsafelyUnwrapped
                    let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                    for index in 0..<count { unsafe sums[index] &*= height }
                    if hadParts {
                        for index in 0..<count { unsafe sums[index] &+= parts[index] }
                        unsafe parts.update(repeating: 0, count: count)
                    }
                    for column in 0..<width {
                        // From `left` to `right` in units of a column by the result's width.
                        let (left, right) = (column * sourceWidth, (column + 1) * sourceWidth)
                        let firstColumn = (left / width + x) / step - origin
                        let lastColumn = ((right - 1) / width + x) / step - origin
                        let headEnd = ((firstColumn + origin + 1) * step - x) * width
                        let tailStart = ((lastColumn + origin) * step - x) * width
                        var totals = SIMD4<UInt64>()
                        for channel in 0..<meanChannels {
                            var inner: UInt64 = 0
                            var index = (firstColumn + 1) * channels + channel
                            while index < lastColumn * channels {
                                inner &+= unsafe UInt64(sums[index])
                                index &+= channels
                            }
                            var total = inner &* UInt64(width * step)
                            let head = unsafe UInt64(sums[firstColumn * channels + channel])
                            if firstColumn == lastColumn {
                                total &+= head &* UInt64(right - left)
                            } else {
                                let tail = unsafe UInt64(sums[lastColumn * channels + channel])
                                total &+= head &* UInt64(headEnd - left)
                                total &+= tail &* UInt64(right - tailStart)
                            }
                            totals[channel] = total
                        }
                        let pixel = AreaMean.pixel(totals, channels: meanChannels, area: area)
                        for channel in 0..<4 { unsafe target[column * 4 + channel] = pixel[channel] }
                    }
                    unsafe sums.update(repeating: 0, count: count)
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
