// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that the product does not depend on what only measures it.
let package = Package(
    name: "memory-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(name: "measure", dependencies: [.product(name: "LarderMemory", package: "larder")])
    ]
)
