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
}
