import Foundation
import Larder

// `images decode FILE WIDTH HEIGHT ROUNDS`: milliseconds of each round of decoding a PNG into a size (0 0: as it is), and the
// most memory that the process had.

func milliseconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) * 1_000 + Double(duration.components.attoseconds) / 1e15
}

func peakKilobytes() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
    return Int(line.filter(\.isNumber)) ?? 0
}

func decode(_ arguments: [String]) throws {
    let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: arguments[0])))
    let (width, height) = (Int(arguments[1]) ?? 0, Int(arguments[2]) ?? 0)
    let target = width > 0 ? ImageTarget(width: width, height: height) : nil
    let before = peakKilobytes()
    var times: [Double] = []
    var size = ""
    for _ in 0..<(Int(arguments[3]) ?? 1) {
        let start = ContinuousClock.now
        let image = try PNGDecoder().decode(bytes, into: target, limits: ImageDecodingLimits())
        times.append(milliseconds(ContinuousClock.now - start))
        size = "\(image.width)x\(image.height)"
    }
    let shown = times.map { String(format: "%.1f", $0) }.joined(separator: " ")
    print("\(size) \(shown) ms; peak +\(peakKilobytes() - before) kB over \(before) kB")
}

let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "decode" where arguments.count == 5: try decode(Array(arguments.dropFirst()))
default: print("images decode FILE WIDTH HEIGHT ROUNDS")
}
