/// The samples of a JPEG at a scale: how many there are of each component, and where a strip of them is stored.
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
        /// The mean of several samples for each pixel.
        case shrink
    }

    struct Plane: Sendable {
        /// The side of a block in samples at this scale: 1, 2, 4 or 8.
        let side: Int
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
        /// The samples and the pixels of a unit in each direction.
        let unitWidth: (samples: Int, pixels: Int)
        let unitHeight: (samples: Int, pixels: Int)

        /// The place of a row, as far as it is stored.
        func place(ofRow row: Int) -> Int { offset + row % (2 * stripRows) * stride }
    }

    /// The bytes behind each row that may be read or written beyond its samples.
    static let slack = 32

    /// The side of a sample in pixels of the file.
    let step: Int
    /// The size at this scale.
    let width: Int
    let height: Int
    /// In pixels at this scale.
    let stripRows: Int
    let strips: Int
    let planes: [Plane]
    /// The bytes of two strips of all components.
    let byteCount: Int
    /// Whether a row needs samples of the next strip.
    let needsContext: Bool

    /// - Parameter step: 1, 2, 4 or 8.
    init(_ frame: JPEGFrame, step: Int) {
        let side = 8 / step
        self.step = step
        width = (frame.width + step - 1) / step
        height = (frame.height + step - 1) / step
        stripRows = side * frame.vertical
        strips = frame.unitsHigh
        var offset = 0
        planes = frame.components.map { component in
            let own = Self.exactSide(component, frame, side) ?? 8
            let stride = frame.unitsWide * component.horizontal * own + Self.slack
            let unitWidth = (samples: component.horizontal * own, pixels: frame.horizontal * side)
            let unitHeight = (samples: component.vertical * own, pixels: frame.vertical * side)
            let width = (frame.width * component.horizontal * own + frame.horizontal * 8 - 1) / (frame.horizontal * 8)
            defer { offset += 2 * unitHeight.samples * stride }
            return Plane(
                side: own,
                blocksWide: component.horizontal,
                blocksHigh: component.vertical,
                width: width,
                height: (frame.height * component.vertical * own + frame.vertical * 8 - 1) / (frame.vertical * 8),
                offset: offset,
                stride: stride,
                stripRows: unitHeight.samples,
                spread: Self.spread(unitWidth, unitHeight, width),
                unitWidth: unitWidth,
                unitHeight: unitHeight
            )
        }
        byteCount = offset
        needsContext = planes.contains { $0.spread == .doubleHeight || $0.spread == .doubleBoth }
    }

    /// The side of a component's blocks at which it has the samples of all pixels, or a multiple of them in one direction, where
    /// those of the component with the most samples have `side`; nil if there is none.
    private static func exactSide(_ component: JPEGFrame.Component, _ frame: JPEGFrame, _ side: Int) -> Int? {
        [1, 2, 4, 8].first { own in
            own >= side && component.horizontal * own % (frame.horizontal * side) == 0
                && component.vertical * own % (frame.vertical * side) == 0
        }
    }

    private static func spread(
        _ horizontal: (samples: Int, pixels: Int),
        _ vertical: (samples: Int, pixels: Int),
        _ width: Int
    ) -> Spread {
        let isWide = horizontal.samples * 2 == horizontal.pixels
        let isHigh = vertical.samples * 2 == vertical.pixels
        if horizontal.samples % horizontal.pixels == 0, vertical.samples % vertical.pixels == 0,
            horizontal.samples > horizontal.pixels || vertical.samples > vertical.pixels
        {
            return .shrink
        }
        switch (horizontal.samples == horizontal.pixels, vertical.samples == vertical.pixels) {
        case (true, true): return .none
        case (false, true): return isWide && width > 2 ? .doubleWidth : .nearest
        case (true, false): return isHigh ? .doubleHeight : .nearest
        // As libjpeg does, which spreads the samples of very narrow pictures without weights.
        case (false, false): return isWide && isHigh && width > 2 ? .doubleBoth : .nearest
        }
    }

    /// The largest step at which means of samples are nearly those of pixels: a pixel of the result covers whole samples, or at least
    /// two in each direction, because those at its edges count by their part of it. With one and a half, photos differ by 41 dB
    /// instead of 46.
    static func step(_ frame: JPEGFrame, for plan: ImageTarget.Plan) -> Int {
        [8, 4, 2]
            .first { step in
                isFine(step, plan.x, plan.sourceWidth, plan.width)
                    && isFine(step, plan.y, plan.sourceHeight, plan.height)
                    && frame.components.allSatisfy { exactSide($0, frame, 8 / step) != nil }
            } ?? 1
    }

    private static func isFine(_ step: Int, _ start: Int, _ source: Int, _ result: Int) -> Bool {
        source >= 2 * step * result || (start % step == 0 && source % (step * result) == 0)
    }
}
