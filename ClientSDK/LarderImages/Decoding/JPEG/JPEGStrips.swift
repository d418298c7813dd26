/// Two strips of the samples of all components, from which rows are taken for the result as soon as they are complete.
struct JPEGStrips {
    let layout: JPEGLayout
    private let frame: JPEGFrame
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

    init(_ frame: JPEGFrame, _ colors: JPEGColors, _ plan: ImageTarget.Plan) {
        self.frame = frame
        layout = JPEGLayout(frame)
        self.colors = colors
        // Gray, where a scan is missing for a part of the picture.
        samples = [UInt8](repeating: 128, count: layout.byteCount)
        spreadStride = frame.unitsWide * frame.horizontal * 8
        let isGray = colors == .gray
        spread = isGray ? [] : [UInt8](repeating: 0, count: spreadStride * layout.planes.count)
        row = isGray ? [] : [UInt8](repeating: 0, count: frame.width * 4)
        averager = AreaAverager(plan, channels: isGray ? 1 : 4, hasAlpha: false)
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
        let end = isLast ? frame.height : (strip + 1) * layout.stripRows - (layout.needsContext ? 1 : 0)
        let (rows, columns) = (averager.usedRows, averager.usedColumns)
        while next < min(end, frame.height) {
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
        let (layout, width, colors, spreadStride) = (layout, frame.width, colors, spreadStride)
        unsafe samples.withUnsafeBufferPointer { samples in
            unsafe spread.withUnsafeMutableBufferPointer { spread in
                unsafe row.withUnsafeMutableBufferPointer { row in
                    // The places of rows are those of the layout, which the arrays were made for.
                    let samples = unsafe samples.baseAddress.unsafelyUnwrapped
                    let spread = unsafe spread.baseAddress.unsafelyUnwrapped
                    let row = unsafe row.baseAddress.unsafelyUnwrapped
                    @inline(__always)
                    func component(_ index: Int) -> UnsafePointer<UInt8> {
                        unsafe Self.component(layout.planes[index], width, y, samples, spread + index * spreadStride)
                    }
                    let (first, second, third) = unsafe (component(0), component(1), component(2))
                    switch colors {
                    case .yCbCr:
                        unsafe JPEGColorConversion.yCbCr(first, second, third, row, count: width)
                    case .rgb, .gray:
                        unsafe JPEGColorConversion.rgb(first, second, third, row, count: width)
                    }
                }
            }
        }
    }

    /// The samples of a component for a row of pixels, spread into `target` if necessary.
    private static func component(
        _ plane: JPEGLayout.Plane,
        _ pixels: Int,
        _ y: Int,
        _ samples: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>
    ) -> UnsafePointer<UInt8> {
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
        case .nearest:
            let unit = plane.unitHeight
            unsafe JPEGSpreading.nearest(
                row(y * unit.samples / unit.pixels),
                target,
                unit: plane.unitWidth,
                pixels: pixels
            )
        }
        return unsafe UnsafePointer(target)
    }
}
