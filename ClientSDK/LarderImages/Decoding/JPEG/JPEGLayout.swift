/// The samples of a JPEG: how many there are of each component, and where a strip of them is stored.
///
/// A strip is a row of units of the picture. Two strips of each component are stored, one behind the other in turn.
struct JPEGLayout: Sendable {
    /// How the samples of a component are spread over the pixels.
    enum Spread: Sendable, Hashable {
        case none
        /// Two pixels for each sample, weighted by distance.
        case doubleWidth
        case doubleHeight
        case doubleBoth
        /// The nearest sample.
        case nearest
    }

    struct Plane: Sendable {
        /// The blocks of a unit of the picture.
        let blocksWide: Int
        let blocksHigh: Int
        /// The samples that are shown.
        let width: Int
        let height: Int
        /// The place of its first sample.
        let offset: Int
        /// The bytes from a row to the next.
        let stride: Int
        /// In samples.
        let stripRows: Int
        let spread: Spread
        /// The ratio of samples to pixels in each direction.
        let unitWidth: (samples: Int, pixels: Int)
        let unitHeight: (samples: Int, pixels: Int)

        /// The place of a row, as far as it is stored.
        func place(ofRow row: Int) -> Int { offset + row % (2 * stripRows) * stride }
    }

    /// In pixels.
    let stripRows: Int
    let strips: Int
    let planes: [Plane]
    /// The bytes of two strips of all components.
    let byteCount: Int
    /// Whether a row needs samples of the next strip.
    let needsContext: Bool

    init(_ frame: JPEGFrame) {
        stripRows = 8 * frame.vertical
        strips = frame.unitsHigh
        var offset = 0
        planes = frame.components.map { component in
            let stride = frame.unitsWide * component.horizontal * 8
            let unitWidth = (samples: component.horizontal, pixels: frame.horizontal)
            let unitHeight = (samples: component.vertical, pixels: frame.vertical)
            let stripRows = component.vertical * 8
            defer { offset += 2 * stripRows * stride }
            return Plane(
                blocksWide: component.horizontal,
                blocksHigh: component.vertical,
                width: component.width,
                height: component.height,
                offset: offset,
                stride: stride,
                stripRows: stripRows,
                spread: Self.spread(unitWidth, unitHeight, component.width),
                unitWidth: unitWidth,
                unitHeight: unitHeight
            )
        }
        byteCount = offset
        needsContext = planes.contains { $0.spread == .doubleHeight || $0.spread == .doubleBoth }
    }

    private static func spread(
        _ horizontal: (samples: Int, pixels: Int),
        _ vertical: (samples: Int, pixels: Int),
        _ width: Int
    ) -> Spread {
        let isWide = horizontal.samples * 2 == horizontal.pixels
        let isHigh = vertical.samples * 2 == vertical.pixels
        switch (horizontal.samples == horizontal.pixels, vertical.samples == vertical.pixels) {
        case (true, true): return .none
        case (false, true): return isWide && width > 2 ? .doubleWidth : .nearest
        case (true, false): return isHigh ? .doubleHeight : .nearest
        // As libjpeg does, which spreads the samples of very narrow pictures without weights.
        case (false, false): return isWide && isHigh && width > 2 ? .doubleBoth : .nearest
        }
    }
}
