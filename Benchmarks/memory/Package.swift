// swift-tools-version: 6.2
import PackageDescription

// Benchmarks of parts use `package` declarations: they are compiled as a part of the package two directories up, whose identity is the name of its
// directory.
let identity = Context.packageDirectory.split(separator: "/").dropLast(2).last?.lowercased() ?? ""
let asPartOfLarder: [SwiftSetting] = [.unsafeFlags(["-package-name", identity])]

// A separate package, so that the product does not depend on what only measures it.
let package = Package(
    name: "memory-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "measure",
            dependencies: [.product(name: "LarderMemory", package: "larder")],
            packageAccess: false,
            swiftSettings: asPartOfLarder
        )
    ]
)
