/// Downsamples a picture row by row: every pixel of the result is the exact mean of the area that it covers.
///
/// Colours are weighted by alpha. Uses memory for the result, a row of sums and a row of weights.
struct AreaAverager {
    private let plan: ImageTarget.Plan
    /// 1 for gray, 3 for RGB, 4 for RGBA.
    private let channels: Int
    let hasAlpha: Bool
    /// The used samples of a row.
    private let used: Range<Int>
    private let columns: [AveragedColumn]
    /// The sum of the rows of the current row of the result, in units of a row by the result's height. It fits 32 bits, because sides fit 16.
    private var sums: [UInt32]
    /// The number of rows that were added.
    private var sourceRow = 0
    private var row = 0
    private var out = 0
    private(set) var pixels: [UInt8]

    /// - Parameter hasAlpha: whether the fourth of four channels is alpha; otherwise it is 255. Nil: if there are four.
    init(_ plan: ImageTarget.Plan, channels: Int, hasAlpha: Bool? = nil) {
        self.plan = plan
        self.channels = channels
        self.hasAlpha = hasAlpha ?? (channels == 4)
        used = plan.x..<(plan.x + plan.sourceWidth)
        columns = plan.isCopy ? [] : (0..<plan.width).map { AveragedColumn($0, plan) }
        sums = plan.isCopy ? [] : [UInt32](repeating: 0, count: used.count * channels)
        pixels = [UInt8](repeating: 255, count: plan.width * plan.height * 4)
    }

    /// The rows of samples to add, in order.
    var usedRows: Range<Int> { plan.y..<(plan.y + plan.sourceHeight) }

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
        let top = sourceRow * plan.height
        let bottom = top + plan.height
        let boundary = (row + 1) * plan.sourceHeight
        sourceRow += 1
        if bottom < boundary { return add(source, start, weight: bottom - top) }
        // The result is not taller than the source: a source row overlaps at most one more row of the result.
        add(source, start, weight: boundary - top)
        finishRow()
        if bottom > boundary { add(source, start, weight: bottom - boundary) }
    }

    private mutating func copy(_ source: [UInt8], _ start: Int) {
        let (width, channels, first) = (plan.width, channels, out)
        unsafe pixels.withUnsafeMutableBufferPointer { pixels in
            unsafe source.withUnsafeBufferPointer { source in
                let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                let (count, step) = (channels == 4 ? 4 : 3, channels == 1 ? 0 : 1)
                for pixel in 0..<width {
                    for channel in 0..<count {
                        unsafe target[pixel &* 4 &+ channel] = source[pixel &* channels &+ channel &* step]
                    }
                }
            }
        }
        out += width * 4
    }

    private mutating func add(_ source: [UInt8], _ start: Int, weight: Int) {
        let count = used.count * channels
        let hasAlpha = hasAlpha
        // The weight is at most a side of the picture. Products of 16 bits are quicker than those of 32.
        let weight = UInt32(UInt16(truncatingIfNeeded: weight))
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe source.withUnsafeBufferPointer { source in
                let sums = unsafe sums.baseAddress.unsafelyUnwrapped
                let source = unsafe source.baseAddress.unsafelyUnwrapped + start
                if hasAlpha {
                    var index = 0
                    while index < count {
                        let alpha = unsafe UInt32(source[index &+ 3]) &* weight
                        unsafe sums[index] &+= UInt32(source[index]) &* alpha
                        unsafe sums[index &+ 1] &+= UInt32(source[index &+ 1]) &* alpha
                        unsafe sums[index &+ 2] &+= UInt32(source[index &+ 2]) &* alpha
                        unsafe sums[index &+ 3] &+= alpha
                        index &+= 4
                    }
                } else {
                    for index in 0..<count { unsafe sums[index] &+= UInt32(source[index]) &* weight }
                }
            }
        }
    }

    /// Completes a row of the result and clears the sums.
    private mutating func finishRow() {
        let (width, channels, meanChannels) = (plan.width, channels, hasAlpha ? 4 : min(channels, 3))
        let innerWeight = UInt64(plan.width)
        let mean = AreaMean(area: UInt64(plan.sourceWidth) * UInt64(plan.sourceHeight))
        let first = out
        unsafe sums.withUnsafeMutableBufferPointer { sums in
            unsafe pixels.withUnsafeMutableBufferPointer { pixels in
                unsafe columns.withUnsafeBufferPointer { columns in
                    let target = unsafe pixels.baseAddress.unsafelyUnwrapped + first
                    let start = unsafe sums.baseAddress.unsafelyUnwrapped
                    for index in 0..<width {
                        let column = unsafe columns[index]
                        let head = unsafe start + column.first &* channels
                        let tail = unsafe start + column.last &* channels
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
                }
            }
            unsafe sums.update(repeating: 0)
        }
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

    init(_ column: Int, _ plan: ImageTarget.Plan) {
        let (left, right) = (column * plan.sourceWidth, (column + 1) * plan.sourceWidth)
        first = left / plan.width
        last = (right - 1) / plan.width
        headWeight = UInt64(min((first + 1) * plan.width, right) - left)
        tailWeight = first == last ? 0 : UInt64(right - last * plan.width)
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
