// swift-tools-version: 6.2
import PackageDescription

/// Measures reads of the cache (`swift run -c release cache-benchmark`) and the features of the demo client
/// (`swift run -c release features-benchmark`).
let package = Package(
    name: "cache-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .target(name: "Measuring", path: "Measuring"),
        .executableTarget(
            name: "cache-benchmark",
            dependencies: ["Measuring", .product(name: "Larder", package: "larder")],
            path: "Sources"
        ),
        .executableTarget(
            name: "features-benchmark",
            dependencies: [
                "Measuring",
                .product(name: "LarderDemo", package: "larder"),
                .product(name: "LarderServer", package: "larder"),
            ],
            path: "Features"
        ),
    ],
    swiftLanguageModes: [.v6]
)
