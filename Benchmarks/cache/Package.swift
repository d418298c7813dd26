// swift-tools-version: 6.2
import PackageDescription

/// Measures reads of the cache. Run it with `swift run -c release` in this directory.
let package = Package(
    name: "cache-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "cache-benchmark",
            dependencies: [.product(name: "Larder", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
