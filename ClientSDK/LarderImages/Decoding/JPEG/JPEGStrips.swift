/// Two strips of the samples of all components, from which rows are taken for the result as soon as they are complete.
struct JPEGStrips {
    let layout: JPEGLayout
    private let colors: JPEGColors
    /// The samples of all components.
    var samples: [UInt8]
    /// A row of spread samples for each component, one behind the other.
    private var spread: [UInt8]
    private let spreadStride: Int
    /// A row of pixels.
    private var row: [UInt8]
    private var averager: AreaAverager
    /// The next row for the result.
    private var next = 0

    init(_ layout: JPEGLayout, _ colors: JPEGColors, _ plan: ImageTarget.Plan) {
        self.layout = layout
        self.colors = colors
        // Gray, where a scan is missing for a part of the picture.
        samples = [UInt8](repeating: 128, count: layout.byteCount + JPEGLayout.slack)
        let units = layout.planes.map { ($0.stride - JPEGLayout.slack) / $0.unitWidth.samples * $0.unitWidth.pixels }
        // A unit has at most 32 pixels; the largest row and what may be written behind it.
        spreadStride = (units.max() ?? 0) + 2 * JPEGLayout.slack
        let isGray = colors == .gray
        spread = isGray ? [] : [UInt8](repeating: 0, count: spreadStride * layout.planes.count)
        row = isGray ? [] : [UInt8](repeating: 0, count: (layout.width + JPEGLayout.slack) * 4)
        averager = AreaAverager(plan, channels: isGray ? 1 : 4, hasAlpha: false, step: layout.step)
    }

    /// The pixels of the result after the last strip.
    var pixels: [UInt8] { averager.pixels }

    /// Takes the next strip, and the rows that are complete with it.
    mutating func take(_ strip: Int, _ coefficients: JPEGCoefficients, _ factors: [Int16]) {
        let used = averager.usedRows
        if (strip + 1) * layout.stripRows >= used.lowerBound, strip * layout.stripRows <= used.upperBound {
            coefficients.transform(strip, factors, into: &self)
        }
        let isLast = strip == layout.strips - 1
        let end = isLast ? layout.height : (strip + 1) * layout.stripRows - (layout.needsContext ? 1 : 0)
        let (rows, columns) = (averager.usedRows, averager.usedColumns)
        while next < min(end, layout.height) {
            defer { next += 1 }
            guard rows.contains(next) else { continue }
            if colors == .gray {
                averager.add(samples, at: layout.planes[0].place(ofRow: next) + columns.lowerBound)
            } else {
                convert(next)
                averager.add(row, at: columns.lowerBound * 4)
            }
        }
    }

    private mutating func convert(_ y: Int) {
        let (layout, colors, spreadStride) = (layout, colors, spreadStride)
        unsafe samples.withUnsafeBufferPointer { samples in
            unsafe spread.withUnsafeMutableBufferPointer { spread in
                unsafe row.withUnsafeMutableBufferPointer { row in
                    // The places of rows are those of the layout, which the arrays were made for, with its slack behind each row.
                    let samples = unsafe samples.baseAddress.unsafelyUnwrapped
                    let spread = unsafe spread.baseAddress.unsafelyUnwrapped
                    let row = unsafe row.baseAddress.unsafelyUnwrapped
                    @inline(__always)
                    func component(_ index: Int) -> UnsafePointer<UInt8> {
                        unsafe Self.component(layout, index, y, samples, spread + index * spreadStride)
                    }
                    let (first, second, third) = unsafe (component(0), component(1), component(2))
                    switch colors {
                    case .yCbCr, .ycck:
                        unsafe JPEGColorConversion.yCbCr(first, second, third, row, count: layout.width)
                    case .rgb, .cmyk, .gray:
                        unsafe JPEGColorConversion.rgb(first, second, third, row, count: layout.width)
                    }
                    guard colors == .cmyk || colors == .ycck else { return }
                    unsafe JPEGColorConversion.ink(
                        row,
                        black: component(3),
                        areComplements: colors == .ycck,
                        count: layout.width
                    )
                }
            }
        }
    }

    /// The samples of a component for a row of pixels, spread into `target` if necessary.
    private static func component(
        _ layout: JPEGLayout,
        _ index: Int,
        _ y: Int,
        _ samples: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>
    ) -> UnsafePointer<UInt8> {
        let plane = layout.planes[index]
        @inline(__always)
        func row(_ row: Int) -> UnsafePointer<UInt8> {
            unsafe samples + plane.place(ofRow: max(0, min(plane.height - 1, row)))
        }
        // The upper of two rows of pixels lies nearer to the samples above.
        let neighbour = y / 2 + (y & 1 == 0 ? -1 : 1)
        switch plane.spread {
        case .none: return unsafe row(y)
        case .doubleWidth: unsafe JPEGSpreading.doubleWidth(row(y), target, width: plane.width)
        case .doubleHeight:
            unsafe JPEGSpreading.doubleHeight(
                row(y / 2),
                row(neighbour),
                target,
                width: plane.width,
                isUpper: y & 1 == 0
            )
        case .doubleBoth:
            unsafe JPEGSpreading.doubleBoth(row(y / 2), row(neighbour), target, width: plane.width)
        case .shrink:
            let rows = plane.unitHeight.samples / plane.unitHeight.pixels
            // The rows of a pixel lie in one strip, one behind the other.
            unsafe JPEGSpreading.shrink(
                samples + plane.place(ofRow: y * rows),
                stride: plane.stride,
                columns: plane.unitWidth.samples / plane.unitWidth.pixels,
                rows: rows,
                target,
                pixels: layout.width
            )
        case .nearest:
            let (samples, pixels) = plane.unitHeight
            unsafe JPEGSpreading.nearest(
                row(y * samples / pixels),
                target,
                unit: plane.unitWidth,
                pixels: layout.width
            )
        }
        return unsafe UnsafePointer(target)
    }
}
