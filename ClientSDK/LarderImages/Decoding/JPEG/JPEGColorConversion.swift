/// Converts rows of components to pixels of four bytes: red, green, blue and 255 (ITU T.871 §7).
enum JPEGColorConversion {
    /// - Parameter count: the pixels.
    static func yCbCr(
        _ y: UnsafePointer<UInt8>,
        _ cb: UnsafePointer<UInt8>,
        _ cr: UnsafePointer<UInt8>,
        _ target: UnsafeMutablePointer<UInt8>,
        count: Int
    ) {
        @inline(__always)
        func sample(_ light: Int32, _ color: Int32) -> UInt8 {
            UInt8(truncatingIfNeeded: max(0, min(255, light &+ (color &+ 32_768) &>> 16)))
        }
        for index in 0..<count {
            let (light, blue, red) = unsafe (Int32(y[index]), Int32(cb[index]) &- 128, Int32(cr[index]) &- 128)
            // 1.402, 0.344136, 0.714136 and 1.772 in units of 1 / 65,536.
            unsafe target[index &* 4] = sample(light, 91_881 &* red)
            unsafe target[index &* 4 &+ 1] = sample(light, -22_554 &* blue &- 46_802 &* red)
            unsafe target[index &* 4 &+ 2] = sample(light, 116_130 &* blue)
            unsafe target[index &* 4 &+ 3] = 255
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
}
