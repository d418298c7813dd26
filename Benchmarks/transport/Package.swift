// swift-tools-version: 6.2
import PackageDescription

/// Measures requests over the transports. Run it with `swift run -c release transport-benchmark URL` in this directory.
let package = Package(
    name: "transport-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "transport-benchmark",
            dependencies: [.product(name: "Larder", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
