/// Converts rows of components to pixels of four bytes: red, green, blue and 255 (ITU T.871 §7).
///
/// All functions read up to `JPEGLayout.slack` samples beyond the row, and write four times as many bytes.
enum JPEGColorConversion {
    private typealias Lane = JPEGLanes.Row
    private typealias Wide = JPEGLanes.Wide

    /// Stores eight pixels; the lanes are from 0 to 255.
    @inline(__always)
    private static func store(
        _ pixels: (red: Lane, green: Lane, blue: Lane),
        _ target: UnsafeMutablePointer<UInt8>,
        _ index: Int
    ) {
        // Little-endian, as all processors are that Swift supports.
        let low = JPEGLanes.wide(pixels.red | (pixels.green &<< 8)) & 0xFFFF
        let high = JPEGLanes.wide(pixels.blue | -256) &<< 16
        unsafe UnsafeMutableRawPointer(target).storeBytes(of: low | high, toByteOffset: index &* 4, as: Wide.self)
    }

    /// Half of a product's high 16 bits, rounded: `round(value * constant / 65536)`.
    @inline(__always)
    private static func scaled(_ value: Lane, _ constant: Int16) -> Lane {
        (JPEGLanes.narrow(JPEGLanes.product(value &<< 1, constant) &>> 16) &+ 1) &>> 1
    }

    @inline(__always)
    private static func rgb(
        _ y: Lane,
        _ cb: Lane,
        _ cr: Lane
    ) -> (red: Lane, green: Lane, blue: Lane) {
        // 1.402 is 1 + 26345 / 65536, 1.772 is 2 - 14942 / 65536; the green's sum is rounded once.
        let red = y &+ cr &+ scaled(cr, 26_345)
        let blue = y &+ cb &+ cb &+ scaled(cb, -14_942)
        let sum =
            JPEGLanes.product(cb, -22_554) &+ JPEGLanes.product(cr, 18_734) &+ Wide(repeating: 32_768)
        let green = y &- cr &+ JPEGLanes.narrow(sum &>> 16)
        return (JPEGLanes.clamped(red), JPEGLanes.clamped(green), JPEGLanes.clamped(blue))
    }

    /// - Parameter count: the pixels.
    @inline(never)
    static func yCbCr(
        _ y: UnsafePointer<UInt8>,
        _ cb: UnsafePointer<UInt8>,
        _ cr: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        count: Int
    ) {
        var index = 0
        while index < count {
            let pixels = unsafe rgb(
                JPEGLanes.load(y, index),
                JPEGLanes.load(cb, index) &- 128,
                JPEGLanes.load(cr, index) &- 128
            )
            unsafe store(pixels, target, index)
            index &+= 8
        }
    }

    /// - Parameter count: the pixels.
    static func rgb(
        _ red: UnsafePointer<UInt8>,
        _ green: UnsafePointer<UInt8>,
        _ blue: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        count: Int
    ) {
        for index in 0..<count {
            unsafe target[index &* 4] = red[index]
            unsafe target[index &* 4 &+ 1] = green[index]
            unsafe target[index &* 4 &+ 2] = blue[index]
            unsafe target[index &* 4 &+ 3] = 255
        }
    }

    /// Multiplies inverted inks with inverted black, as programs without colour profiles do.
    ///
    /// - Parameters:
    ///   - inks: red, green and blue in the bytes of the pixels in `target`, where they are replaced.
    ///   - areComplements: whether the inks are to be inverted first.
    ///   - count: the pixels.
    static func ink(
        _ target: UnsafeMutablePointer<UInt8>,
        black: UnsafePointer<UInt8>,
        areComplements: Bool,
        count: Int
    ) {
        for index in 0..<count {
            let light = unsafe UInt32(black[index])
            for channel in 0..<3 {
                let value = unsafe UInt32(target[index &* 4 &+ channel])
                let product = (areComplements ? value : 255 &- value) &* light &+ 128
                unsafe target[index &* 4 &+ channel] = UInt8(
                    truncatingIfNeeded: light &- (product &+ product &>> 8) &>> 8
                )
            }
        }
    }
}
