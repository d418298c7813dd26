// swift-tools-version: 6.2
import PackageDescription

/// A news reader for a backend that knows nothing of Larder. README.md explains it step by step.
let package = Package(
    name: "news-reader",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .target(name: "NewsKit", dependencies: [.product(name: "Larder", package: "larder")]),
        .executableTarget(name: "news", dependencies: ["NewsKit", .product(name: "Larder", package: "larder")]),
        .testTarget(
            name: "NewsKitTests",
            dependencies: [
                "NewsKit", .product(name: "Larder", package: "larder"),
                .product(name: "LarderTesting", package: "larder"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
