// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that the product does not depend on what only measures it.
let package = Package(
    name: "images-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "images",
            dependencies: [
                .product(name: "Larder", package: "larder"), .product(name: "LarderServer", package: "larder"),
            ],
            path: "Sources"
        )
    ]
)
