// swift-tools-version: 6.2
import PackageDescription

/// Measures reads of the cache, and the features on it. `swift run -c release cache-benchmark`, and `features-benchmark`, in this
/// directory.
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
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderServer", package: "larder"),
                .product(name: "LarderTesting", package: "larder"),
            ],
            path: "Features"
        ),
    ],
    swiftLanguageModes: [.v6]
)
