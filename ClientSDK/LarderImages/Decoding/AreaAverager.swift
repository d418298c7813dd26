/// Downsamples a picture row by row: every pixel of the result is the exact mean of the area that it covers.
///
/// Colours are weighted by alpha. Uses memory for the result, two rows of sums and a row of weights.
struct AreaAverager {
    private let plan: ImageTarget.Plan
    /// 1 for gray, 3 for RGB, 4 for RGBA.
    private let channels: Int
    let hasAlpha: Bool
    /// The side of a sample in pixels of the source.
    private let step: Int
    /// The used samples of a row.
    private let used: Range<Int>
    private let columns: [AveragedColumn]
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
    ///   - hasAlpha: whether the fourth of four channels is alpha; otherwise it is 255. Nil: if there are four.
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
        columns = plan.isCopy ? [] : (0..<plan.width).map { AveragedColumn($0, plan, step: step) }
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
                    // The weight is at most a side of the picture. Products of 16 bits are quicker than those of 32.
                    let weight = UInt32(UInt16(truncatingIfNeeded: weight))
                    for index in 0..<count { unsafe parts[index] &+= UInt32(source[index]) &* weight }
                }
            }
        }
    }

    /// Completes a row of the result and clears the sums.
    private mutating func finishRow() {
        let (width, channels, meanChannels) = (plan.width, channels, hasAlpha ? 4 : min(channels, 3))
        let count = used.count * channels
        let height = UInt32(plan.height * step)
        let innerWeight = UInt64(plan.width * step)
        let hadParts = hasParts
        let mean = AreaMean(area: UInt64(plan.sourceWidth) * UInt64(plan.sourceHeight))
        let first = out
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe parts.withUnsafeMutableBufferPointer { parts in
                unsafe pixels.withUnsafeMutableBufferPointer { pixels in
                    unsafe columns.withUnsafeBufferPointer { columns in
                        let sums = unsafe sums.baseAddress.unsafelyUnwrapped
                        let parts = unsafe parts.baseAddress.unsafelyUnwrapped
                        let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                        let columns = unsafe columns.baseAddress.unsafelyUnwrapped
                        for index in 0..<count { unsafe sums[index] &*= height }
                        if hadParts {
                            for index in 0..<count { unsafe sums[index] &+= parts[index] }
                            unsafe parts.update(repeating: 0, count: count)
                        }
                        for index in 0..<width {
                            let column = unsafe columns[index]
                            let head = unsafe sums + column.first &* channels
                            let tail = unsafe sums + column.last &* channels
                            if meanChannels == 3 {
                                // Nearly all pictures. Scalars, because vectors of 64 bits have no products on most processors.
                                var (red, green, blue): (UInt64, UInt64, UInt64) = (0, 0, 0)
                                var next = unsafe head + channels
                                while unsafe next < tail {
                                    unsafe red &+= UInt64(next[0])
                                    unsafe green &+= UInt64(next[1])
                                    unsafe blue &+= UInt64(next[2])
                                    unsafe next += channels
                                }
                                @inline(__always)
                                func value(_ inner: UInt64, _ channel: Int) -> UInt8 {
                                    unsafe mean.value(
                                        inner &* innerWeight &+ UInt64(head[channel]) &* column.headWeight
                                            &+ UInt64(tail[channel]) &* column.tailWeight
                                    )
                                }
                                // The fourth byte is 255 already.
                                unsafe target[index &* 4] = value(red, 0)
                                unsafe target[index &* 4 &+ 1] = value(green, 1)
                                unsafe target[index &* 4 &+ 2] = value(blue, 2)
                                continue
                            }
                            var totals = SIMD4<UInt64>()
                            for channel in 0..<meanChannels {
                                var inner: UInt64 = 0
                                var next = unsafe head + channels
                                while unsafe next < tail {
                                    unsafe inner &+= UInt64(next[channel])
                                    unsafe next += channels
                                }
                                totals[channel] =
                                    unsafe inner &* innerWeight &+ UInt64(head[channel]) &* column.headWeight
                                    &+ UInt64(tail[channel]) &* column.tailWeight
                            }
                            let pixel = mean.pixel(totals, channels: meanChannels)
                            for channel in 0..<4 { unsafe target[index &* 4 &+ channel] = pixel[channel] }
                        }
                        unsafe sums.update(repeating: 0, count: count)
                    }
                }
            }
        }
        hasParts = false
        out += width * 4
        row += 1
    }
}

/// The used samples that a column of the result covers.
private struct AveragedColumn {
    let first: Int
    let last: Int
    /// How much of the first and of the last is covered, in units of a pixel of the source by the result's width. The last one has
    /// no weight where it is the first.
    let headWeight: UInt64
    let tailWeight: UInt64

    init(_ column: Int, _ plan: ImageTarget.Plan, step: Int) {
        let (left, right) = (column * plan.sourceWidth, (column + 1) * plan.sourceWidth)
        let origin = plan.x / step
        first = (left / plan.width + plan.x) / step - origin
        last = ((right - 1) / plan.width + plan.x) / step - origin
        let headEnd = ((first + origin + 1) * step - plan.x) * plan.width
        let tailStart = ((last + origin) * step - plan.x) * plan.width
        headWeight = UInt64(min(headEnd, right) - left)
        tailWeight = first == last ? 0 : UInt64(right - tailStart)
    }
}

/// Converts sums over an area to a pixel, rounded to the nearest.
private struct AreaMean {
    private let area: UInt64
    private let inverse: Double

    /// - Parameter area: the sum of the weights, below 2^32.
    init(area: UInt64) {
        self.area = area
        inverse = 1 / Double(area)
    }

    /// The mean of samples whose weights have the sum `area`.
    @inline(__always)
    func value(_ total: UInt64) -> UInt8 {
        // Exact: quotients are multiples of 1 / area, and half of one is more than the error of the product.
        UInt8(truncatingIfNeeded: Int((Double(Int(truncatingIfNeeded: total &+ area / 2)) + 0.5) * inverse))
    }

    /// - Parameters:
    ///   - totals: weighted sums: of samples, or of colours multiplied with alpha and of alpha, where there are four.
    @inline(__always)
    func pixel(_ totals: SIMD4<UInt64>, channels: Int) -> SIMD4<UInt8> {
        switch channels {
        case 4:
            let alpha = totals[3]
            guard alpha > 0 else { return SIMD4() }
            func weighted(_ total: UInt64) -> UInt8 {
                UInt8(truncatingIfNeeded: min(255, (total &+ alpha / 2) / alpha))
            }
            return SIMD4(weighted(totals[0]), weighted(totals[1]), weighted(totals[2]), value(alpha))
        case 3: return SIMD4(value(totals[0]), value(totals[1]), value(totals[2]), 255)
        default:
            let gray = value(totals[0])
            return SIMD4(gray, gray, gray, 255)
        }
    }
}
