/// The seven passes of an interlaced PNG (PNG §8).
enum Adam7 {
    struct Pass: Sendable {
        let x: Int
        let y: Int
        let stepX: Int
        let stepY: Int

        /// The pixels of a row of the pass.
        func width(of picture: Int) -> Int { max(0, picture - x + stepX - 1) / stepX }

        /// The rows of the pass.
        func height(of picture: Int) -> Int { max(0, picture - y + stepY - 1) / stepY }
    }

    static let passes = [
        Pass(x: 0, y: 0, stepX: 8, stepY: 8), Pass(x: 4, y: 0, stepX: 8, stepY: 8),
        Pass(x: 0, y: 4, stepX: 4, stepY: 8), Pass(x: 2, y: 0, stepX: 4, stepY: 4),
        Pass(x: 0, y: 2, stepX: 2, stepY: 4), Pass(x: 1, y: 0, stepX: 2, stepY: 2),
        Pass(x: 0, y: 1, stepX: 1, stepY: 2),
    ]

    /// The number of passes that make up every eighth, fourth or second pixel.
    static func passCount(factor: Int) -> Int {
        switch factor {
        case 8: 1
        case 4: 3
        case 2: 5
        default: 7
        }
    }
}

/// Collects the pixels of an interlaced picture, in any order, into the result.
///
/// A smaller result is summed in place: 32 bytes for each of its pixels, and never the picture itself.
struct InterlaceGatherer {
    private let plan: ImageTarget.Plan
    private let channels: Int
    private var pixels: [UInt8]
    private var sums: [UInt64]
    /// For each used column: the first column of the result it counts for, and its share of it.
    private let columns: [(target: Int, weight: Int)]

    init(_ plan: ImageTarget.Plan, channels: Int) {
        self.plan = plan
        self.channels = channels
        let count = plan.width * plan.height * 4
        pixels = plan.isCopy ? [UInt8](repeating: 255, count: count) : []
        sums = plan.isCopy ? [] : [UInt64](repeating: 0, count: count)
        columns =
            plan.isCopy
            ? []
            : (0..<plan.sourceWidth).map { Self.share($0, result: plan.width, source: plan.sourceWidth) }
    }

    /// The first pixel of the result that a source pixel counts for, and its share; the rest counts for the next.
    private static func share(_ index: Int, result: Int, source: Int) -> (target: Int, weight: Int) {
        let target = index * result / source
        return (target, min(result, (target + 1) * source - index * result))
    }

    /// Adds a row of a pass.
    ///
    /// - Parameters:
    ///   - row: its samples, from `start` on.
    ///   - y: the row of the picture that they belong to.
    ///   - x: the column of the first, and `step` from one to the next.
    mutating func add(_ row: [UInt8], from start: Int, pixels count: Int, y: Int, x: Int, step: Int) {
        let y = y - plan.y
        guard y >= 0, y < plan.sourceHeight else { return }
        let (targetRow, rowWeight) = Self.share(y, result: plan.height, source: plan.sourceHeight)
        for pixel in 0..<count {
            let column = x + pixel * step - plan.x
            guard column >= 0 else { continue }
            guard column < plan.sourceWidth else { break }
            let index = start + pixel * channels
            let red = row[index]
            let green = channels == 1 ? red : row[index + 1]
            let blue = channels == 1 ? red : row[index + 2]
            let alpha = channels == 4 ? row[index + 3] : 255
            if plan.isCopy {
                let out = (y * plan.width + column) * 4
                pixels[out] = red
                pixels[out + 1] = green
                pixels[out + 2] = blue
                pixels[out + 3] = alpha
                continue
            }
            let sample = SIMD4<UInt64>(UInt64(red), UInt64(green), UInt64(blue), 1) &* UInt64(alpha)
            let (target, weight) = columns[column]
            add(sample, targetRow, target, rowWeight * weight)
            add(sample, targetRow, target + 1, rowWeight * (plan.width - weight))
            add(sample, targetRow + 1, target, (plan.height - rowWeight) * weight)
            add(sample, targetRow + 1, target + 1, (plan.height - rowWeight) * (plan.width - weight))
        }
    }

    private mutating func add(_ sample: SIMD4<UInt64>, _ row: Int, _ column: Int, _ weight: Int) {
        guard weight > 0 else { return }
        let out = (row * plan.width + column) * 4
        for channel in 0..<4 { sums[out + channel] &+= sample[channel] &* UInt64(weight) }
    }

    /// The result after all pixels were added.
    consuming func finish() -> [UInt8] {
        if plan.isCopy { return pixels }
        let mean = AreaMean(area: UInt64(plan.sourceWidth) * UInt64(plan.sourceHeight))
        var result = [UInt8](repeating: 0, count: sums.count)
        for start in stride(from: 0, to: sums.count, by: 4) {
            let totals = SIMD4(sums[start], sums[start + 1], sums[start + 2], sums[start + 3])
            let pixel = mean.pixel(totals, channels: 4)
            for channel in 0..<4 { result[start + channel] = pixel[channel] }
        }
        return result
    }
}
